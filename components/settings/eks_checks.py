"""Rules between sections of an EKS environment's configuration; those within one section are in `eks`.

Each rule takes the sections that it needs and yields what is wrong, so that all of it can be shown at once. A
section that is not valid by itself is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from karpenter import crds, images
from karpenter.findings import Finding
from karpenter.instance_types import ARCHITECTURE, CAPACITY_TYPE, OPERATING_SYSTEM, ZONE, Facts, InstanceType
from karpenter.offers import Offers
from karpenter.requirements import RequirementError, allows, requirements

from .. import versions
from ..documents import manifests
from ..documents.partitions import endpoint_services
from ..problems import Shown, did_you_mean, finding, key_of
from .addon_checks import tags_of_others, taint_of_none, version_of_none
from .block_device_checks import block_devices
from .chart_checks import chart_values, resource_values
from .egress_checks import egress_checks, opened_before_it_is_trusted, system_nodes_too_old
from .eks import needed_endpoints, unreached_registries
from .node_pool_checks import endless_drain, negative_limits, node_class_reference
from .region_checks import aws_zones, region_checks
from .requirement_checks import instance_type, requirement_checks
from .sections import public_network
from .version_checks import cilium_version, eks_version, karpenter_support, support_ended

if TYPE_CHECKING:
    from .eks import (
        AddonsSettings,
        CiliumSettings,
        ClusterSettings,
        ImagesSettings,
        KarpenterSettings,
        NetworkSettings,
        SystemNodesSettings,
    )
    from .proxy import ProxySettings


#: For a replica of Karpenter (1 CPU, 1 GiB by default), CoreDNS, Cilium and the system.
_LEAST_MEMORY: Final = 7 * 2**29
_GPUS: Final = "karpenter.k8s.aws/instance-gpu-count"
#: Fields of `NetworkSettings` that say something of a VPC that is there, and of one that the stack makes.
_OF_AN_EXISTING_NETWORK: Final = (
    "subnet_ids",
    "subnet_tags",
    "tag_subnets",
    "control_plane_subnet_ids",
    "node_security_group_ids",
)
_OF_AN_OWN_NETWORK: Final = ("zones", "nat_gateways", "endpoints", "flow_log_retention_days")


@dataclass(frozen=True)
class _Valid:
    """The sections that are valid, by the names of `EksSettings`' fields; None for the others."""

    region: str | None = None
    cluster: ClusterSettings | None = None
    network: NetworkSettings | None = None
    system_nodes: SystemNodesSettings | None = None
    karpenter: KarpenterSettings | None = None
    images: ImagesSettings | None = None
    proxy: ProxySettings | None = None
    trusted_certificates: Sequence[str] | None = None
    addons: AddonsSettings | None = None
    cilium: CiliumSettings | None = None
    tags: dict[str, str] | None = None
    node_classes: dict[str, dict[str, Any]] | None = None
    node_pools: dict[str, dict[str, Any]] | None = None

    @property
    def known_region(self) -> str | None:
        """The region, if there is one of that name."""
        wrong = self.region is not None and Offers.load("aws").region(self.region) == "wrong"
        return None if wrong else self.region


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `EksSettings`' fields.
        today: The day that decides which versions are offered.
    """
    given = _Valid(**{field.name: valid.get(field.name) for field in fields(_Valid)})
    yield from _of_cluster(given, today)
    yield from _of_network(given)
    yield from _of_karpenter(given)
    yield from egress_checks(valid, today)
    yield from _of_system_nodes(given, today)
    yield from _of_node_classes(given, today)
    yield from _of_node_pools(given)


def _of_cluster(given: _Valid, today: date) -> Iterator[Finding]:
    if (cluster := given.cluster) is not None:
        chosen = given.karpenter.chart_version if given.karpenter else versions.KARPENTER_AWS
        yield from eks_version(cluster.version, today, karpenter=chosen)
        yield from cilium_version(given.cilium.chart_version if given.cilium else versions.CILIUM, cluster.version)
        yield from support_ended(cluster.version, cluster.support_type, today)
        yield from karpenter_support(chosen, today)
        if given.addons is not None:
            yield from version_of_none(cluster, given.addons)
    if given.region is not None:
        yield from region_checks("aws", "aws:region", given.region)
    if given.addons is not None:
        yield from tags_of_others(given.tags or {}, given.addons)


def _of_network(given: _Valid) -> Iterator[Finding]:
    if (network := given.network) is None:
        return
    yield from public_network("network", "vpcCidr", network.vpc_cidr)
    yield from _whose_network(network)
    if given.cluster is not None:
        yield from _no_way_in(network, given.cluster)
    if given.karpenter is not None and given.addons is not None:
        yield from _no_way_out(network, given.karpenter, given.addons)
        yield from _no_images(network, given.addons, given.images, given.proxy)
    if (region := given.known_region) is not None:
        yield from _endpoints_elsewhere(network, region)
        yield from aws_zones(region, network.zones)
        # What leads out of a VPC that is there, the settings do not say: existing_network does.
        if not network.vpc_id:
            endpoints = ("ec2",) if network.endpoints is True else network.endpoints or ()
            certificates = given.trusted_certificates or ()
            yield from opened_before_it_is_trusted(given.proxy, certificates, region, endpoints)
    if given.system_nodes is not None:
        yield from _too_few_pod_ranges(network, given.system_nodes)


def _of_karpenter(given: _Valid) -> Iterator[Finding]:
    if (karpenter := given.karpenter) is not None:
        yield from chart_values(karpenter.settings)
        yield from resource_values(karpenter.resources.requests, karpenter.resources.limits)
        if given.system_nodes is not None:
            yield from _too_many_replicas(karpenter, given.system_nodes)


def _of_system_nodes(given: _Valid, today: date) -> Iterator[Finding]:
    if (nodes := given.system_nodes) is not None:
        if given.known_region is not None:
            yield from _system_nodes(nodes, given.known_region)
        yield from system_nodes_too_old(nodes, given.proxy)
        if given.cluster is not None:
            yield from _release(nodes.release_version, given.cluster.version, today)


def _of_node_classes(given: _Valid, today: date) -> Iterator[Finding]:
    for name, spec in (given.node_classes or {}).items():
        yield from node_class(name, spec, given.network.pod_cidr_mask_size if given.network else None)
        if given.cluster is not None:
            yield from image_checks(name, spec, given.cluster.version, today)
        yield from block_devices(name, spec)


def _of_node_pools(given: _Valid) -> Iterator[Finding]:
    for name, spec in (given.node_pools or {}).items():
        yield from windows_alone(name, spec)
        yield from node_pool(name, spec, given.node_classes, given.karpenter)
        yield from endless_drain(name, spec)
        yield from negative_limits(name, spec)
        if given.addons is not None:
            yield from taint_of_none(name, spec, given.addons)
        yield from bottlerocket_on_arm(name, spec, given.node_classes)
        if given.network is not None:
            yield from _zones_without_subnet(name, spec, given.network, given.node_classes)
        if given.known_region is not None:
            chart_settings = given.karpenter.settings if given.karpenter is not None else {}
            yield from requirement_checks("aws", given.known_region, name, spec, chart_settings)


def _whose_network(network: NetworkSettings) -> Iterator[Finding]:
    """What belongs to an existing network alone, or to the stack's own."""
    said = network.model_dump(include=network.model_fields_set, mode="json")
    if network.vpc_id is None:
        for field in _OF_AN_EXISTING_NETWORK:
            if said.get(field):
                yield finding("setting-of-existing-vpc", ("network", to_camel(field)), said[field])
        return
    for field in _OF_AN_OWN_NETWORK:
        if said.get(field):
            yield finding("setting-of-own-vpc", ("network", to_camel(field)), said[field], vpc_id=network.vpc_id)
    if bool(network.subnet_ids) == bool(network.subnet_tags):
        yield finding(
            "eks-subnets-ambiguous",
            ("network", "subnetIds"),
            network.subnet_ids if network.subnet_ids else None,
            vpc_id=network.vpc_id,
        )
    if network.tag_subnets and network.subnet_tags:
        yield finding("subnet-tags-written-twice", ("network", "tagSubnets"), network.tag_subnets)


