"""What is wrong with an EKS cluster that is there: the settings, held against what account and cluster say of it.

Pure: whoever asks brings a `FoundCluster`. That access entries need an authentication mode with the API, and that this
cannot be taken back, is in EKS's user guide, "Change authentication mode to use access entries"; that EKS Auto Mode and
Karpenter have CRDs in common, which are not to be changed, in its "Migrate from Karpenter to EKS Auto Mode".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from ipaddress import IPv4Network
from typing import Final

from karpstack.karpenter.findings import Finding

from ..documents import manifests
from ..naming import KARPENTER_NAMESPACE
from ..problems import Judge, SettingsError, Shown
from .egress_checks import early_call_warning
from .eks_checks import image_checks
from .eks_existing import ExistingEksSettings
from .existing_network import RECOMMENDED_ADDRESSES, FoundNetwork, group_checks, subnets_of_other_vpcs
from .version_checks import existing_eks_version
from .workloads import Workloads

#: DaemonSet of the VPC CNI, without which pods of other networks would have no addresses of the VPC.
VPC_CNI: Final = "aws-node"
#: DaemonSets that are a cluster's network, by name, and what they are.
NETWORKS: Final[Mapping[str, str]] = {
    VPC_CNI: "the VPC CNI",
    "cilium": "Cilium",
    "calico-node": "Calico",
    "canal": "Canal",
    "kube-flannel-ds": "Flannel",
    "weave-net": "Weave Net",
    "antrea-agent": "Antrea",
    "kube-router": "kube-router",
    "kube-ovn-cni": "Kube-OVN",
}
_NEEDS_API: Final = "API_AND_CONFIG_MAP"
_CLUSTER: Final = "cluster.existing"
_STARTUP_TAINTS: Final = ("template", "spec", "startupTaints")


@dataclass(frozen=True, kw_only=True)
class FoundCluster:
    """What account and cluster say of a cluster that is there.

    Attributes:
        status: `ACTIVE`, and others.
        version: Its Kubernetes version, `1.36`.
        authentication_mode: `API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`.
        auto_mode: Whether EKS Auto Mode makes its nodes.
        service_cidr: Range of Services.
        vpc_id: Its VPC.
        security_group_id: The security group that EKS has made for it.
        subnet_ids: Those of the settings or, where they name none, of the managed node groups.
        has_provider: Whether the account has an OIDC provider for its issuer; asked with IRSA alone.
        cni_role: Whether the add-on vpc-cni has a role of its own.
        network: Its VPC.
        workloads: What runs in it; of no matter while it is not ACTIVE.
    """

    status: str
    version: str
    authentication_mode: str
    auto_mode: bool
    service_cidr: str
    vpc_id: str
    security_group_id: str
    subnet_ids: Sequence[str]
    has_provider: bool
    cni_role: bool
    network: FoundNetwork
    workloads: Workloads = field(default_factory=Workloads)

    @property
    def nodes_need_cni_rights(self) -> bool:
        """Whether the VPC CNI acts with the role of the node that it runs on."""
        return VPC_CNI in self.workloads.networks and not (self.cni_role or self.workloads.cni_role)


@dataclass(frozen=True, kw_only=True)
class NodeNetwork:
    """The parts of the cluster's network that Karpenter's nodes use: a `Selection`."""

    vpc_id: str
    subnet_ids: Sequence[str]
    subnet_tags: Mapping[str, str]
    node_security_group_ids: Sequence[str]
    control_plane_subnet_ids: Sequence[str] = ()


def node_network(settings: ExistingEksSettings, vpc_id: str, subnet_ids: Sequence[str]) -> NodeNetwork:
    """What the settings choose of a VPC; `subnet_ids` are those that count where they name no tags."""
    return NodeNetwork(
        vpc_id=vpc_id,
        subnet_ids=() if settings.network.subnet_tags else subnet_ids,
        subnet_tags=settings.network.subnet_tags,
        node_security_group_ids=settings.network.node_security_group_ids,
    )


def missing(settings: ExistingEksSettings) -> SettingsError:
    """The refusal of a cluster that is not there."""
    return SettingsError([Judge(settings, region=settings.region)("existing-eks-missing", _CLUSTER)])


def problems(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Find what is, or may be, in the way.

    Args:
        settings: The stack's.
        found: What account and cluster say.
    """
    say = Judge(
        settings,
        cluster=settings.cluster.existing,
        region=settings.region,
        vpc_id=found.vpc_id,
        namespace=KARPENTER_NAMESPACE,
    )
    if found.status != "ACTIVE":
        yield say("existing-eks-busy", _CLUSTER, status=found.status)
        return
    yield from existing_eks_version(found.version, karpenter=settings.karpenter.chart_version)
    for node_class, spec in settings.node_classes.items():
        yield from image_checks(node_class, spec, found.version, date.today(), cilium=settings.cilium.install)
    if found.authentication_mode not in ("API", _NEEDS_API):
        yield say("existing-eks-without-access-entries", _CLUSTER, authentication_mode=found.authentication_mode)
    if found.auto_mode:
        yield say("existing-eks-auto-mode", _CLUSTER)
    there, identity = found.workloads, settings.karpenter.identity
    if identity == "irsa" and not found.has_provider:
        yield say("oidc-provider-missing", "karpenter.identity")
    if identity == "pod-identity" and not there.refusal and not there.agent:
        yield say("pod-identity-agent-missing", "karpenter.identity")
    yield from _subnets(say, settings, found)
    yield from group_checks(say, settings.network.node_security_group_ids, found.network, found.vpc_id)
    yield from early_call_warning(
        settings.proxy, settings.trusted_certificates, settings.region, found.network.endpoints
    )
    if there.refusal:
        yield say("existing-eks-not-authorized", _CLUSTER, refusal=there.refusal)
        return
    yield from _network(say, settings, found)
    yield from _others(say, there)
    # Without a network no node is ready before Cilium is there.
    if not settings.cilium.install and there.places < settings.karpenter.replicas:
        yield say("existing-eks-too-few-places", "karpenter.replicas", places=there.places)


