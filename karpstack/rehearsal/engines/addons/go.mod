// What runs beside Karpenter on EKS: charts that have no Go program to build, checked against go.sum. The load balancer
// controller's releases have no module version of their own: this one is the commit of v3.3.0.
module karpstack/engines/addons

go 1.26.0

require (
	github.com/kubernetes-sigs/aws-ebs-csi-driver v1.63.0
	sigs.k8s.io/aws-load-balancer-controller v0.0.0-20260505182222-46816a2070db
	sigs.k8s.io/metrics-server v0.9.0
)