def _no_way_in(network: NetworkSettings, cluster: ClusterSettings) -> Iterator[Finding]:
    """An existing network may lead to the API server, whose security group then admits nobody who comes from there."""
    if network.vpc_id is not None and not cluster.public_access_cidrs and not cluster.private_access_cidrs:
        yield finding(
            "api-server-without-clients",
            ("cluster", "privateAccessCidrs"),
            Shown("[]"),
            vpc_id=network.vpc_id,
            vpc_cidr=network.vpc_cidr,
        )


def _no_way_out(network: NetworkSettings, karpenter: KarpenterSettings, addons: AddonsSettings) -> Iterator[Finding]:
    """A network without a gateway, in which nothing but endpoints leads to AWS."""
    if not network.isolated:
        return
    named = network.endpoints if isinstance(network.endpoints, list) else []
    missing = [one for one in needed_endpoints(karpenter, addons) if one not in named]
    if network.endpoints is not True and missing:
        yield finding("endpoints-missing", ("network", "endpoints"), network.endpoints, missing=missing)
    if str(karpenter.settings.get("isolatedVPC", True)).lower() != "true":
        yield finding(
            "controller-not-isolated", ("karpenter", "settings", "isolatedVPC"), karpenter.settings["isolatedVPC"]
        )


def _endpoints_elsewhere(network: NetworkSettings, region: str) -> Iterator[Finding]:
    """Endpoints where their services have other names than in the public partition, and not all of them."""
    if network.endpoints and len(names := endpoint_services("sts", region)) > 1:
        yield finding(
            "endpoint-names-by-partition",
            ("network", "endpoints"),
            network.endpoints,
            region=region,
            names=" or ".join(names),
        )


