"""A whole EKS environment: network, cluster, Cilium, system nodes, Karpenter, NodePools, in the order that works.

Created: cluster -> Cilium (not awaited) -> system nodes (awaited: Ready only with Cilium) -> add-ons ->
controller's identity, CRDs -> controller -> node classes -> NodePools. Destroyed the other way round: NodePools
take their instances with them while the controller, its role, the queue and the nodes' access still exist. Each
arrow below that is not an output is a `depends_on`; none may become a `deleted_with`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes

from .. import versions
from ..documents import charts, manifests
from ..kubernetes import Cilium, CiliumArgs, Karpenter, KarpenterArgs, NodePools, NodePoolsArgs, in_cluster
from ..naming import DISCOVERY_TAG, KARPENTER_AWS_SERVICE_ACCOUNT, KARPENTER_NAMESPACE, EksNames
from .access import Access, AccessArgs
from .addons import Addons, AddonsArgs
from .cluster import Cluster, ClusterArgs
from .identity import ControllerIdentity, ControllerIdentityArgs, IdentityKind
from .interruption import Interruption, InterruptionArgs
from .network import Network, NetworkArgs
from .node_role import NodeRole, NodeRoleArgs
from .spot_role import SpotServiceLinkedRole
from .system_nodes import AmiType, SystemNodes, SystemNodesArgs


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """Address ranges, none of which may overlap another, and zones; see `NetworkArgs`."""

    vpc_cidr: str
    pod_cidr: str
    pod_cidr_mask_size: int = 24
    service_cidr: str
    zones: int | Sequence[str] = 3
    nat_gateways: Literal["single", "per-zone"] = "single"


@dataclass(frozen=True, kw_only=True)
class ControlPlanePlan:
    """Version and access of the control plane; see `ClusterArgs` and `AccessArgs`."""

    version: str
    public_access_cidrs: Sequence[str] = ()
    admins: Sequence[str] = ()
    log_types: Sequence[str] = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    log_retention_days: int = 30


@dataclass(frozen=True, kw_only=True)
class SystemNodesPlan:
    """Size of the managed node group; see `SystemNodesArgs`."""

    instance_type: str = "m5.large"
    ami_type: AmiType = "AL2023_x86_64_STANDARD"
    min_size: int = 2
    desired_size: int = 2
    max_size: int = 10
    disk_size: int = 50


@dataclass(frozen=True, kw_only=True)
class KarpenterPlan:
    """How the controller runs; see `documents.charts.karpenter_aws`."""

    identity: IdentityKind = "pod-identity"
    interruption_queue: bool = True
    replicas: int = 2
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvironmentArgs:
    """Arguments of `Environment`.

    Attributes:
        cluster_name: Also the stem of every physical name.
        region: The region of the AWS provider in use.
        tags: For every resource, and for what Karpenter launches.
        network, control_plane, system_nodes, karpenter: The plans.
        spot_service_linked_role: `create`, or `existing` in an account that has it.
        node_classes: EC2NodeClass specs by name.
        node_pools: NodePool specs by name.
    """

    cluster_name: str
    region: str
    tags: Mapping[str, str]
    network: NetworkPlan
    control_plane: ControlPlanePlan
    system_nodes: SystemNodesPlan
    karpenter: KarpenterPlan
    spot_service_linked_role: Literal["create", "existing"]
    node_classes: Mapping[str, Mapping[str, Any]]
    node_pools: Mapping[str, Mapping[str, Any]]


class Environment(pulumi.ComponentResource):
    """The environment. `interruption_queue` is empty without a queue, `kubeconfig` is a secret.

    `default_node_pools` is empty: EKS brings none.
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
        super().__init__("karpstack:eks:Environment", name, {}, opts)
        names = EksNames(args.cluster_name)
        child = pulumi.ResourceOptions(parent=self)
        invoke = pulumi.InvokeOutputOptions(parent=self)
        partition = aws.get_partition_output(opts=invoke).partition
        account_id = aws.get_caller_identity_output(opts=invoke).account_id

        network = Network(
            f"{name}-network",
            NetworkArgs(
                cluster_name=args.cluster_name,
                vpc_cidr=args.network.vpc_cidr,
                zones=args.network.zones,
                nat_gateways=args.network.nat_gateways,
                tags=args.tags,
            ),
            opts=child,
        )
        cluster = Cluster(
            f"{name}-cluster",
            ClusterArgs(
                names=names,
                region=args.region,
                partition=partition,
                version=args.control_plane.version,
                subnet_ids=network.private_subnet_ids,
                service_cidr=args.network.service_cidr,
                public_access_cidrs=args.control_plane.public_access_cidrs,
                log_types=args.control_plane.log_types,
                log_retention_days=args.control_plane.log_retention_days,
                tags=args.tags,
            ),
            opts=child,
        )
        provider = pulumi_kubernetes.Provider(f"{name}-kubernetes", kubeconfig=cluster.kubeconfig, opts=child)

        cilium = Cilium(
            f"{name}-cilium",
            CiliumArgs(
                api_server=cluster.endpoint,
                pod_cidr=args.network.pod_cidr,
                pod_cidr_mask_size=args.network.pod_cidr_mask_size,
                operator_replicas=min(2, args.system_nodes.desired_size),
            ),
            opts=in_cluster(self, provider),
        )
        system_nodes = SystemNodes(
            f"{name}-system",
            SystemNodesArgs(
                names=names,
                cluster_name=cluster.name,
                partition=partition,
                version=args.control_plane.version,
                subnet_ids=network.private_subnet_ids,
                instance_type=args.system_nodes.instance_type,
                ami_type=args.system_nodes.ami_type,
                min_size=args.system_nodes.min_size,
                desired_size=args.system_nodes.desired_size,
                max_size=args.system_nodes.max_size,
                disk_size=args.system_nodes.disk_size,
                # The network's routes are no input of the group, yet its nodes pull images through them.
                after=[network, cilium],
                tags=args.tags,
            ),
            opts=child,
        )
        addons = Addons(
            f"{name}-addons",
            AddonsArgs(
                cluster_name=cluster.name, pod_identity_agent=args.karpenter.identity == "pod-identity", tags=args.tags
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[system_nodes]),
        )

        node_role = NodeRole(
            f"{name}-node",
            NodeRoleArgs(
                role_name=names.node_role,
                description=f"Nodes that Karpenter launches for {args.cluster_name}",
                partition=partition,
                tags=args.tags,
            ),
            opts=child,
        )
        access = Access(
            f"{name}-access",
            AccessArgs(
                cluster_name=cluster.name,
                partition=partition,
                node_role_arn=node_role.arn,
                admins=args.control_plane.admins,
                tags=args.tags,
            ),
            opts=child,
        )
        interruption = (
            Interruption(f"{name}-interruption", InterruptionArgs(names=names, tags=args.tags), opts=child)
            if args.karpenter.interruption_queue
            else None
        )
        # Put together from names that are known, so that the documents can be judged at the first preview already.
        node_role_arn = pulumi.Output.format("arn:{0}:iam::{1}:role/{2}", partition, account_id, names.node_role)
        queue_arn = pulumi.Output.format(
            "arn:{0}:sqs:{1}:{2}:{3}", partition, args.region, account_id, names.interruption_queue
        )
        identity = ControllerIdentity(
            f"{name}-controller",
            ControllerIdentityArgs(
                names=names,
                kind=args.karpenter.identity,
                cluster_name=cluster.name,
                issuer=cluster.issuer,
                partition=partition,
                region=args.region,
                account_id=account_id,
                node_role_arn=node_role_arn,
                interruption_queue_arn=queue_arn if interruption else "",
                has_interruption_queue=interruption is not None,
                tags=args.tags,
            ),
            opts=child,
        )

        queue_name = interruption.queue_name if interruption else pulumi.Output.from_input("")
        karpenter = Karpenter(
            f"{name}-karpenter",
            KarpenterArgs(
                chart=versions.KARPENTER_AWS_CHART,
                crd_chart=versions.KARPENTER_AWS_CRD_CHART,
                version=versions.KARPENTER_AWS,
                namespace=KARPENTER_NAMESPACE,
                values=pulumi.Output.all(
                    cluster_name=cluster.name,
                    endpoint=cluster.endpoint,
                    interruption_queue=queue_name,
                    role_arn=identity.annotated_role_arn,
                ).apply(
                    lambda known: charts.karpenter_aws(
                        region=args.region,
                        service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
                        replicas=args.karpenter.replicas,
                        feature_gates=args.karpenter.feature_gates,
                        settings=args.karpenter.settings,
                        resources=args.karpenter.resources,
                        **known,
                    )
                ),
                install_after=(addons, identity),
            ),
            opts=in_cluster(self, provider),
        )

        # Instances need all of these from their first to their last minute.
        needed: list[pulumi.Resource] = [cluster, node_role, access, karpenter]
        needed += [interruption] if interruption else []
        if args.spot_service_linked_role == "create":
            needed.append(SpotServiceLinkedRole(f"{name}-spot", opts=child))
        node_pools = NodePools(
            f"{name}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.ec2_node_class(
                        class_name,
                        spec,
                        role=names.node_role,
                        tags=args.tags,
                        discovery={DISCOVERY_TAG: args.cluster_name},
                    )
                    for class_name, spec in args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(pool_name, spec, node_class=manifests.EC2_NODE_CLASS)
                    for pool_name, spec in args.node_pools.items()
                ],
            ),
            opts=in_cluster(self, provider, needed),
        )

        self.cluster_name = cluster.name
        self.cluster_endpoint = cluster.endpoint
        self.kubeconfig = cluster.kubeconfig
        self.interruption_queue = queue_name
        self.karpenter_version = karpenter.version
        self.karpenter_namespace = karpenter.namespace
        self.node_pools = node_pools.node_pools
        self.node_classes = node_pools.node_classes
        self.default_node_pools = pulumi.Output.from_input([])
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