def _subnets(say: Judge, settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    network = settings.network
    key: str = "network.subnetTags" if network.subnet_tags else "network.subnetIds"
    value: object = ...
    if not network.subnet_tags and not network.subnet_ids:
        of_groups = f"; of the managed node groups: {', '.join(found.subnet_ids)}" if found.subnet_ids else ""
        value = Shown(f"(not set{of_groups})")
    subnets = found.network.node_subnets(node_network(settings, found.vpc_id, found.subnet_ids))
    if not subnets and not network.subnet_ids:
        yield say("existing-tags-without-subnet" if network.subnet_tags else "existing-subnets-unknown", key, value)
    if missing := [one for one in network.subnet_ids if one not in {subnet.id for subnet in subnets}]:
        yield say("existing-subnets-of-other-vpc", key, value, missing=missing)
    yield from subnets_of_other_vpcs(say, found.network, found.vpc_id)
    for subnet in subnets:
        if subnet.way_out == "public":  # the cluster's own nodes may live in such ones
            code = "subnet-public" if subnet.gives_public_addresses else "subnet-public-without-address"
            yield say(code, key, value, subnet=subnet.id)
        elif not subnet.leads_out and not found.network.has_endpoints:
            yield say("subnet-without-way-out", key, value, without_way_out=subnet.without_way_out)
        if not settings.cilium.install and subnet.free < RECOMMENDED_ADDRESSES:
            yield say("few-addresses-with-vpc-cni", key, value, subnet=subnet.id, free=subnet.free)


def _network(say: Judge, settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Never a second network; and never none."""
    there, pods = found.workloads, settings.network.pod_cidr
    runs = [f"{NETWORKS[name]} (DaemonSet {name})" for name in there.networks]
    if settings.cilium.install:
        taken = [*found.network.cidrs, *filter(None, [found.service_cidr])]
        for cidr in taken:
            if pods is not None and pods.overlaps(IPv4Network(cidr)):
                yield say("pod-cidr-overlaps-vpc", "network.podCidr", cidr=cidr, taken=taken)
        if runs or there.kube_proxy or (there.ready and not there.own_network):
            what = " and ".join([*runs, *(["kube-proxy"] if there.kube_proxy else [])])
            what = what or f"{there.ready} nodes that are ready, and so a network"
            yield say("second-network", "cilium.install", what=what)
        return
    if not runs and not there.ready:
        yield say("network-missing", "cilium.install")
    for name, spec in settings.node_pools.items() if "cilium" in there.networks else ():
        taints = manifests.node_template(spec).get("startupTaints") or []
        taint = manifests.CILIUM_STARTUP_TAINT["key"]
        if not any(one.get("key") == taint for one in taints):
            yield say("cilium-taint-missing", ("nodePools", name, *_STARTUP_TAINTS), None, taint=taint)


def _others(say: Judge, there: Workloads) -> Iterator[Finding]:
    for controller in there.controllers:
        yield say("other-karpenter", _CLUSTER, controller=controller)
    if there.foreign_definitions and not there.controllers:
        names = " ".join(there.foreign_definitions)
        yield say("existing-eks-foreign-crds", _CLUSTER, foreign_definitions=there.foreign_definitions, names=names)
    for autoscaler in there.autoscalers:
        yield say("existing-eks-cluster-autoscaler", _CLUSTER, autoscaler=autoscaler)