def _no_images(
    network: NetworkSettings, addons: AddonsSettings, settings: ImagesSettings | None, proxy: ProxySettings | None
) -> Iterator[Finding]:
    """A network out of which nothing leads, to public registries neither, unless through a proxy."""
    if not network.isolated or settings is None:
        return
    if missing := unreached_registries(addons, settings, proxy):
        yield finding("mirrors-missing", ("images", "mirrors"), settings.mirrors, missing=missing)


def _system_nodes(nodes: SystemNodesSettings, region: str) -> Iterator[Finding]:
    offers = Offers.load("aws")
    yield from instance_type(offers, key_of("systemNodes", "instanceType"), nodes.instance_type, region)
    known = Facts.load("aws").types.get(nodes.instance_type)
    if known is not None:
        yield from _unfit_system_nodes(known)
    architecture = "arm64" if "ARM_64" in nodes.ami_type else "amd64"
    if known is not None and known.labels.get(ARCHITECTURE) != architecture:
        yield finding(
            "system-node-architecture",
            ("systemNodes", "instanceType"),
            nodes.instance_type,
            own=known.labels.get(ARCHITECTURE),
            ami_type=nodes.ami_type,
            architecture=architecture,
        )


def _release(release: str, version: str, today: date) -> Iterator[Finding]:
    """Releases of the system nodes' image that do not exist, or that the facts do not know."""
    found = images.verdict(f"al2023@v{release.rpartition('-')[2]}", version, today) if release else None
    if found:
        yield finding(
            "release-version",
            ("systemNodes", "releaseVersion"),
            release,
            warning=not found.certain,
            said=found.said,
            version=version,
        )


def _unfit_system_nodes(known: InstanceType) -> Iterator[Finding]:
    """Warnings about types that EKS takes."""
    key = key_of("systemNodes", "instanceType")
    if known.vcpus < 2 or known.memory < _LEAST_MEMORY:
        yield finding("system-node-too-small", key, known.name, vcpus=known.vcpus, gibibytes=known.memory / 2**30)
    if _GPUS in known.labels:
        yield finding("system-node-with-gpu", key, known.name)


def image_checks(
    name: str, spec: Mapping[str, Any], version: str, today: date, *, cilium: bool = True
) -> Iterator[Finding]:
    """Problems of a node class's images, for a version of Kubernetes; `cilium`: whether it is the only network."""
    for index, term in enumerate(_entries(spec.get("amiSelectorTerms"))):
        alias = term.get("alias")
        if not isinstance(alias, str):
            continue
        key = key_of("nodeClasses", name, "amiSelectorTerms", index, "alias")
        if cilium and images.family(alias).startswith("windows"):
            yield finding("windows-image", key, alias)
        elif found := images.verdict(alias, version, today):
            yield finding("image-missing", key, alias, warning=not found.certain, said=found.said, wanted=found.wanted)


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, where it is one; of what shape they are is for the schema to say."""
    yield from (entry if isinstance(entry, Mapping) else {} for entry in (value if isinstance(value, list) else []))


def bottlerocket_on_arm(
    name: str, spec: Mapping[str, Any], node_classes: Mapping[str, Any] | None
) -> Iterator[Finding]:
    """A warning about nodes on which Cilium's agent was seen not to start."""
    node_class = (node_classes or {}).get(manifests.node_class_name(spec)) or {}
    aliases = [str(term.get("alias", "")) for term in _entries(node_class.get("amiSelectorTerms"))]
    bottlerocket = node_class.get("amiFamily") == "Bottlerocket" or any(
        images.family(alias) == "bottlerocket" for alias in aliases
    )
    if bottlerocket and _allows(spec, ARCHITECTURE, "arm64"):
        yield _of_requirements("bottlerocket-on-arm", name, spec, architecture=ARCHITECTURE)


