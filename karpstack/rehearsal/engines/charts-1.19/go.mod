// Charts that have no Go program to build: only their modules are downloaded, checked against go.sum.
module karpstack/engines/charts-1.19

go 1.26.0

require github.com/cilium/cilium v1.19.6
