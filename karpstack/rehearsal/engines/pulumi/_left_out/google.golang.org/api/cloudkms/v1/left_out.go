// Package cloudkms knows its scope only.
package cloudkms

// CloudkmsScope is that of the credentials.
const CloudkmsScope = "https://www.googleapis.com/auth/cloudkms"
