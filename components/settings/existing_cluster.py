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

from karpenter.findings import Finding

from ..documents import manifests
from ..naming import KARPENTER_NAMESPACE
from ..problems import SettingsError, Shown, doubts, finding, key_of, shown
from .egress_checks import opened_before_it_is_trusted
from .eks_checks import image_checks
from .eks_existing import ExistingEksSettings
from .existing_network import RECOMMENDED_ADDRESSES, FoundNetwork, FoundSubnet
from .version_checks import existing_eks_version

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


@dataclass(frozen=True, kw_only=True)
class Workloads:
    """What a cluster says of what runs in it.

    Attributes:
        refusal: Why it lets whoever deploys not do there what must be done; empty if it does, and then the rest counts.
        networks: Names of the DaemonSets of `NETWORKS` that it has, but for a Cilium that this stack has installed.
        kube_proxy: Whether kube-proxy runs there.
        agent: Whether the Pod Identity agent does.
        cni_role: Whether the VPC CNI's service account has a role of its own, by IRSA.
        autoscalers: Deployments of Cluster Autoscaler that have replicas, with their namespaces.
        controllers: Deployments of Karpenter that are not this stack's, with their namespaces.
        definitions: CRDs of Karpenter that Helm has not made for a release of the stack's names.
        own_network: Whether it has a Cilium that this stack has installed.
        ready: How many nodes are ready.
        places: How many of the ready ones take Karpenter's controller: not Karpenter's own, and without taints that the
            controller does not tolerate.
    """

    refusal: str = ""
    networks: Sequence[str] = ()
    own_network: bool = False
    kube_proxy: bool = False
    agent: bool = False
    cni_role: bool = False
    autoscalers: Sequence[str] = ()
    controllers: Sequence[str] = ()
    definitions: Sequence[str] = ()
    ready: int = 0
    places: int = 0


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
    return SettingsError([_of(settings, "existing-eks-missing", region=settings.region)])


def check(settings: ExistingEksSettings, found: FoundCluster) -> list[Finding]:
    """Refuse a cluster on which Karpenter cannot work.

    Args:
        settings: The stack's.
        found: What account and cluster say.

    Returns:
        What may be in the way: warnings.

    Raises:
        SettingsError: Something is.
    """
    return doubts(problems(settings, found))


