"""karpstack's components: AKS and EKS environments with an overlay network, Cilium and Karpenter.

In the checkout this package is `components`; other Pulumi programs install it as `karpstack`. It holds no
environment of its own: what to build is said by the models of `settings`, which come from a stack's file or are made
by the caller:

    eks.Environment("eks", EksSettings(name="mine", region="us-east-1", network=NetworkSettings(...), ...))

What one section says is checked when it is made; what one says of another, by `settings.load` and by the environment.
"""
