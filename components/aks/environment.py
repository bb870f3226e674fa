"""A whole AKS environment, with Karpenter run by AKS (node auto provisioning) or by the stack (self-hosted).

Created: resource group -> network, deployer's access -> cluster identity with its right on the subnet -> cluster.
Self-hosted, then: CRDs, controller's identity with its rights, bootstrap token -> controller. Then node classes and
NodePools. Destroyed the other way round: NodePools take their machines with them while whoever deletes those still
may. Each arrow below that is not an output is a `depends_on`; none may become a `deleted_with`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_kubernetes
from pulumi_azure_native import resources

from ..documents import manifests
from ..documents.kubeconfig import KubeloginMode
from ..documents.provisioning import BROUGHT_BY_AKS
from ..kubernetes import NodePools, NodePoolsArgs, in_cluster
from ..naming import AksNames
from .access import DeployerAccess, DeployerAccessArgs
from .cluster import Cluster, ClusterArgs, SystemPool
from .cluster_identity import ClusterIdentity, ClusterIdentityArgs
from .karpenter import KarpenterPlan, SelfHostedKarpenter, SelfHostedKarpenterArgs
from .network import Network, NetworkArgs
from .role_assignments import PrincipalType


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """Address ranges, none of which may overlap another, and the subnet; see `NetworkArgs`."""

    vnet_cidr: str
    subnet_cidr: str | None = None
    subnet_id: str | None = None
    pod_cidr: str
    service_cidr: str


@dataclass(frozen=True, kw_only=True)
class ControlPlanePlan:
    """Version and access of the control plane; see `ClusterArgs` and `DeployerAccess`."""

    version: str
    tier: Literal["Free", "Standard", "Premium"] = "Standard"
    public_access_cidrs: Sequence[str] = ()
    local_accounts: bool = False
    kubelogin: KubeloginMode = "azurecli"
    deployer_role: PrincipalType | Literal["existing"] = "User"
    admins: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class NodeProvisioningPlan:
    """Node auto provisioning; see `ClusterArgs`."""

    default_node_pools: Literal["Auto", "None"] = "Auto"
    allow_stranded_nodes: bool = False


@dataclass(frozen=True, kw_only=True)
class EnvironmentArgs:
    """Arguments of `Environment`.

    Attributes:
        cluster_name: Also the stem of every physical name.
        location: Location of everything.
        subscription_id: The subscription of the azure-native provider in use.
        tags: For every resource, and for what Karpenter launches.
        network, control_plane, system_pool, node_provisioning: The plans.
        karpenter: The stack's own controller; without it AKS runs Karpenter.
        node_classes: AKSNodeClass specs by name.
        node_pools: NodePool specs by name.
    """

    cluster_name: str
    location: str
    subscription_id: str
    tags: Mapping[str, str]
    network: NetworkPlan
    control_plane: ControlPlanePlan
    system_pool: SystemPool
    node_provisioning: NodeProvisioningPlan = field(default_factory=NodeProvisioningPlan)
    karpenter: KarpenterPlan | None
    node_classes: Mapping[str, Mapping[str, Any]]
    node_pools: Mapping[str, Mapping[str, Any]]


class Environment(pulumi.ComponentResource):
    """The environment. `kubeconfig` is a secret; Azure has no `interruption_queue`, so it is empty.

    Where AKS runs Karpenter, `karpenter_version` is `managed` and `karpenter_namespace` empty: no controller is in
    the cluster. `default_node_pools` are those that AKS brings, each with a node class of its name; they are not among
    `node_pools`.
    """

    cluster_name: pulumi.Output[str]
    cluster_endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    interruption_queue: pulumi.Output[str]
    karpenter_version: pulumi.Output[str]
    karpenter_namespace: pulumi.Output[str]
    node_pools: pulumi.Output[list[str]]
    node_classes: pulumi.Output[list[str]]
    default_node_pools: pulumi.Output[list[str]]

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Environment", name, {}, opts)
        names = AksNames(args.cluster_name)
        child = pulumi.ResourceOptions(parent=self)
        group = resources.ResourceGroup(
            f"{name}-group",
            resource_group_name=names.resource_group,
            location=args.location,
            tags=args.tags,
            opts=child,
        )
        network = Network(
            f"{name}-network",
            NetworkArgs(
                names=names,
                resource_group=group.name,
                location=args.location,
                vnet_cidr=args.network.vnet_cidr,
                subnet_cidr=args.network.subnet_cidr,
                subnet_id=args.network.subnet_id,
                tags=args.tags,
            ),
            opts=child,
        )
        first: list[pulumi.Resource] = []
        if args.control_plane.deployer_role != "existing" and not args.control_plane.local_accounts:
            first.append(
                DeployerAccess(
                    f"{name}-deployer",
                    DeployerAccessArgs(
                        subscription_id=args.subscription_id,
                        resource_group_id=group.id,
                        principal_type=args.control_plane.deployer_role,
                    ),
                    opts=child,
                )
            )
        identity = ClusterIdentity(
            f"{name}-identity",
            ClusterIdentityArgs(
                names=names,
                resource_group=group.name,
                location=args.location,
                subscription_id=args.subscription_id,
                subnet_id=network.subnet_id,
                tags=args.tags,
            ),
            opts=child,
        )
        cluster = Cluster(
            f"{name}-cluster",
            ClusterArgs(
                names=names,
                resource_group=group.name,
                location=args.location,
                version=args.control_plane.version,
                tier=args.control_plane.tier,
                identity_id=identity.identity_id,
                subnet_id=network.subnet_id,
                pod_cidr=args.network.pod_cidr,
                service_cidr=args.network.service_cidr,
                public_access_cidrs=args.control_plane.public_access_cidrs,
                local_accounts=args.control_plane.local_accounts,
                kubelogin=args.control_plane.kubelogin,
                admins=args.control_plane.admins,
                node_provisioning="Manual" if args.karpenter else "Auto",
                default_node_pools=args.node_provisioning.default_node_pools,
                allow_stranded_nodes=args.node_provisioning.allow_stranded_nodes,
                system_pool=args.system_pool,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[identity, *first]),
        )
        provider = pulumi_kubernetes.Provider(f"{name}-kubernetes", kubeconfig=cluster.kubeconfig, opts=child)

        karpenter = (
            SelfHostedKarpenter(
                f"{name}-karpenter",
                SelfHostedKarpenterArgs(
                    names=names,
                    resource_group=group.name,
                    location=args.location,
                    subscription_id=args.subscription_id,
                    network=network,
                    cluster=cluster,
                    plan=args.karpenter,
                    tags=args.tags,
                ),
                opts=in_cluster(self, provider, [cluster]),
            )
            if args.karpenter
            else None
        )
        node_pools = NodePools(
            f"{name}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.aks_node_class(class_name, spec, tags=args.tags)
                    for class_name, spec in args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(
                        pool_name, spec, node_class=manifests.AKS_NODE_CLASS, labels=manifests.AKS_DATAPLANE_LABEL
                    )
                    for pool_name, spec in args.node_pools.items()
                ],
            ),
            opts=in_cluster(self, provider, [cluster, *([karpenter] if karpenter else [])]),
        )

        self.cluster_name = cluster.name
        self.cluster_endpoint = cluster.endpoint
        self.kubeconfig = cluster.kubeconfig
        self.interruption_queue = pulumi.Output.from_input("")
        self.karpenter_version = karpenter.version if karpenter else pulumi.Output.from_input("managed")
        self.karpenter_namespace = karpenter.namespace if karpenter else pulumi.Output.from_input("")
        self.node_pools = node_pools.node_pools
        self.node_classes = node_pools.node_classes
        brings_some = args.karpenter is None and args.node_provisioning.default_node_pools == "Auto"
        self.default_node_pools = pulumi.Output.from_input(list(BROUGHT_BY_AKS) if brings_some else [])
        self.register_outputs(
            {
                "clusterName": self.cluster_name,
                "clusterEndpoint": self.cluster_endpoint,
                "kubeconfig": self.kubeconfig,
                "interruptionQueue": self.interruption_queue,
                "karpenterVersion": self.karpenter_version,
                "karpenterNamespace": self.karpenter_namespace,
                "nodePools": self.node_pools,
                "nodeClasses": self.node_classes,
                "defaultNodePools": self.default_node_pools,
            }
        )
