"""Karpenter on an AKS cluster that is there: node classes and NodePools, and self-hosted the controller itself.

With node auto provisioning nothing is made in Azure. Self-hosted, the controller's identity and its roles are, in a
resource group of the stack's own: CRDs, identity with its rights, bootstrap token -> controller -> node classes ->
NodePools, and destroyed the other way round. `environment` makes a cluster too.
"""

from __future__ import annotations

import pulumi
from pulumi_azure_native import resources

from .. import last_state
from ..documents import manifests
from ..kubernetes import NodePools, NodePoolsArgs, in_cluster
from ..naming import STACK_LABEL, AksNames
from ..outputs import Outputs
from ..replacement import Keeper
from ..settings import ExistingAksSettings, aks_identity, refuse_contradictions
from . import last_environment, stack_outputs
from .existing_cluster import ExistingCluster, ExistingClusterArgs
from .karpenter import SelfHostedKarpenter, SelfHostedKarpenterArgs
from .objects import kubernetes_provider


class ExistingEnvironment(pulumi.ComponentResource):
    """The environment; its subscription is that of the azure-native provider in use."""

    outputs: Outputs

    def __init__(self, name: str, args: ExistingAksSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        refuse_contradictions(args)
        super().__init__("karpstack:aks:ExistingEnvironment", name, {}, opts)
        self._stem = name
        self._args = args
        self._child = pulumi.ResourceOptions(parent=self)
        self._keeper = Keeper(last_state.read(self), bool(args.allow_replacement), self.pulumi_resource_type)
        self._keeper.refuse(aks_identity.destroying(args, last_environment.before(self._keeper.last, name)))

        cluster = ExistingCluster(f"{name}-cluster", ExistingClusterArgs(settings=args), opts=self._child)
        self._kubernetes = kubernetes_provider(f"{name}-kubernetes", cluster, self._keeper, self)
        karpenter = self._karpenter(cluster)
        node_pools = self._node_pools(cluster, karpenter)

        self.outputs = stack_outputs.outputs(args, cluster, karpenter, node_pools, cluster.found.brought)
        self.register_outputs(self.outputs.named())

    def _karpenter(self, cluster: ExistingCluster) -> SelfHostedKarpenter | None:
        """The stack's own controller; without it AKS runs Karpenter."""
        args = self._args
        if args.karpenter is None:
            return None
        names = AksNames(args.name)
        group = resources.ResourceGroup(
            f"{self._stem}-group",
            resource_group_name=names.resource_group,
            location=args.region,
            tags=args.tags,
            opts=pulumi.ResourceOptions(
                parent=self, hooks=self._keeper.hooks(f"{self._stem}-group", lost="the identity of Karpenter")
            ),
        )
        return SelfHostedKarpenter(
            f"{self._stem}-karpenter",
            SelfHostedKarpenterArgs(
                names=names,
                resource_group=group.name,
                location=args.region,
                subscription_id=args.subscription_id,
                network=cluster,
                cluster=cluster,
                cluster_group=args.cluster.resource_group,
                settings=args.karpenter,
                mirrors=args.images.mirrors,
                labels={STACK_LABEL: args.name},
                tags=args.tags,
            ),
            opts=in_cluster(self, self._kubernetes),
        )

    def _node_pools(self, cluster: ExistingCluster, karpenter: SelfHostedKarpenter | None) -> NodePools:
        has_cilium = cluster.found.dataplane == "cilium"
        return NodePools(
            f"{self._stem}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.aks_node_class(name, spec, tags=self._args.tags)
                    for name, spec in self._args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(
                        name,
                        spec,
                        node_class=manifests.AKS_NODE_CLASS,
                        labels=manifests.AKS_DATAPLANE_LABEL if has_cilium else None,
                        startup_taints=[manifests.CILIUM_STARTUP_TAINT] if has_cilium else [],
                    )
                    for name, spec in self._args.node_pools.items()
                ],
                node_overlays=[manifests.node_overlay(name, spec) for name, spec in self._args.node_overlays.items()],
                kubeconfig=cluster.kubeconfig,
            ),
            opts=in_cluster(self, self._kubernetes, [cluster, *([karpenter] if karpenter else [])]),
        )
