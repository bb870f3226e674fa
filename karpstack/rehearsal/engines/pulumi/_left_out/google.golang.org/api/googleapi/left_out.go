// Package googleapi has the error that Google's library for waits, which others wait with too, looks for.
package googleapi

// Error never occurs.
type Error struct {
	Code    int
	Message string
	Body    string
	Details []any
}

// Error is its message.
func (e *Error) Error() string { return e.Message }
