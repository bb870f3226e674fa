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

from ..documents import manifests
from ..naming import KARPENTER_NAMESPACE
from ..problems import Problem, SettingsError, doubts, key_of, shown
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
_PRIVATE_ONES: Final = (
    "name private subnets in karpstack:network.subnetIds, whose default route leads to a NAT or transit gateway"
)


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
    return SettingsError(
        [
            _of(
                settings,
                "is not in this account and region: there is nothing that Karpenter could be put on",
                f"write a name that `aws eks list-clusters --region {settings.region}` prints, or remove the key, and "
                "the stack makes a cluster",
            )
        ]
    )


def check(settings: ExistingEksSettings, found: FoundCluster) -> list[Problem]:
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


def problems(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    """What is, or may be, in the way; the arguments are those of `check`."""
    name = settings.cluster.existing
    if found.status != "ACTIVE":
        yield _of(
            settings,
            f"is {found.status}: EKS takes no access entry and no pod identity association for it now",
            f"wait until it is ACTIVE: aws eks wait cluster-active --region {settings.region} --name {name}",
        )
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
            settings,
            f"does not let in whoever deploys as an administrator: {found.workloads.refusal}; roles and a queue would "
            "be made, and then neither Karpenter nor a NodePool",
            f"see that there is a way to its endpoint from here, and have an administrator of it run: aws eks "
            f"create-access-entry --region {settings.region} --cluster-name {name} --principal-arn <your role>; then "
            "aws eks associate-access-policy with the same, --access-scope type=cluster and --policy-arn "
            "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        )
        return
    yield from _network(settings, found)
    yield from _others(settings, found.workloads)
    yield from _places(settings, found.workloads)


def _of(settings: ExistingEksSettings, consequence: str, fix: str, *, warning: bool = False) -> Problem:
    return Problem(key_of("cluster", "existing"), shown(settings.cluster.existing), consequence, fix, warning)


def _access(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    if found.authentication_mode not in ("API", _NEEDS_API):
        yield _of(
            settings,
            f"has the authentication mode {found.authentication_mode}: EKS takes no access entry for the role of "
            "Karpenter's nodes, so that instances would be launched and never join, again and again",
            "have its owner run, which cannot be taken back and leaves the ConfigMap aws-auth as it is: aws eks "
            f"update-cluster-config --region {settings.region} --name {settings.cluster.existing} --access-config "
            f"authenticationMode={_NEEDS_API}",
        )
    if found.auto_mode:
        yield _of(
            settings,
            "has EKS Auto Mode, which has brought CRDs of NodePools and NodeClaims; AWS says that nobody else is to "
            "change them, and the chart karpenter-crd would",
            "use Auto Mode's NodePools, or have its owner switch it off before: aws eks update-cluster-config "
            "--compute-config enabled=false and what goes with it",
        )


def _identity(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    kind, name = settings.karpenter.identity, settings.cluster.existing
    key, value = key_of("karpenter", "identity"), shown(kind)
    if kind == "irsa" and not found.has_provider:
        yield Problem(
            key,
            value,
            f"needs an OIDC provider of IAM for the issuer of {name}, and the account has none: the controller would "
            "get no credentials",
            f"have one made: eksctl utils associate-iam-oidc-provider --region {settings.region} --cluster {name} "
            "--approve; or write pod-identity",
        )
    if kind == "pod-identity" and not found.workloads.refusal and not found.workloads.agent:
        yield Problem(
            key,
            value,
            f"needs the Pod Identity agent on the nodes of {name}, and it has none: the controller would get no "
            "credentials",
            f"have it installed, which serves others too: aws eks create-addon --region {settings.region} "
            f"--cluster-name {name} --addon-name eks-pod-identity-agent; or write irsa",
        )


def _subnets(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    network = node_network(settings, found.vpc_id, found.subnet_ids)
    key, value = _where(settings, found)
    subnets = found.network.node_subnets(network)
    if not subnets and not settings.network.subnet_ids:
        yield Problem(
            key,
            value,
            f"are carried by no subnet of {found.vpc_id}: there is none where a node could live"
            if settings.network.subnet_tags
            else "leaves open where nodes live: without it they live where the managed node groups do, and "
            f"{settings.cluster.existing} has none",
            f"name private subnets of {found.vpc_id}",
        )
    missing = [one for one in settings.network.subnet_ids if one not in {subnet.id for subnet in subnets}]
    if missing:
        yield Problem(
            key,
            value,
            f"names {', '.join(missing)}, not in {found.vpc_id}, the VPC of {settings.cluster.existing}: nodes there "
            "would not reach it",
            f"name subnets that `aws ec2 describe-subnets --filters Name=vpc-id,Values={found.vpc_id}` lists",
        )
    elsewhere = sorted(one for one in found.network.selected if found.network.subnets[one].vpc_id != found.vpc_id)
    if elsewhere:
        yield Problem(
            key,
            value,
            f"are carried by {', '.join(elsewhere)} too, of another VPC: Karpenter looks for tags in the whole region, "
            "would try to launch nodes there, and EC2 refuses them",
            "add a tag that only this VPC's subnets have, or name the subnets in karpstack:network.subnetIds",
        )
    for subnet in subnets:
        if subnet.way_out == "public":
            yield _public(key, value, subnet)
        elif not subnet.leads_out and not found.network.has_endpoints:
            yield Problem(
                key,
                value,
                f"has {subnet.without_way_out}, in a VPC without endpoints: a node there reaches neither EC2 nor a "
                "registry, and would never join",
                _PRIVATE_ONES,
            )
        if not settings.cilium.install and subnet.free < RECOMMENDED_ADDRESSES:
            yield Problem(
                key,
                value,
                f"has {subnet.id} with {subnet.free} free addresses: with the VPC CNI each pod of a node takes one, "
                "so nodes may be launched on which no pod gets an address",
                "name larger subnets",
                warning=True,
            )


def _public(key: str, value: str, subnet: FoundSubnet) -> Problem:
    """A subnet whose default route leads to an internet gateway: the cluster's own nodes may live in such ones."""
    if subnet.gives_public_addresses:
        return Problem(
            key,
            value,
            f"has {subnet.id}, a public subnet: each node there gets a public address, which anybody can try as far as "
            "security groups let them",
            _PRIVATE_ONES,
            warning=True,
        )
    return Problem(
        key,
        value,
        f"has {subnet.id}, a public subnet (its default route leads to an internet gateway) that gives machines no "
        "public address: a node there has no way out, and would never join",
        _PRIVATE_ONES,
    )


def _where(settings: ExistingEksSettings, found: FoundCluster) -> tuple[str, str]:
    """Key and value by which it is said which subnets are meant."""
    network = settings.network
    if network.subnet_tags:
        return key_of("network", "subnetTags"), shown(network.subnet_tags)
    if network.subnet_ids:
        return key_of("network", "subnetIds"), shown(network.subnet_ids)
    of_groups = f"(not set; of the managed node groups: {', '.join(found.subnet_ids)})" if found.subnet_ids else ""
    return key_of("network", "subnetIds"), of_groups or "(not set)"


def _groups(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    for index, group in enumerate(settings.network.node_security_group_ids):
        vpc = found.network.groups.get(group)
        if vpc != found.vpc_id:
            yield Problem(
                key_of("network", "nodeSecurityGroupIds", index),
                shown(group),
                ("is not in this account and region" if vpc is None else f"belongs to another VPC, {vpc}")
                + ": EC2 would launch no node with it",
                f"name a security group of {found.vpc_id}",
            )


def _network(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    """Never a second network; and never none."""
    there = found.workloads
    key, value = key_of("cilium", "install"), shown(settings.cilium.install)
    runs = [f"{NETWORKS[name]} (DaemonSet {name})" for name in there.networks]
    if settings.cilium.install:
        yield from _overlay(settings, found)
        if runs or there.kube_proxy or (there.ready and not there.own_network):
            what = " and ".join([*runs, *(["kube-proxy"] if there.kube_proxy else [])])
            yield Problem(
                key,
                value,
                f"would put Cilium into {settings.cluster.existing}, which has "
                + (what or f"{there.ready} nodes that are ready, and so a network")
                + " already: two of them on one node take each other's pods off the network",
                "remove it: Karpenter works with the network that is there; to Cilium leads a cluster of its own, see "
                "docs/existing-cluster.md",
            )
        return
    if not runs and not there.ready:
        yield Problem(
            key,
            value,
            f"leaves {settings.cluster.existing} without a network, for it has none that is known here, and no node is "
            "ready: neither the controller nor any other pod would start",
            "install one, for example the add-on vpc-cni; or set karpstack:cilium.install to true and "
            "karpstack:network.podCidr",
        )
    if "cilium" in there.networks:
        without = [name for name, spec in settings.node_pools.items() if not _has_startup_taint(spec)]
        for name in without:
            yield Problem(
                key_of("nodePools", name, "template", "spec", "startupTaints"),
                "(not set)",
                f"lacks {manifests.CILIUM_STARTUP_TAINT['key']}, and Cilium runs in {settings.cluster.existing}: its "
                "operator sets that taint by itself, and Karpenter, which did not expect it, may launch nodes again",
                "add it with the effect that its value agentNotReadyTaintKey goes with: {key: "
                f"{manifests.CILIUM_STARTUP_TAINT['key']}, value: 'true', effect: NoExecute}}",
                warning=True,
            )


def _has_startup_taint(spec: manifests.Spec) -> bool:
    taints = manifests.node_template(spec).get("startupTaints") or []
    return any(taint.get("key") == manifests.CILIUM_STARTUP_TAINT["key"] for taint in taints)


def _overlay(settings: ExistingEksSettings, found: FoundCluster) -> Iterator[Problem]:
    pods = settings.network.pod_cidr
    if pods is None:
        return
    for cidr in [*found.network.cidrs, *([found.service_cidr] if found.service_cidr else [])]:
        if pods.overlaps(IPv4Network(cidr)):
            yield Problem(
                key_of("network", "podCidr"),
                shown(pods),
                f"overlaps {cidr}, a range of {found.vpc_id} or of the Services of {settings.cluster.existing}: "
                "traffic for one would be sent to the other",
                f"choose a range outside {', '.join([*found.network.cidrs, found.service_cidr])}",
            )


def _others(settings: ExistingEksSettings, there: Workloads) -> Iterator[Problem]:
    for controller in there.controllers:
        yield _of(
            settings,
            f"has a Karpenter already, the Deployment {controller}: two of them act on the same NodePools, and launch "
            "and end each other's nodes",
            "have that one removed, or its NodePools taken over there: a stack of this program brings its own",
        )
    if there.definitions and not there.controllers:
        names = " ".join(there.definitions)
        yield _of(
            settings,
            f"has {', '.join(there.definitions)} already, which Helm has not made for the release karpenter-crd: it "
            "refuses to take them over, after roles and queue were made",
            "where no Karpenter uses them any more, delete them with their objects; to keep the objects, hand them to "
            f"Helm: kubectl label crd {names} app.kubernetes.io/managed-by=Helm --overwrite, and kubectl annotate crd "
            f"{names} meta.helm.sh/release-name=karpenter-crd meta.helm.sh/release-namespace={KARPENTER_NAMESPACE} "
            "--overwrite",
        )
    for autoscaler in there.autoscalers:
        yield _of(
            settings,
            f"has Cluster Autoscaler too, the Deployment {autoscaler}: for one pending pod both may make a node, and "
            "it drains nodes of its groups while Karpenter fills them",
            "keep the two apart, or move over and scale it to nothing, as docs/move-from-cluster-autoscaler.md says",
            warning=True,
        )


def _places(settings: ExistingEksSettings, there: Workloads) -> Iterator[Problem]:
    needed = settings.karpenter.replicas
    # Without a network no node is ready before Cilium is there.
    if settings.cilium.install or there.places >= needed:
        return
    yield Problem(
        key_of("karpenter", "replicas"),
        shown(needed),
        f"is more than {settings.cluster.existing} has places for, {there.places}: each controller needs a Linux node "
        "of its own that is ready, was not made by Karpenter, and has no taint but CriticalAddonsOnly; pods in "
        f"{KARPENTER_NAMESPACE} would stay pending, and `pulumi up` would time out",
        "add nodes to a managed node group without taints, or lower replicas",
    )
