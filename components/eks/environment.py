"""A whole EKS environment: network, cluster, Cilium, system nodes, Karpenter, NodePools, in the order that works.

Created: cluster -> Cilium (not awaited) -> system nodes (awaited: Ready only with Cilium) -> Cilium's roll-out, add-ons
-> controller's identity, CRDs -> controller -> node classes -> NodePools. Destroyed the other way round: NodePools take
their instances with them while the controller, its role, the queue and the nodes' access still exist. Each arrow below
that is not an output is a `depends_on`; none may become a `deleted_with`.

Where karpstack:cluster.existing names a cluster, everything up to the controller's identity is there already, and is
found instead of made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes

from .. import last_state, versions
from ..documents import charts, images, manifests, proxy
from ..documents.addons import EBS_CSI_STARTUP_TAINT
from ..documents.endpoints import api_servers, host_names
from ..documents.iam import CNI_MANAGED_POLICY
from ..documents.proxy import NO_EGRESS, Egress
from ..documents.user_data import node_class_user_data
from ..kubernetes import (
    Cilium,
    CiliumArgs,
    CiliumRollOut,
    DefaultDeny,
    Karpenter,
    KarpenterArgs,
    NodePools,
    NodePoolsArgs,
    TrustedCertificates,
    in_cluster,
)
from ..naming import KARPENTER_AWS_SERVICE_ACCOUNT, KARPENTER_NAMESPACE, STACK_LABEL, EksNames
from ..outputs import Outputs
from ..problems import SettingsError
from ..replacement import Keeper
from ..settings import EksSettings, ExistingEksSettings, eks_identity, refuse_contradictions
from ..settings.api_access_checks import check_api_access
from . import last_environment
from .access import Access, AccessArgs
from .addons import Addons, AddonsArgs
from .cluster import Cluster, ClusterArgs
from .endpoints import Endpoints, EndpointsArgs
from .existing_cluster import ExistingCluster, ExistingClusterArgs
from .extra_addons import ExtraAddons, ExtraAddonsArgs
from .flow_logs import FlowLogs, FlowLogsArgs
from .identity import ControllerIdentity, ControllerIdentityArgs
from .interruption import Interruption, InterruptionArgs
from .network import Network, NetworkArgs
from .node_role import NodeRole, NodeRoleArgs
from .private_access import PrivateAccess, PrivateAccessArgs
from .scope import Scope
from .system_nodes import SystemNodes, SystemNodesArgs


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """What Karpenter stands on, made by the stack or found.

    Attributes:
        cluster: The cluster.
        subnet_terms, security_group_terms: By which Karpenter finds where its nodes live.
        needed: What must be there before the controller.
        admins: Who administers the cluster beside the deployer.
        cilium: Whether the stack's own Cilium is the network.
        labels: Of what the stack installs in the cluster.
        startup_taints: Taints of Karpenter's nodes that something lifts when it is ready there.
        beside: What runs beside Karpenter and answers its nodes' pods.
        node_policies: Names of AWS's policies that Karpenter's nodes need beside those of every node.
        isolated: Whether Karpenter reaches what has a VPC endpoint alone, which IAM has not.
        egress: How programs on nodes and in pods get out.
    """

    cluster: Cluster | ExistingCluster
    subnet_terms: Sequence[Mapping[str, Any]]
    security_group_terms: Sequence[Mapping[str, Any]]
    needed: tuple[pulumi.Resource, ...]
    admins: Sequence[str] = ()
    cilium: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    startup_taints: Sequence[manifests.Spec] = (manifests.CILIUM_STARTUP_TAINT,)
    beside: tuple[pulumi.Resource, ...] = ()
    node_policies: Sequence[str] = ()
    isolated: bool = False
    egress: Egress = NO_EGRESS


class Environment(pulumi.ComponentResource):
    """The environment; its region is that of the AWS provider in use."""

    outputs: Outputs

    def __init__(
        self, name: str, args: EksSettings | ExistingEksSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        refuse_contradictions(args)
        super().__init__("karpstack:eks:Environment", name, {}, opts)
        self._stem = name
        self._args = args
        self._child = pulumi.ResourceOptions(parent=self)
        self._keeper = Keeper(last_state.read(self), bool(args.allow_replacement), self.pulumi_resource_type)
        self._before = last_environment.before(self._keeper.last, name)
        self._refuse_destroying()
        invoke = pulumi.InvokeOutputOptions(parent=self)
        self._partition = aws.get_partition_output(opts=invoke).partition
        self._account_id = aws.get_caller_identity_output(opts=invoke).account_id
        existing = args.cluster.existing if isinstance(args, ExistingEksSettings) else ""
        self._names = EksNames(args.name, existing=existing)
        self._scope = Scope(
            names=self._names,
            partition=self._partition,
            account_id=self._account_id,
            region=args.region,
            tags=args.tags,
        )
        ground = self._found(args) if isinstance(args, ExistingEksSettings) else self._made(args)
        cluster = ground.cluster

        node_role = self._node_role(ground)
        access = self._access(ground, node_role)
        interruption = self._interruption()
        identity = self._identity(cluster, interruption)
        karpenter = self._karpenter(ground, interruption, identity)
        # Instances need all of these from their first to their last minute.
        needed = [cluster, node_role, access, karpenter, interruption, *ground.beside]
        node_pools = self._node_pools(ground, [each for each in needed if each])

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

    def _refuse_destroying(self) -> None:
        """Stop before anything is registered, where a setting's change would destroy what the stack has."""
        ask = pulumi.InvokeOptions(parent=self)
        # In another region no question has the right answer.
        elsewhere = self._before.region not in ("", self._args.region)
        asked = bool(self._before.account) and not elsewhere
        account = aws.get_caller_identity(opts=ask).account_id if asked else ""
        self._keeper.refuse(eks_identity.destroying(self._args, self._before, account=account))

    def _found(self, args: ExistingEksSettings) -> _Ground:
        """A cluster that is there, of which nothing is changed; Cilium in it where the settings ask for it."""
        cluster = ExistingCluster(
            f"{self._stem}-cluster",
            ExistingClusterArgs(role_arn=self._role_arn, settings=args),
            opts=self._child,
        )
        self._kubernetes = self._in(cluster)
        labels = {STACK_LABEL: args.name}
        egress = self._egress(cluster.direct)
        needed: list[pulumi.Resource] = self._certificates(egress, labels)
        if args.cilium.install:
            needed.append(self._roll_out(self._cilium(cluster, operators=1, labels=labels), []))
        return _Ground(
            cluster=cluster,
            subnet_terms=cluster.subnet_terms,
            security_group_terms=cluster.security_group_terms,
            needed=tuple(needed),
            cilium=args.cilium.install,
            labels=labels,
            startup_taints=[manifests.CILIUM_STARTUP_TAINT] if args.cilium.install else [],
            node_policies=[CNI_MANAGED_POLICY] if cluster.nodes_need_cni_rights else [],
            egress=egress,
        )

    def _made(self, args: EksSettings) -> _Ground:
        """Network, cluster, Cilium, system nodes and add-ons of the stack's own."""
        refused = [*eks_identity.version_steps(args, self._before)]
        if not self._before.cluster:
            refused += check_api_access(args.network, args.cluster)
        if refused:
            raise SettingsError(refused)
        network = self._network(args)
        self._flow_logs(args, network)
        cluster = self._cluster(args, network)
        self._kubernetes = self._in(cluster)
        cilium = self._cilium(cluster, operators=min(2, args.system_nodes.desired_size))
        endpoints = self._endpoints(args, network, cluster)
        before_nodes = [network, cilium, *([endpoints] if endpoints else [])]
        egress = self._egress(
            [
                *map(str, (args.network.vpc_cidr, args.network.pod_cidr, args.network.service_cidr)),
                api_servers(args.region),
                *host_names(args.endpoints or sorted(network.endpoints), args.region),
            ]
        )
        system_nodes = self._system_nodes(args, network, cluster, egress, before_nodes)
        self._roll_out(cilium, [system_nodes])
        addons = self._addons(args, cluster, system_nodes)
        certificates = self._certificates(egress)
        extra_addons = self._extra_addons(args, network, cluster, egress, [addons, *certificates])
        return _Ground(
            cluster=cluster,
            subnet_terms=network.subnet_terms,
            security_group_terms=network.security_group_terms,
            needed=(addons, *certificates),
            admins=args.cluster.admins,
            startup_taints=[
                manifests.CILIUM_STARTUP_TAINT,
                *([EBS_CSI_STARTUP_TAINT] if args.addons.ebs_csi else []),
            ],
            beside=(extra_addons,) if extra_addons else (),
            isolated=network.isolated,
            egress=egress,
        )

    def _egress(self, inside: Sequence[str]) -> Egress:
        """How programs get out; `inside` is what they reach directly, beside what they always do."""
        said = self._args.proxy
        direct = proxy.direct(said.no_proxy if said else (), *proxy.POD_IDENTITY_AGENT, *proxy.NODES, *inside)
        return Egress(
            variables=proxy.variables(http=said.http, https=said.https, no_proxy=direct) if said else {},
            certificates=self._args.trusted_certificates,
            mirrors=self._args.images.node_mirrors,
        )

    def _certificates(self, egress: Egress, labels: Mapping[str, str] | None = None) -> list[pulumi.Resource]:
        """What pods that trust the certificates need in the cluster."""
        if not egress.certificates:
            return []
        return [
            TrustedCertificates(
                f"{self._stem}-trusted-certificates",
                egress,
                KARPENTER_NAMESPACE,
                labels or {},
                opts=in_cluster(self, self._kubernetes),
            )
        ]

    @property
    def _role_arn(self) -> str:
        """The role that the deployer takes, for the kubeconfig."""
        return next((role.role_arn for role in self._args.assume_roles), "")

    def _in(self, cluster: Cluster | ExistingCluster) -> pulumi_kubernetes.Provider:
        return pulumi_kubernetes.Provider(
            f"{self._stem}-kubernetes",
            kubeconfig=cluster.kubeconfig,
            # Another address or authority of the API server is the same cluster: no object is replaced for it.
            cluster_identifier=cluster.arn,
            opts=pulumi.ResourceOptions(
                parent=self,
                hooks=self._keeper.hooks(f"{self._stem}-kubernetes", lost="every object of the stack in the cluster"),
            ),
        )

    def _roll_out(self, cilium: Cilium, nodes: Sequence[pulumi.Resource]) -> CiliumRollOut:
        rolled_out = CiliumRollOut(
            f"{self._stem}-cilium-roll-out",
            cilium.fingerprint,
            opts=in_cluster(self, self._kubernetes, [cilium, *nodes]),
        )
        if self._args.cilium.default_deny:
            DefaultDeny(f"{self._stem}-default-deny", opts=in_cluster(self, self._kubernetes, [rolled_out]))
        return rolled_out

    def _network(self, args: EksSettings) -> Network:
        return Network(
            f"{self._stem}-network",
            NetworkArgs(settings=args, keeper=self._keeper, before=self._before),
            opts=self._child,
        )

    def _flow_logs(self, args: EksSettings, network: Network) -> None:
        if retention_days := args.network.flow_log_retention_days:
            FlowLogs(
                f"{self._stem}-flow-logs",
                FlowLogsArgs(
                    scope=self._scope,
                    vpc_id=network.vpc_id,
                    retention_days=retention_days,
                ),
                opts=self._child,
            )

    def _cluster(self, args: EksSettings, network: Network) -> Cluster:
        access = self._private_access(args, network)
        return Cluster(
            f"{self._stem}-cluster",
            ClusterArgs(
                scope=self._scope,
                profile=args.profile,
                role_arn=self._role_arn,
                settings=args.cluster,
                zonal_shift=str(args.karpenter.settings.get("enableZonalShift", False)).lower() == "true",
                vpc_id=args.network.vpc_id or "",
                vpc_cidr=args.network.vpc_cidr,
                subnet_ids=network.control_plane_subnet_ids,
                security_group_ids=[access.security_group_id] if access else [],
                after=[access] if access else [],
                service_cidr=args.network.service_cidr,
                keeper=self._keeper,
                is_new=not self._before.cluster,
            ),
            opts=self._child,
        )

    def _private_access(self, args: EksSettings, network: Network) -> PrivateAccess | None:
        if not args.cluster.private_access_cidrs:
            return None
        return PrivateAccess(
            f"{self._stem}-private-access",
            PrivateAccessArgs(
                names=self._names,
                vpc_id=network.vpc_id,
                cidrs=args.cluster.private_access_cidrs,
                tags=args.tags,
            ),
            opts=self._child,
        )

    def _cilium(
        self, cluster: Cluster | ExistingCluster, *, operators: int, labels: Mapping[str, str] | None = None
    ) -> Cilium:
        network, cilium = self._args.network, self._args.cilium
        return Cilium(
            f"{self._stem}-cilium",
            CiliumArgs(
                version=cilium.chart_version,
                api_server=cluster.endpoint,
                pod_cidr=str(network.pod_cidr),
                pod_cidr_mask_size=network.pod_cidr_mask_size,
                operator_replicas=operators,
                labels=labels or {},
                hubble=cilium.hubble,
                encryption=cilium.encryption,
                mirrors=self._args.images.mirrors,
            ),
            opts=in_cluster(self, self._kubernetes),
        )

    def _endpoints(self, args: EksSettings, network: Network, cluster: Cluster) -> Endpoints | None:
        if not args.endpoints:
            return None
        return Endpoints(
            f"{self._stem}-endpoints",
            EndpointsArgs(
                scope=self._scope,
                vpc_id=network.vpc_id,
                subnet_ids=network.private_subnet_ids,
                route_table_ids=network.route_table_ids,
                nodes_group_id=cluster.security_group_id,
                services=args.endpoints,
            ),
            opts=self._child,
        )

    def _system_nodes(
        self,
        args: EksSettings,
        network: Network,
        cluster: Cluster,
        egress: Egress,
        after: Sequence[pulumi.Resource],
    ) -> SystemNodes:
        return SystemNodes(
            f"{self._stem}-system",
            SystemNodesArgs(
                scope=self._scope,
                cluster_name=cluster.name,
                version=args.cluster.version,
                subnet_ids=network.private_subnet_ids,
                security_group_ids=self._security_groups(args, cluster),
                placement=network.placement,
                settings=args.system_nodes,
                egress=egress,
                # Routes and endpoints are no input of the group, yet its nodes pull images through them.
                after=after,
            ),
            opts=self._child,
        )

    def _security_groups(self, args: EksSettings, cluster: Cluster) -> list[pulumi.Input[str]]:
        """Those of system nodes; empty where EKS shall give them the cluster's own."""
        more = args.network.node_security_group_ids
        return [cluster.security_group_id, *more] if more else []

    def _addons(self, args: EksSettings, cluster: Cluster, system_nodes: SystemNodes) -> Addons:
        return Addons(
            f"{self._stem}-addons",
            AddonsArgs(
                cluster_name=cluster.name,
                kubernetes_version=args.cluster.version,
                versions=args.cluster.addon_versions,
                pod_identity_agent=args.karpenter.identity == "pod-identity" or args.addons.need_pod_identity,
                tags=args.tags,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[system_nodes]),
        )

    def _extra_addons(
        self,
        args: EksSettings,
        network: Network,
        cluster: Cluster,
        egress: Egress,
        after: Sequence[pulumi.Resource],
    ) -> ExtraAddons | None:
        if not args.addons.wanted:
            return None
        return ExtraAddons(
            f"{self._stem}-extra-addons",
            ExtraAddonsArgs(
                scope=self._scope,
                settings=args.addons,
                cluster_name=cluster.name,
                kubernetes_version=args.cluster.version,
                addon_versions=args.cluster.addon_versions,
                vpc_id=network.vpc_id,
                replicas=min(2, args.system_nodes.desired_size),
                isolated=network.isolated,
                mirrors=args.images.mirrors,
                egress=egress,
            ),
            # The Pod Identity agent answers pods that are admitted after it is there; names are resolved by CoreDNS.
            opts=in_cluster(self, self._kubernetes, after),
        )

    def _node_role(self, ground: _Ground) -> NodeRole:
        return NodeRole(
            f"{self._stem}-node",
            NodeRoleArgs(
                scope=self._scope,
                role_name=self._names.node_role,
                description=f"Nodes that Karpenter launches for {self._args.name}",
                more_policies=ground.node_policies,
                instance_profile=ground.isolated,
            ),
            opts=self._child,
        )

    def _access(self, ground: _Ground, node_role: NodeRole) -> Access:
        return Access(
            f"{self._stem}-access",
            AccessArgs(
                cluster_name=ground.cluster.name,
                partition=self._partition,
                node_role_arn=node_role.arn,
                admins=ground.admins,
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
                scope=self._scope,
            ),
            opts=self._child,
        )

    def _identity(self, cluster: Cluster | ExistingCluster, interruption: Interruption | None) -> ControllerIdentity:
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
                scope=self._scope,
                kind=self._args.karpenter.identity,
                cluster_name=cluster.name,
                issuer=cluster.issuer,
                at_once=isinstance(cluster, ExistingCluster) or bool(self._before.cluster),
                makes_provider=isinstance(cluster, Cluster),
                node_role_arn=node_role_arn,
                interruption_queue_arn=queue_arn if interruption else "",
                has_interruption_queue=interruption is not None,
            ),
            opts=self._child,
        )

    def _karpenter(self, ground: _Ground, interruption: Interruption | None, identity: ControllerIdentity) -> Karpenter:
        settings, cluster = self._args.karpenter, ground.cluster
        return Karpenter(
            f"{self._stem}-karpenter",
            KarpenterArgs(
                chart=versions.KARPENTER_AWS_CHART,
                crd_chart=versions.KARPENTER_AWS_CRD_CHART,
                version=settings.chart_version,
                namespace=KARPENTER_NAMESPACE,
                values=images.mirrored(
                    charts.karpenter_aws(
                        cluster_name=cluster.name,
                        region=self._args.region,
                        endpoint=cluster.endpoint,
                        interruption_queue=_queue_name(interruption),
                        service_account=KARPENTER_AWS_SERVICE_ACCOUNT,
                        replicas=settings.replicas,
                        feature_gates=settings.chart_gates,
                        settings={**settings.settings, **({"isolatedVPC": True} if ground.isolated else {})},
                        resources=settings.resources.model_dump(),
                        role_arn=identity.annotated_role_arn if settings.identity == "irsa" else None,
                        labels=ground.labels,
                        egress=ground.egress,
                    ),
                    images.KARPENTER_AWS,
                    self._args.images.mirrors,
                ),
                install_after=(*ground.needed, identity),
                service_monitor=settings.service_monitor,
            ),
            opts=in_cluster(self, self._kubernetes),
        )

    def _node_pools(self, ground: _Ground, after: Sequence[pulumi.Resource]) -> NodePools:
        return NodePools(
            f"{self._stem}-nodes",
            NodePoolsArgs(
                node_classes=[
                    manifests.ec2_node_class(
                        name,
                        spec,
                        role=self._names.node_role,
                        tags=self._args.tags,
                        subnets=ground.subnet_terms,
                        security_groups=ground.security_group_terms,
                        overlay=ground.cilium,
                        makes_profile=not ground.isolated,
                        user_data=node_class_user_data(spec, ground.egress),
                    )
                    for name, spec in self._args.node_classes.items()
                ],
                node_pools=[
                    manifests.node_pool(
                        name, spec, node_class=manifests.EC2_NODE_CLASS, startup_taints=ground.startup_taints
                    )
                    for name, spec in self._args.node_pools.items()
                ],
                node_overlays=[manifests.node_overlay(name, spec) for name, spec in self._args.node_overlays.items()],
                kubeconfig=ground.cluster.kubeconfig,
            ),
            opts=in_cluster(self, self._kubernetes, after),
        )


def _queue_name(interruption: Interruption | None) -> pulumi.Output[str]:
    return interruption.queue_name if interruption else pulumi.Output.from_input("")
