// Package gcsblob knows its scheme only.
package gcsblob

// Scheme is that of the URLs.
const Scheme = "gs"
