// Command karpenter-aws is the controller of github.com/aws/karpenter-provider-aws behind a guard, on the
// cluster's time.
//
// This file is all that is ours: the build lays upstream's cmd/controller beside it, unchanged, out of the verified
// module (see builder.py).
package main

import (
	_ "karpstack/engines/clock"
	_ "karpstack/engines/guard"
)