def _zones_without_subnet(
    name: str, spec: Mapping[str, Any], network: NetworkSettings, node_classes: Mapping[str, Any] | None
) -> Iterator[Finding]:
    node_class = (node_classes or {}).get(manifests.node_class_name(spec)) or {}
    if isinstance(network.zones, int) or node_class.get("subnetSelectorTerms"):
        return
    try:
        wanted = requirements(spec)
    except RequirementError:
        return  # the schema's checks say what is wrong with it
    if not any(allows(wanted, ZONE, zone) for zone in network.zones):
        yield finding(
            "zones-without-subnet",
            ("nodePools", name, "template", "spec", "requirements"),
            [str(one) for one in wanted if one.key == ZONE],
            zones=network.zones,
        )


def _too_few_pod_ranges(network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    nodes = 2 ** (network.pod_cidr_mask_size - network.pod_cidr.prefixlen)
    if nodes <= system_nodes.max_size:
        yield finding(
            "eks-pod-cidr-too-small",
            ("network", "podCidr"),
            network.pod_cidr,
            nodes=nodes,
            pod_cidr_mask_size=network.pod_cidr_mask_size,
            max_size=system_nodes.max_size,
        )


def _too_many_replicas(karpenter: KarpenterSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    if karpenter.replicas > system_nodes.desired_size:
        yield finding(
            "eks-too-many-replicas",
            ("karpenter", "replicas"),
            karpenter.replicas,
            desired_size=system_nodes.desired_size,
        )


def node_class(name: str, spec: Mapping[str, Any], mask: int | None) -> Iterator[Finding]:
    """Problems of a node class; `mask`: prefix length of nodes' shares of an overlay network, if there is one."""
    for owned in sorted({"role", "instanceProfile"} & spec.keys()):
        yield finding("node-class-field-of-stack", ("nodeClasses", name, owned), spec[owned])
    if not spec.get("amiSelectorTerms"):
        yield finding("ami-selector-missing", ("nodeClasses", name, "amiSelectorTerms"), None)
    yield from _kubelet(name, spec.get("kubelet"))
    if mask is not None:
        yield from _too_many_pods(name, spec, mask)


def _too_many_pods(name: str, spec: Mapping[str, Any], mask: int) -> Iterator[Finding]:
    pods = manifests.max_pods(spec)
    if isinstance(pods, bool) or not isinstance(pods, int):
        yield finding("max-pods-invalid", ("nodeClasses", name, "kubelet", "maxPods"), pods)
        return
    # Cilium keeps the first and the last address, the router's and the health endpoint's.
    room = 2 ** (32 - mask) - 4
    if pods > room:
        yield finding("max-pods-above-share", ("nodeClasses", name, "kubelet", "maxPods"), pods, room=room, mask=mask)


def _kubelet(name: str, configuration: Any) -> Iterator[Finding]:
    """What the kubelet's configuration does not have; `maxPods` has rules of its own."""
    if not isinstance(configuration, Mapping):
        return
    for found in crds.kubelet_problems({key: value for key, value in configuration.items() if key != "maxPods"}):
        meant = did_you_mean(str(found.path[-1]), found.choices) if found.choices else ""
        message = "is no field of the kubelet's configuration" if found.choices else found.message
        yield finding(
            "kubelet-refused-by-karpenter",
            ("nodeClasses", name, "kubelet", *found.path),
            found.value,
            message=message,
            meant=meant,
        )


def windows_alone(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """A NodePool of nodes on which Cilium does not run."""
    if _allows(spec, OPERATING_SYSTEM, "windows") and not _allows(spec, OPERATING_SYSTEM, "linux"):
        yield _of_requirements("linux-not-admitted", name, spec, operating_system=OPERATING_SYSTEM)


def node_pool(
    name: str, spec: Mapping[str, Any], node_classes: Mapping[str, Any] | None, karpenter: KarpenterSettings | None
) -> Iterator[Finding]:
    """Problems of a NodePool with its node class and the controller."""
    yield from node_class_reference(name, spec, manifests.EC2_NODE_CLASS, node_classes)
    if karpenter is not None and not karpenter.interruption_queue and _allows(spec, CAPACITY_TYPE, "spot"):
        yield _of_requirements("spot-without-queue", name, spec, capacity_type=CAPACITY_TYPE)


def _of_requirements(code: str, name: str, spec: Mapping[str, Any], **words: Any) -> Finding:
    value = manifests.node_template(spec).get("requirements", [])
    return finding(code, ("nodePools", name, "template", "spec", "requirements"), value, **words)


def _allows(spec: Mapping[str, Any], label: str, value: str) -> bool:
    """Whether a NodePool's nodes may have a value of a label; where it requires nothing of the label they may."""
    try:
        return allows(requirements(spec), label, value)
    except RequirementError:
        return False  # the schema's checks say what is wrong with it
