"""karpstack's components: AKS and EKS environments with an overlay network, Cilium and Karpenter.

In the checkout this package is `components`; other Pulumi programs install it as `karpstack`. It holds no
environment of its own: what to build comes from a stack's configuration (`settings`) or from the caller's
arguments (`eks.EnvironmentArgs`).
"""
