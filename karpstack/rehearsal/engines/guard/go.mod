module karpstack/engines/guard

go 1.26.0

require (
	github.com/go-logr/logr v1.4.3
	golang.org/x/sys v0.40.0
	k8s.io/client-go v0.35.1
	sigs.k8s.io/controller-runtime v0.23.1
)
