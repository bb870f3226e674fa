//go:build !(linux && (amd64 || arm64))

// Package clock makes a program read the cluster's clock; on this system the cluster keeps real time.
package clock

import (
	"fmt"
	"os"
)

// Variable names the environment variable with the path of the page.
const Variable = "KARPSTACK_CLOCK"

func init() {
	if os.Getenv(Variable) != "" {
		fmt.Fprintf(os.Stderr, "%s is set, and only Linux on amd64 and arm64 has a clock that runs faster\n", Variable)
		os.Exit(1)
	}
}
