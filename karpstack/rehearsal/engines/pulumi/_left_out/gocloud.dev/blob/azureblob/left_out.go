// Package azureblob opens nothing.
package azureblob

import (
	"context"
	"errors"
	"net/url"

	"gocloud.dev/blob"
)

// Scheme is that of the URLs.
const Scheme = "azblob"

// ServiceURLOptions has what Pulumi sets.
type ServiceURLOptions struct{}

// URLOpener refuses.
type URLOpener struct {
	MakeClient        func() error
	ServiceURLOptions ServiceURLOptions
}

// NewDefaultClient is never called.
func NewDefaultClient() error { return errors.New("left out") }

// NewDefaultServiceURLOptions are none.
func NewDefaultServiceURLOptions() *ServiceURLOptions { return &ServiceURLOptions{} }

// OpenBucketURL says why there is none.
func (*URLOpener) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) {
	return nil, errors.New("the Pulumi of the rehearsal was built without Azure's storage; use a Pulumi of your own")
}