def problems(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    name = settings.cluster.existing
    if found.status != "ACTIVE":
        yield _of(settings, "existing-eks-busy", status=found.status, region=settings.region, name=name)
        return
    yield from existing_eks_version(found.version, karpenter=settings.karpenter.chart_version)
    for node_class, spec in settings.node_classes.items():
        yield from image_checks(node_class, spec, found.version, date.today(), cilium=settings.cilium.install)
    yield from _access(settings, found)
    yield from _identity(settings, found)
    yield from _subnets(settings, found)
    yield from _groups(settings, found)
    yield from opened_before_it_is_trusted(
        settings.proxy, settings.trusted_certificates, settings.region, found.network.endpoints
    )
    if found.workloads.refusal:
        yield _of(
            settings, "existing-eks-not-authorized", refusal=found.workloads.refusal, region=settings.region, name=name
        )
        return
    yield from _network(settings, found)
    yield from _others(settings, found.workloads)
    yield from _places(settings, found.workloads)


def _of(settings: ExistingEksSettings, code: str, /, *, warning: bool | None = None, **words: object) -> Finding:
    return finding(code, ("cluster", "existing"), settings.cluster.existing, warning=warning, **words)


def _access(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    if found.authentication_mode not in ("API", _NEEDS_API):
        yield _of(
            settings,
            "existing-eks-without-access-entries",
            authentication_mode=found.authentication_mode,
            region=settings.region,
            cluster=settings.cluster.existing,
        )
    if found.auto_mode:
        yield _of(settings, "existing-eks-auto-mode")


def _identity(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    kind, name = settings.karpenter.identity, settings.cluster.existing
    key, value = key_of("karpenter", "identity"), shown(kind)
    if kind == "irsa" and not found.has_provider:
        yield finding("oidc-provider-missing", key, value, name=name, region=settings.region)
    if kind == "pod-identity" and not found.workloads.refusal and not found.workloads.agent:
        yield finding("pod-identity-agent-missing", key, value, name=name, region=settings.region)


def _subnets(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    network = node_network(settings, found.vpc_id, found.subnet_ids)
    key, value = _where(settings, found)
    subnets = found.network.node_subnets(network)
    if not subnets and not settings.network.subnet_ids:
        code = "existing-tags-without-subnet" if settings.network.subnet_tags else "existing-subnets-unknown"
        yield finding(code, key, value, vpc_id=found.vpc_id, cluster=settings.cluster.existing)
    missing = [one for one in settings.network.subnet_ids if one not in {subnet.id for subnet in subnets}]
    if missing:
        yield finding(
            "existing-subnets-of-other-vpc",
            key,
            value,
            missing=missing,
            vpc_id=found.vpc_id,
            cluster=settings.cluster.existing,
        )
    elsewhere = sorted(one for one in found.network.selected if found.network.subnets[one].vpc_id != found.vpc_id)
    if elsewhere:
        yield finding("subnet-tags-in-other-vpc", key, value, elsewhere=elsewhere)
    for subnet in subnets:
        if subnet.way_out == "public":
            yield _public(key, value, subnet)
        elif not subnet.leads_out and not found.network.has_endpoints:
            yield finding("subnet-without-way-out", key, value, without_way_out=subnet.without_way_out)
        if not settings.cilium.install and subnet.free < RECOMMENDED_ADDRESSES:
            yield finding("few-addresses-with-vpc-cni", key, value, subnet=subnet.id, free=subnet.free)


def _public(key: str, value: str, subnet: FoundSubnet) -> Finding:
    """A subnet whose default route leads to an internet gateway: the cluster's own nodes may live in such ones."""
    if subnet.gives_public_addresses:
        return finding("subnet-public", key, value, subnet=subnet.id)
    return finding("subnet-public-without-address", key, value, subnet=subnet.id)


def _where(settings: ExistingEksSettings, found: FoundCluster) -> tuple[str, str]:
    """Key and value by which it is said which subnets are meant."""
    network = settings.network
    if network.subnet_tags:
        return key_of("network", "subnetTags"), shown(network.subnet_tags)
    if network.subnet_ids:
        return key_of("network", "subnetIds"), shown(network.subnet_ids)
    of_groups = f"(not set; of the managed node groups: {', '.join(found.subnet_ids)})" if found.subnet_ids else ""
    return key_of("network", "subnetIds"), Shown(of_groups or "(not set)")


def _groups(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    for index, group in enumerate(settings.network.node_security_group_ids):
        vpc = found.network.groups.get(group)
        if vpc != found.vpc_id:
            code = "security-group-missing" if vpc is None else "security-group-of-other-vpc"
            yield finding(code, ("network", "nodeSecurityGroupIds", index), group, vpc=vpc, vpc_id=found.vpc_id)


def _network(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    """Never a second network; and never none."""
    there = found.workloads
    key, value = key_of("cilium", "install"), shown(settings.cilium.install)
    runs = [f"{NETWORKS[name]} (DaemonSet {name})" for name in there.networks]
    if settings.cilium.install:
        yield from _overlay(settings, found)
        if runs or there.kube_proxy or (there.ready and not there.own_network):
            what = " and ".join([*runs, *(["kube-proxy"] if there.kube_proxy else [])])
            what = what or f"{there.ready} nodes that are ready, and so a network"
            yield finding("second-network", key, value, cluster=settings.cluster.existing, what=what)
        return
    if not runs and not there.ready:
        yield finding("network-missing", key, value, cluster=settings.cluster.existing)
    if "cilium" in there.networks:
        without = [name for name, spec in settings.node_pools.items() if not _has_startup_taint(spec)]
        for name in without:
            yield finding(
                "cilium-taint-missing",
                ("nodePools", name, "template", "spec", "startupTaints"),
                None,
                taint=manifests.CILIUM_STARTUP_TAINT["key"],
                cluster=settings.cluster.existing,
            )


def _has_startup_taint(spec: manifests.Spec) -> bool:
    taints = manifests.node_template(spec).get("startupTaints") or []
    return any(taint.get("key") == manifests.CILIUM_STARTUP_TAINT["key"] for taint in taints)


def _overlay(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Finding]:
    pods = settings.network.pod_cidr
    if pods is None:
        return
    for cidr in [*found.network.cidrs, *([found.service_cidr] if found.service_cidr else [])]:
        if pods.overlaps(IPv4Network(cidr)):
            yield finding(
                "pod-cidr-overlaps-vpc",
                ("network", "podCidr"),
                pods,
                cidr=cidr,
                vpc_id=found.vpc_id,
                cluster=settings.cluster.existing,
                taken=[*found.network.cidrs, found.service_cidr],
            )


def _others(settings: ExistingEksSettings, there: Workloads) -> Iterator[Finding]:
    for controller in there.controllers:
        yield _of(settings, "other-karpenter", controller=controller)
    if there.definitions and not there.controllers:
        names = " ".join(there.definitions)
        yield _of(
            settings,
            "existing-eks-foreign-crds",
            definitions=there.definitions,
            names=names,
            namespace=KARPENTER_NAMESPACE,
        )
    for autoscaler in there.autoscalers:
        yield _of(settings, "existing-eks-cluster-autoscaler", autoscaler=autoscaler)


def _places(settings: ExistingEksSettings, there: Workloads) -> Iterator[Finding]:
    needed = settings.karpenter.replicas
    # Without a network no node is ready before Cilium is there.
    if settings.cilium.install or there.places >= needed:
        return
    yield finding(
        "existing-eks-too-few-places",
        ("karpenter", "replicas"),
        needed,
        cluster=settings.cluster.existing,
        places=there.places,
        namespace=KARPENTER_NAMESPACE,
    )
