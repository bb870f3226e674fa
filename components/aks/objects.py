"""The provider that applies objects in an AKS cluster."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes

from ..kubernetes import wait_until_accepted
from ..replacement import Keeper
from .cluster import Cluster
from .existing_cluster import ExistingCluster


def kubernetes_provider(
    name: str, cluster: Cluster | ExistingCluster, keeper: Keeper, parent: pulumi.Resource
) -> pulumi_kubernetes.Provider:
    """Return the Kubernetes provider of a cluster, which only another cluster replaces.

    Without an identifier the provider compares the kubeconfig's address and certificate. After `az aks rotate-certs`
    or a change of the private DNS zone it would replace every object of the stack, and delete NodePools with their
    nodes. Azure does not always write an ID in the same case.

    The provider asks a cluster once, so each update waits before until the deployer's role has taken effect: it is a
    new one also when somebody else deploys.
    """
    kubeconfig = cluster.kubeconfig
    if isinstance(cluster, Cluster) and not pulumi.runtime.is_dry_run():
        # An existing cluster has answered already, at the preview.
        kubeconfig = pulumi.Output.secret(kubeconfig.apply(wait_until_accepted))
    hooks = keeper.hooks(name, lost="every object of the stack in the cluster")
    return pulumi_kubernetes.Provider(
        name,
        kubeconfig=kubeconfig,
        cluster_identifier=cluster.id.apply(str.lower),
        opts=pulumi.ResourceOptions(parent=parent, hooks=hooks),
    )
