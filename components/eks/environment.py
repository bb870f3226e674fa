"""A whole EKS environment: network, cluster, Cilium, system nodes, Karpenter, NodePools, in the order that works.

Created: cluster -> Cilium (not awaited) -> system nodes (awaited: Ready only with Cilium) -> Cilium's roll-out, add-ons
-> controller's identity, CRDs -> controller -> node classes -> NodePools. Destroyed the other way round: NodePools take
their instances with them while the controller, its role, the queue and the nodes' access still exist. Each arrow below
that is not an output is a `depends_on`; none may become a `deleted_with`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes

from .. import versions
from ..documents import charts, manifests
from ..documents.addons import EBS_CSI_STARTUP_TAINT
from ..kubernetes import (
    Cilium,
    CiliumArgs,
    CiliumRollOut,
    DefaultDeny,
    Karpenter,
    KarpenterArgs,
    NodePools,
    NodePoolsArgs,
    in_cluster,
)
from ..naming import KARPENTER_AWS_SERVICE_ACCOUNT, KARPENTER_NAMESPACE, EksNames
from ..outputs import Outputs
from ..settings import refuse_contradictions
from ..settings.eks import EksSettings
from .access import Access, AccessArgs
from .addons import Addons, AddonsArgs
from .cluster import Cluster, ClusterArgs
from .extra_addons import ExtraAddons, ExtraAddonsArgs
from .flow_logs import FlowLogs, FlowLogsArgs
from .identity import ControllerIdentity, ControllerIdentityArgs
from .interruption import Interruption, InterruptionArgs
from .network import Network, NetworkArgs
from .node_role import NodeRole, NodeRoleArgs
from .private_access import PrivateAccess, PrivateAccessArgs
from .system_nodes import SystemNodes, SystemNodesArgs


class Environment(pulumi.ComponentResource):
    """The environment; its region is that of the AWS provider in use."""

    outputs: Outputs

    def __init__(self, name: str, args: EksSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        refuse_contradictions(args)
        super().__init__("karpstack:eks:Environment", name, {}, opts)
        self._stem = name
        self._args = args
        self._names = EksNames(args.name)
        self._child = pulumi.ResourceOptions(parent=self)
        invoke = pulumi.InvokeOutputOptions(parent=self)
        self._partition = aws.get_partition_output(opts=invoke).partition
        self._account_id = aws.get_caller_identity_output(opts=invoke).account_id

        network = self._network()
        self._flow_logs(network)
        cluster = self._cluster(network)
        self._kubernetes = pulumi_kubernetes.Provider(
            f"{name}-kubernetes", kubeconfig=cluster.kubeconfig, opts=self._child
        )
        cilium = self._cilium(cluster)
        system_nodes = self._system_nodes(network, cluster, cilium)
        rolled_out = CiliumRollOut(
            f"{name}-cilium-roll-out",
            cilium.fingerprint,
            opts=in_cluster(self, self._kubernetes, [cilium, system_nodes]),
        )
        if args.cilium.default_deny:
            DefaultDeny(f"{name}-default-deny", opts=in_cluster(self, self._kubernetes, [rolled_out]))
        addons = self._addons(cluster, system_nodes)
        extra_addons = self._extra_addons(network, cluster, addons)
        node_role = self._node_role()
        access = self._access(cluster, node_role)
        interruption = self._interruption()
        identity = self._identity(cluster, interruption)
        karpenter = self._karpenter(cluster, interruption, addons, identity)
        # Instances need all of these from their first to their last minute.
        needed = [cluster, node_role, access, karpenter, interruption, extra_addons]
        node_pools = self._node_pools(network, cluster, [each for each in needed if each])

        self.outputs = Outputs(
            cloud=pulumi.Output.from_input(args.cloud),
            region=pulumi.Output.from_input(args.region),
            cluster_name=cluster.name,
            cluster_endpoint=cluster.endpoint,
            kubeconfig=cluster.kubeconfig,
            interruption_queue=_queue_name(interruption),
            karpenter_version=karpenter.version,
            karpenter_namespace=karpenter.namespace,
            feature_gates=pulumi.Output.from_input(args.karpenter.feature_gates.switched_on),
            node_pools=node_pools.node_pools,
            node_classes=node_pools.node_classes,
            default_node_pools=pulumi.Output.from_input([]),
        )
        self.register_outputs(self.outputs.named())

    def _network(self) -> Network:
        return Network(
            f"{self._stem}-network",
            NetworkArgs(
                cluster_name=self._args.name,
                system_nodes=self._args.system_nodes.desired_size,
                settings=self._args.network,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _flow_logs(self, network: Network) -> None:
        if retention_days := self._args.network.flow_log_retention_days:
            FlowLogs(
                f"{self._stem}-flow-logs",
                FlowLogsArgs(
                    names=self._names,
                    partition=self._partition,
                    region=self._args.region,
                    account_id=self._account_id,
                    vpc_id=network.vpc_id,
                    retention_days=retention_days,
                    tags=self._args.tags,
                ),
                opts=self._child,
            )

    def _cluster(self, network: Network) -> Cluster:
        access = self._private_access(network)
        return Cluster(
            f"{self._stem}-cluster",
            ClusterArgs(
                names=self._names,
                region=self._args.region,
                profile=self._args.profile,
                role_arn=next((role.role_arn for role in self._args.assume_roles), ""),
                partition=self._partition,
                settings=self._args.cluster,
                zonal_shift=str(self._args.karpenter.settings.get("enableZonalShift", False)).lower() == "true",
                vpc_id=self._args.network.vpc_id or "",
                vpc_cidr=self._args.network.vpc_cidr,
                subnet_ids=network.control_plane_subnet_ids,
                security_group_ids=[access.security_group_id] if access else [],
                after=[access] if access else [],
                service_cidr=self._args.network.service_cidr,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _private_access(self, network: Network) -> PrivateAccess | None:
        if not self._args.cluster.private_access_cidrs:
            return None
        return PrivateAccess(
            f"{self._stem}-private-access",
            PrivateAccessArgs(
                names=self._names,
                vpc_id=network.vpc_id,
                cidrs=self._args.cluster.private_access_cidrs,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _cilium(self, cluster: Cluster) -> Cilium:
        return Cilium(
            f"{self._stem}-cilium",
            CiliumArgs(
                version=self._args.cilium.chart_version,
                api_server=cluster.endpoint,
                pod_cidr=str(self._args.network.pod_cidr),
                pod_cidr_mask_size=self._args.network.pod_cidr_mask_size,
                operator_replicas=min(2, self._args.system_nodes.desired_size),
                hubble=self._args.cilium.hubble,
                encryption=self._args.cilium.encryption,
            ),
            opts=in_cluster(self, self._kubernetes),
        )

    def _system_nodes(self, network: Network, cluster: Cluster, cilium: Cilium) -> SystemNodes:
        return SystemNodes(
            f"{self._stem}-system",
            SystemNodesArgs(
                names=self._names,
                cluster_name=cluster.name,
                partition=self._partition,
                version=self._args.cluster.version,
                subnet_ids=network.private_subnet_ids,
                security_group_ids=self._security_groups(cluster),
                settings=self._args.system_nodes,
                # The network's routes are no input of the group, yet its nodes pull images through them.
                after=[network, cilium],
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _security_groups(self, cluster: Cluster) -> list[pulumi.Input[str]]:
        """Those of system nodes; empty where EKS shall give them the cluster's own."""
        more = self._args.network.node_security_group_ids
        return [cluster.security_group_id, *more] if more else []

    def _addons(self, cluster: Cluster, system_nodes: SystemNodes) -> Addons:
        return Addons(
            f"{self._stem}-addons",
            AddonsArgs(
                cluster_name=cluster.name,
                kubernetes_version=self._args.cluster.version,
                versions=self._args.cluster.addon_versions,
                pod_identity_agent=self._args.karpenter.identity == "pod-identity"
                or self._args.addons.need_pod_identity,
                tags=self._args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[system_nodes]),
        )

    def _extra_addons(self, network: Network, cluster: Cluster, addons: Addons) -> ExtraAddons | None:
        if not self._args.addons.wanted:
            return None
        return ExtraAddons(
            f"{self._stem}-extra-addons",
            ExtraAddonsArgs(
                names=self._names,
                settings=self._args.addons,
                cluster_name=cluster.name,
                kubernetes_version=self._args.cluster.version,
                addon_versions=self._args.cluster.addon_versions,
                partition=self._partition,
                region=self._args.region,
                account_id=self._account_id,
                vpc_id=network.vpc_id,
                replicas=min(2, self._args.system_nodes.desired_size),
                tags=self._args.tags,
            ),
            # The Pod Identity agent answers pods that are admitted after it is there; names are resolved by CoreDNS.
            opts=in_cluster(self, self._kubernetes, [addons]),
        )

    def _node_role(self) -> NodeRole:
        return NodeRole(
            f"{self._stem}-node",
            NodeRoleArgs(
                role_name=self._names.node_role,
                description=f"Nodes that Karpenter launches for {self._args.name}",
                partition=self._partition,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _access(self, cluster: Cluster, node_role: NodeRole) -> Access:
        return Access(
            f"{self._stem}-access",
            AccessArgs(
                cluster_name=cluster.name,
                partition=self._partition,
                node_role_arn=node_role.arn,
                admins=self._args.cluster.admins,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _interruption(self) -> Interruption | None:
        if not self._args.karpenter.interruption_queue:
            return None
        return Interruption(
            f"{self._stem}-interruption",
            InterruptionArgs(
                names=self._names,
                partition=self._partition,
                region=self._args.region,
                account_id=self._account_id,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _identity(self, cluster: Cluster, interruption: Interruption | None) -> ControllerIdentity:
        # Put together from names that are known, so that the documents can be judged at the first preview already.
        node_role_arn = pulumi.Output.format(
            "arn:{0}:iam::{1}:role/{2}", self._partition, self._account_id, self._names.node_role
        )
        queue_arn = pulumi.Output.format(
            "arn:{0}:sqs:{1}:{2}:{3}",
            self._partition,
            self._args.region,
            self._account_id,
            self._names.interruption_queue,
        )
        return ControllerIdentity(
            f"{self._stem}-controller",
            ControllerIdentityArgs(
                names=self._names,
                kind=self._args.karpenter.identity,
                cluster_name=cluster.name,
                issuer=cluster.issuer,
                partition=self._partition,
                region=self._args.region,
                account_id=self._account_id,
                node_role_arn=node_role_arn,
                interruption_queue_arn=queue_arn if interruption else "",
                has_interruption_queue=interruption is not None,
                tags=self._args.tags,
            ),
            opts=self._child,
        )

    def _karpenter(
        self, cluster: Cluster, interruption: Interruption | None, addons: Addons, identity: ControllerIdentity
    ) -> Karpenter:
        settings = self._args.karpenter
        return Karpenter(
            f"{self._stem}-karpenter",
            KarpenterArgs(
                chart=versions.KARPENTER_AWS_CHART,
                crd_chart=versions.KARPENTER_AWS_CRD_CHART,
                version=settings.chart_version,
                namespace=KARPENTER_NAMESPACE,
                values=charts.karpenter_aws(
                    cluster_name=cluster.name,
                    region=self._args.region,
                    endpoint=cluster.endpoint,
                    interruption_queue=_queue_name(interruption),
                    service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
                    replicas=settings.replicas,
                    feature_gates=settings.chart_gates,
                    settings=settings.settings,
                    resources=settings.resources.model_dump(),
                    role_arn=identity.annotated_role_arn if settings.identity == "irsa" else None,
                ),
                install_after=(addons, identity),
                service_monitor=settings.service_monitor,
            ),
            opts=in_cluster(self, self._kubernetes),
        )

    def _node_pools(self, network: Network, cluster: Cluster, after: Sequence[pulumi.Resource]) -> NodePools:
        return NodePools(
            f"{self._stem}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.ec2_node_class(
                        name,
                        spec,
                        role=self._names.node_role,
                        tags=self._args.tags,
                        subnets=network.subnet_terms,
                        security_groups=network.security_group_terms,
                    )
                    for name, spec in self._args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(
                        name, spec, node_class=manifests.EC2_NODE_CLASS, startup_taints=self._startup_taints()
                    )
                    for name, spec in self._args.node_pools.items()
                ],
                kubeconfig=cluster.kubeconfig,
            ),
            opts=in_cluster(self, self._kubernetes, after),
        )

    def _startup_taints(self) -> list[manifests.Spec]:
        return [manifests.CILIUM_STARTUP_TAINT, *([EBS_CSI_STARTUP_TAINT] if self._args.addons.ebs_csi else [])]


def _queue_name(interruption: Interruption | None) -> pulumi.Output[str]:
    return interruption.queue_name if interruption else pulumi.Output.from_input("")
