"""The Pulumi program: one stack, one environment. What it is like is said by Pulumi.<stack>.yaml alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from components import settings

if TYPE_CHECKING:
    from components import aks, eks


def environment(stack: settings.Settings) -> aks.Environment | eks.Environment:
    """The stack's environment. Only its cloud is imported: the SDKs are large."""
    if isinstance(stack, settings.AksSettings):
        from components.aks import program as aks_program

        return aks_program.environment(stack)
    from components.eks import program as eks_program

    return eks_program.environment(stack)


stack = settings.read()
made = environment(stack)

pulumi.export("cloud", stack.cloud)
pulumi.export("region", stack.region)
pulumi.export("clusterName", made.cluster_name)
pulumi.export("clusterEndpoint", made.cluster_endpoint)
pulumi.export("kubeconfig", made.kubeconfig)
pulumi.export("interruptionQueue", made.interruption_queue)
pulumi.export("karpenterVersion", made.karpenter_version)
pulumi.export("karpenterNamespace", made.karpenter_namespace)
pulumi.export("nodePools", made.node_pools)
pulumi.export("nodeClasses", made.node_classes)
pulumi.export("defaultNodePools", made.default_node_pools)
