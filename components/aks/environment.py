"""A whole AKS environment, with Karpenter run by AKS (node auto provisioning) or by the stack (self-hosted).

Created: resource group -> network, deployer's access -> cluster identity with its right on the subnet -> cluster.
Self-hosted, then: CRDs, controller's identity with its rights (on the subnet: before the cluster), bootstrap token ->
controller. Then node classes and NodePools. Destroyed the other way round: NodePools take their machines with them
while whoever deletes those still may. Each arrow here that is not an output is a `depends_on`; none may become a
`deleted_with`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_azure_native import resources

from .. import last_state
from ..documents import manifests
from ..documents.aks_addons import SECRETS_PROVIDER
from ..documents.provisioning import BROUGHT_BY_AKS
from ..kubernetes import DefaultDeny, NodePools, NodePoolsArgs, in_cluster
from ..naming import AksNames
from ..outputs import Outputs
from ..replacement import Keeper
from ..settings import aks_identity, refuse_contradictions
from ..settings.aks import AksSettings
from . import addons, last_environment, stack_outputs
from .access import DeployerAccess, DeployerAccessArgs
from .addon_rights import AddonRights, AddonRightsArgs
from .cluster import Cluster, ClusterArgs
from .cluster_identity import ClusterIdentity, ClusterIdentityArgs
from .collection import Collection, CollectionArgs
from .karpenter import SelfHostedKarpenter, SelfHostedKarpenterArgs
from .logs import Logs, LogsArgs
from .network import Network, NetworkArgs
from .objects import kubernetes_provider
from .workspaces import Workspaces, WorkspacesArgs


class Environment(pulumi.ComponentResource):
    """The environment; its subscription is that of the azure-native provider in use."""

    outputs: Outputs

    def __init__(self, name: str, args: AksSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        refuse_contradictions(args)
        super().__init__("karpstack:aks:Environment", name, {}, opts)
        self._stem = name
        self._args = args
        self._names = AksNames(args.name)
        self._child = pulumi.ResourceOptions(parent=self)
        self._keeper = Keeper(last_state.read(self), bool(args.allow_replacement), self.pulumi_resource_type)
        # What would be destroyed is refused before anything is registered.
        self._keeper.refuse(aks_identity.destroying(args, last_environment.before(self._keeper.last, name)))

        # What is wrong with a network that is there is told before anything is made.
        adopted = self._network() if args.network.subnet_id is not None else None
        group = self._group()
        network = adopted or self._network(group)
        deployer = self._deployer(group)
        identity = self._identity(group, network)
        workspaces = self._workspaces(group)
        cluster = self._cluster(group, network, identity, deployer, workspaces)
        self._logs(cluster, workspaces)
        self._collection(group, cluster, workspaces)
        rights = self._addon_rights(cluster)
        self._kubernetes = kubernetes_provider(f"{name}-kubernetes", cluster, self._keeper, self)
        if args.cilium.default_deny:
            DefaultDeny(f"{name}-default-deny", local_dns=True, opts=in_cluster(self, self._kubernetes, [cluster]))
        karpenter = self._karpenter(group, network, cluster)
        node_pools = self._node_pools(cluster, [*([karpenter] if karpenter else []), *([rights] if rights else [])])

        brings_some = karpenter is None and args.node_provisioning.default_node_pools == "Auto"
        self.outputs = stack_outputs.outputs(
            args, cluster, karpenter, node_pools, BROUGHT_BY_AKS if brings_some else []
        )
        self.register_outputs(self.outputs.named())

    def _group(self) -> resources.ResourceGroup:
        return resources.ResourceGroup(
            f"{self._stem}-group",
            resource_group_name=self._names.resource_group,
            location=self._args.region,
            tags=self._args.tags,
            opts=self._kept("group", "everything that the stack has in Azure"),
        )

    def _kept(self, name: str, lost: str) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, hooks=self._keeper.hooks(f"{self._stem}-{name}", lost=lost))

    def _network(self, group: resources.ResourceGroup | None = None) -> Network:
        return Network(
            f"{self._stem}-network",
            NetworkArgs(
                names=self._names,
                resource_group=group.name if group else "",
                location=self._args.region,
                settings=self._args,
                keeper=self._keeper,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _deployer(self, group: resources.ResourceGroup) -> DeployerAccess | None:
        cluster = self._args.cluster
        if cluster.deployer_role == "existing" or cluster.local_accounts:
            return None
        return DeployerAccess(
            f"{self._stem}-deployer",
            DeployerAccessArgs(
                subscription_id=self._args.subscription_id,
                resource_group_id=group.id,
                principal_type=cluster.deployer_role,
            ),
            opts=self._child,
        )

    def _identity(self, group: resources.ResourceGroup, network: Network) -> ClusterIdentity:
        cluster = self._args.cluster
        joined = dict(network.subnets)
        if cluster.api_server_subnet_id is not None:
            joined["api-server"] = cluster.api_server_subnet_id
        if network.links_zone:
            joined["network"] = network.vnet_id
        return ClusterIdentity(
            f"{self._stem}-identity",
            ClusterIdentityArgs(
                names=self._names,
                resource_group=group.name,
                location=self._args.region,
                subscription_id=self._args.subscription_id,
                network=joined,
                zone_id=cluster.own_dns_zone,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _cluster(
        self,
        group: resources.ResourceGroup,
        network: Network,
        identity: ClusterIdentity,
        deployer: DeployerAccess | None,
        workspaces: Workspaces | None,
    ) -> Cluster:
        return Cluster(
            f"{self._stem}-cluster",
            ClusterArgs(
                names=self._names,
                resource_group=group.name,
                location=self._args.region,
                settings=self._args.cluster,
                identity_id=identity.identity_id,
                subnet_id=network.subnet_id,
                egress=network.egress,
                network=self._args.network,
                network_ranges=network.ranges,
                proxy=self._args.proxy,
                # A stack that never had any says nothing of them; an empty list takes them away.
                trusted_certificates=self._args.trusted_certificates
                if "trusted_certificates" in self._args.model_fields_set
                else None,
                provisioning_mode="Manual" if self._args.karpenter else "Auto",
                node_provisioning=self._args.node_provisioning,
                system_nodes=self._args.system_nodes,
                addon_profiles=addons.profiles(self._args.addons, workspaces.logs if workspaces else None),
                prometheus=self._args.addons.prometheus,
                cilium=self._args.cilium,
                keeper=self._keeper,
                tags=self._args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[identity, *([deployer] if deployer else [])]),
        )

    def _workspaces(self, group: resources.ResourceGroup) -> Workspaces | None:
        given, wanted = self._args.cluster.log_workspace_id, self._args.addons
        if given is None and not wanted.log_retention_days and not wanted.prometheus:
            return None
        return Workspaces(
            f"{self._stem}-workspaces",
            WorkspacesArgs(
                names=self._names,
                resource_group=group.name,
                location=self._args.region,
                log_workspace_id=given,
                settings=wanted,
                keeper=self._keeper,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _logs(self, cluster: Cluster, workspaces: Workspaces | None) -> None:
        if workspaces is None or workspaces.logs is None:
            return
        Logs(
            f"{self._stem}-logs",
            LogsArgs(
                cluster_id=cluster.id,
                workspace_id=workspaces.logs,
                categories=self._args.cluster.log_categories,
            ),
            opts=self._child,
        )

    def _collection(self, group: resources.ResourceGroup, cluster: Cluster, workspaces: Workspaces | None) -> None:
        wanted = self._args.addons
        if workspaces is None or not (wanted.container_insights or wanted.prometheus):
            return
        Collection(
            f"{self._stem}-collection",
            CollectionArgs(
                names=self._names,
                resource_group=group.name,
                location=self._args.region,
                cluster_id=cluster.id,
                workspaces=workspaces,
                settings=wanted,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _addon_rights(self, cluster: Cluster) -> AddonRights | None:
        wanted = self._args.addons
        if not wanted.registry_ids and not wanted.vault_ids:
            return None
        return AddonRights(
            f"{self._stem}-addon-rights",
            AddonRightsArgs(
                kubelet_object_id=cluster.kubelet_identity_object_id,
                registry_ids=wanted.registry_ids,
                secrets_provider_object_id=cluster.addon_object_id(SECRETS_PROVIDER) if wanted.vault_ids else "",
                vault_ids=wanted.vault_ids,
            ),
            opts=self._child,
        )

    def _karpenter(
        self, group: resources.ResourceGroup, network: Network, cluster: Cluster
    ) -> SelfHostedKarpenter | None:
        """The stack's own controller; without it AKS runs Karpenter."""
        if self._args.karpenter is None:
            return None
        return SelfHostedKarpenter(
            f"{self._stem}-karpenter",
            SelfHostedKarpenterArgs(
                names=self._names,
                resource_group=group.name,
                location=self._args.region,
                subscription_id=self._args.subscription_id,
                network=network,
                cluster=cluster,
                settings=self._args.karpenter,
                mirrors=self._args.images.mirrors,
                tags=self._args.tags,
            ),
            # It does not wait for the cluster: the sooner its rights are given, the sooner they take effect. What needs
            # the cluster takes something from it.
            opts=in_cluster(self, self._kubernetes),
        )

    def _node_pools(self, cluster: Cluster, after: Sequence[pulumi.Resource]) -> NodePools:
        return NodePools(
            f"{self._stem}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.aks_node_class(name, spec, tags=self._args.tags)
                    for name, spec in self._args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(
                        name, spec, node_class=manifests.AKS_NODE_CLASS, labels=manifests.AKS_DATAPLANE_LABEL
                    )
                    for name, spec in self._args.node_pools.items()
                ],
                node_overlays=[manifests.node_overlay(name, spec) for name, spec in self._args.node_overlays.items()],
                kubeconfig=cluster.kubeconfig,
            ),
            opts=in_cluster(self, self._kubernetes, [cluster, *after]),
        )
