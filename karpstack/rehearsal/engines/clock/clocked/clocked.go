// The one file of ours in each program of the control plane, which keeps the cluster's time by it.
//
// The build lays it beside upstream's main, unchanged, out of the verified module (see builder.py).
package main

import _ "karpstack/engines/clock"
