"""The outputs of a stack on AKS, for a new or an existing cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from ..kubernetes import NodePools
from ..outputs import Outputs
from ..settings.aks import AksStackSettings
from .cluster import Cluster
from .existing_cluster import ExistingCluster
from .karpenter import SelfHostedKarpenter


def outputs(
    settings: AksStackSettings,
    cluster: Cluster | ExistingCluster,
    karpenter: SelfHostedKarpenter | None,
    node_pools: NodePools,
    brought: Sequence[str],
) -> Outputs:
    """The outputs.

    Args:
        settings: The stack's.
        cluster: Its cluster.
        karpenter: Its own controller; None where AKS runs it.
        node_pools: What it has put into the cluster.
        brought: Names of the NodePools that AKS brings.
    """
    gates = settings.karpenter.feature_gates.switched_on if settings.karpenter else []
    return Outputs(
        cloud=pulumi.Output.from_input(settings.cloud),
        region=pulumi.Output.from_input(settings.region),
        cluster_name=cluster.name,
        cluster_endpoint=cluster.endpoint,
        kubeconfig=cluster.kubeconfig,
        interruption_queue=pulumi.Output.from_input(""),
        karpenter_version=karpenter.version if karpenter else pulumi.Output.from_input("managed"),
        karpenter_namespace=karpenter.namespace if karpenter else pulumi.Output.from_input(""),
        feature_gates=pulumi.Output.from_input(gates),
        node_pools=node_pools.node_pools,
        node_classes=node_pools.node_classes,
        default_node_pools=pulumi.Output.from_input(list(brought)),
    )
