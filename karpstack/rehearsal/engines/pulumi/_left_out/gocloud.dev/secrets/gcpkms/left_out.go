// Package gcpkms opens nothing.
package gcpkms

import (
	"context"
	"errors"
	"net/url"

	"gocloud.dev/secrets"
	"golang.org/x/oauth2"
)

// Scheme is that of the URLs.
const Scheme = "gcpkms"

var errLeftOut = errors.New("the Pulumi of the rehearsal was built without Google's keys; use a Pulumi of your own")

// Client is none.
type Client struct{}

// URLOpener refuses.
type URLOpener struct {
	Client *Client
}

// Dial says why there is no client.
func Dial(context.Context, oauth2.TokenSource) (*Client, func(), error) { return nil, nil, errLeftOut }

// OpenKeeperURL says why there is none.
func (*URLOpener) OpenKeeperURL(context.Context, *url.URL) (*secrets.Keeper, error) {
	return nil, errLeftOut
}
