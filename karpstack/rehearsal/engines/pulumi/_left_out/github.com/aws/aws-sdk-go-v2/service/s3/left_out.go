// Package s3 has the one type that Pulumi looks for in what a bucket's driver hands it.
package s3

// CopyObjectInput is never handed to it.
type CopyObjectInput struct {
	CopySource *string
}
