// Package s3blob registers nothing: whoever asks for its scheme is told that no driver is registered.
package s3blob
