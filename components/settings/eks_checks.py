"""Rules between sections of an EKS environment's configuration; those within one section are in `eks`.

Each rule takes the sections that it needs and yields what is wrong, so that all of it can be shown at once. A
section that is not valid by itself is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from karpstack.karpenter import addresses, crds, images
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.instance_types import ARCHITECTURE, CAPACITY_TYPE, OPERATING_SYSTEM, ZONE, Facts
from karpstack.karpenter.offers import Offers
from karpstack.karpenter.requirements import RequirementError, allows, requirements

from .. import versions
from ..documents import manifests
from ..documents.partitions import endpoint_services
from ..problems import Judge, did_you_mean, finding, key_of
from .addon_checks import check_ebs_taint, check_reserved_tags, check_unused_version
from .block_device_checks import block_devices
from .chart_checks import controller_values, oversized_requests
from .egress_checks import early_call_warning, egress_checks, system_nodes_too_old
from .eks import needed_endpoints, unreached_registries
from .node_pool_checks import endless_drain, negative_limits, node_class_reference, overlays_without_gate
from .region_checks import aws_zones, region_checks
from .requirement_checks import instance_type, requirement_checks
from .rules import check_sections
from .sections import public_network
from .version_checks import cilium_version, eks_version, karpenter_support, newer_charts, support_ended

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
#: EC2 User Guide, Using_Tags.
_LONGEST_TAG_KEY, _LONGEST_TAG_VALUE = 128, 256
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


def _of_versions(
    cluster: ClusterSettings,
    today: date,
    karpenter: KarpenterSettings | None = None,
    cilium: CiliumSettings | None = None,
) -> Iterator[Finding]:
    chosen = karpenter.chart_version if karpenter else versions.KARPENTER_AWS
    yield from eks_version(cluster.version, today, karpenter=chosen)
    yield from cilium_version(cilium.chart_version if cilium else versions.CILIUM, cluster.version)
    yield from support_ended(cluster.version, cluster.support_type, today)
    yield from karpenter_support(chosen, today)


def _whose_network(say: Judge, network: NetworkSettings) -> Iterator[Finding]:
    """What belongs to an existing network alone, or to the stack's own."""
    said = network.model_dump(include=network.model_fields_set, mode="json")
    fields, code = (
        (_OF_AN_OWN_NETWORK, "setting-of-own-vpc")
        if network.vpc_id
        else (_OF_AN_EXISTING_NETWORK, "setting-of-existing-vpc")
    )
    for field in fields:
        if said.get(field):
            yield say(code, f"network.{to_camel(field)}", vpc_id=network.vpc_id)
    if network.vpc_id is None:
        return
    if bool(network.subnet_ids) == bool(network.subnet_tags):
        yield say("eks-subnets-ambiguous", "network.subnetIds", network.subnet_ids or None, vpc_id=network.vpc_id)
    if network.tag_subnets and network.subnet_tags:
        yield say("subnet-tags-written-twice", "network.tagSubnets")


def _public_vpc(network: NetworkSettings) -> Iterator[Finding]:
    yield from public_network("network", "vpcCidr", network.vpc_cidr)


def _no_way_in(say: Judge, network: NetworkSettings, cluster: ClusterSettings) -> Iterator[Finding]:
    """An existing network may lead to the API server, whose security group then admits nobody who comes from there."""
    if network.vpc_id is not None and not cluster.public_access_cidrs and not cluster.private_access_cidrs:
        words = {"vpc_id": network.vpc_id, "vpc_cidr": network.vpc_cidr}
        yield say("api-server-without-clients", "cluster.privateAccessCidrs", **words)


def _no_way_out(
    say: Judge, network: NetworkSettings, karpenter: KarpenterSettings, addons: AddonsSettings
) -> Iterator[Finding]:
    """A network without a gateway, in which nothing but endpoints leads to AWS."""
    if not network.isolated:
        return
    named = network.endpoints if isinstance(network.endpoints, list) else []
    missing = [one for one in needed_endpoints(karpenter, addons) if one not in named]
    if network.endpoints is not True and missing:
        yield say("endpoints-missing", "network.endpoints", missing=missing)
    if str(karpenter.settings.get("isolatedVPC", True)).lower() != "true":
        yield say("controller-not-isolated", "karpenter.settings.isolatedVPC")


def _no_images(
    say: Judge,
    network: NetworkSettings,
    addons: AddonsSettings,
    images: ImagesSettings,
    proxy: ProxySettings | None = None,
) -> Iterator[Finding]:
    """A network out of which nothing leads, to public registries neither, unless through a proxy."""
    if network.isolated and (missing := unreached_registries(addons, images, proxy)):
        yield say("mirrors-missing", "images.mirrors", missing=missing)


def _endpoints_elsewhere(say: Judge, network: NetworkSettings, known_region: str) -> Iterator[Finding]:
    """Endpoints where their services have other names than in the public partition, and not all of them."""
    if network.endpoints and len(names := endpoint_services("sts", known_region)) > 1:
        words = {"region": known_region, "names": " or ".join(names)}
        yield say("endpoint-names-by-partition", "network.endpoints", **words)


def _trusted_too_late(
    network: NetworkSettings,
    known_region: str,
    proxy: ProxySettings | None = None,
    trusted_certificates: Sequence[str] = (),
) -> Iterator[Finding]:
    """What leads out of a VPC that is there, the settings do not say: existing_network does."""
    if not network.vpc_id:
        endpoints = ("ec2",) if network.endpoints is True else network.endpoints or ()
        yield from early_call_warning(proxy, trusted_certificates, known_region, endpoints)


def _system_nodes(say: Judge, system_nodes: SystemNodesSettings, known_region: str) -> Iterator[Finding]:
    key, name = "systemNodes.instanceType", system_nodes.instance_type
    yield from instance_type(Offers.load("aws"), key_of(*key.split(".")), name, known_region)
    if re.match(r"mac[0-9]*[-.]", name, re.ASCII):
        yield say("system-node-with-macos", key)
    known = Facts.load("aws").types.get(name)
    if known is None:
        return
    # Warnings about types that EKS takes.
    if known.vcpus < 2 or known.memory < _LEAST_MEMORY:
        yield say("system-node-too-small", key, vcpus=known.vcpus, gibibytes=known.memory / 2**30)
    if _GPUS in known.labels:
        yield say("system-node-with-gpu", key)
    own, architecture = known.labels.get(ARCHITECTURE), "arm64" if "ARM_64" in system_nodes.ami_type else "amd64"
    if own != architecture:
        words = {"own": own, "ami_type": system_nodes.ami_type, "architecture": architecture}
        yield say("system-node-architecture", key, **words)


def _release(system_nodes: SystemNodesSettings, cluster: ClusterSettings, today: date) -> Iterator[Finding]:
    """Releases of the system nodes' image that do not exist, or that the facts do not know."""
    release, version = system_nodes.release_version, cluster.version
    if not release:
        return
    # The node group has the cluster's version, and EKS takes no release of another one with it.
    if not re.fullmatch(rf"{re.escape(version)}\.\d+-\d{{8}}", release, re.ASCII):
        said, warning = f"is not a release for Kubernetes {version}, the version of the system nodes", False
    elif found := images.verdict(f"al2023@v{release.rpartition('-')[2]}", version, today):
        said, warning = found.said, not found.certain
    else:
        return
    words = {"said": said, "version": version}
    yield finding("release-version", ("systemNodes", "releaseVersion"), release, warning=warning, **words)


def _images(name: str, spec: Mapping[str, Any], cluster: ClusterSettings, today: date) -> Iterator[Finding]:
    yield from image_checks(name, spec, cluster.version, today)


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
    name: str, spec: Mapping[str, Any], node_classes: Mapping[str, Any] | None = None
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
    name: str, spec: Mapping[str, Any], network: NetworkSettings, node_classes: Mapping[str, Any] | None = None
) -> Iterator[Finding]:
    node_class = (node_classes or {}).get(manifests.node_class_name(spec)) or {}
    if isinstance(network.zones, int) or node_class.get("subnetSelectorTerms"):
        return
    try:
        wanted = requirements(spec)
    except RequirementError:
        return  # the schema's checks say what is wrong with it
    if not any(allows(wanted, ZONE, zone) for zone in network.zones):
        value = [str(one) for one in wanted if one.key == ZONE]
        yield finding("zones-without-subnet", _requirements_of(name), value, zones=network.zones)


def _too_few_pod_ranges(say: Judge, network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    mask, most = network.pod_cidr_mask_size, system_nodes.max_size
    if (nodes := addresses.nodes(network.pod_cidr.prefixlen, mask)) <= most:
        words = {"nodes": nodes, "pod_cidr_mask_size": mask, "max_size": most}
        yield say("eks-pod-cidr-too-small", "network.podCidr", **words)


def _controller_on_system_nodes(
    say: Judge, karpenter: KarpenterSettings, system_nodes: SystemNodesSettings
) -> Iterator[Finding]:
    if karpenter.replicas > system_nodes.desired_size:
        yield say("eks-too-many-replicas", "karpenter.replicas", desired_size=system_nodes.desired_size)
    yield from oversized_requests("aws", karpenter.resources, system_nodes.instance_type, "systemNodes.instanceType")


def node_class(name: str, spec: Mapping[str, Any], mask: int | None = None) -> Iterator[Finding]:
    """Problems of a node class; `mask`: prefix length of nodes' shares of an overlay network, if there is one."""
    for owned in sorted({"role", "instanceProfile"} & spec.keys()):
        yield finding("node-class-field-of-stack", ("nodeClasses", name, owned), spec[owned])
    if not spec.get("amiSelectorTerms"):
        yield finding("ami-selector-missing", ("nodeClasses", name, "amiSelectorTerms"), None)
    yield from _kubelet(name, spec.get("kubelet"))
    yield from _too_many_pods(name, spec, mask)
    yield from _tags(name, spec.get("tags"))


def _too_many_pods(name: str, spec: Mapping[str, Any], mask: int | None) -> Iterator[Finding]:
    pods = manifests.max_pods(spec)
    if pods is None:
        return  # Karpenter computes it for each instance type
    if isinstance(pods, bool) or not isinstance(pods, int) or pods <= 0:
        yield finding("max-pods-invalid", ("nodeClasses", name, "kubelet", "maxPods"), pods)
        return
    if mask is None:
        return
    # Cilium keeps the first and the last address, the router's and the health endpoint's.
    room = addresses.pods(mask)
    if pods > room:
        yield finding("max-pods-above-share", ("nodeClasses", name, "kubelet", "maxPods"), pods, room=room, mask=mask)


def _tags(name: str, tags: Any) -> Iterator[Finding]:
    """Tags that EC2 refuses; Karpenter gives them to instances and volumes."""
    for key, value in tags.items() if isinstance(tags, Mapping) else ():
        if key.lower().startswith("aws:"):
            why, fix = "has a key that begins with aws:, which is reserved", "choose another key"
        elif (length := len(key)) > (most := _LONGEST_TAG_KEY):
            why, fix = f"has a key of {length} characters, and at most {most} are allowed", "shorten the key"
        elif (length := len(str(value))) > (most := _LONGEST_TAG_VALUE):
            why, fix = f"has {length} characters, and at most {most} are allowed", "shorten the value"
        else:
            continue
        yield finding("node-class-tag-refused", ("nodeClasses", name, "tags", key), value, why=why, fix=fix)


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
    name: str,
    spec: Mapping[str, Any],
    node_classes: Mapping[str, Any] | None = None,
    karpenter: KarpenterSettings | None = None,
) -> Iterator[Finding]:
    """Problems of a NodePool with its node class and the controller."""
    yield from node_class_reference(name, spec, manifests.EC2_NODE_CLASS, node_classes)
    if karpenter is not None and not karpenter.interruption_queue and _allows(spec, CAPACITY_TYPE, "spot"):
        yield _of_requirements("spot-without-queue", name, spec, capacity_type=CAPACITY_TYPE)


def _of_requirements(code: str, name: str, spec: Mapping[str, Any], **words: Any) -> Finding:
    return finding(code, _requirements_of(name), manifests.node_template(spec).get("requirements", []), **words)


def _requirements_of(name: str) -> tuple[str, ...]:
    return "nodePools", name, "template", "spec", "requirements"


def _allows(spec: Mapping[str, Any], label: str, value: str) -> bool:
    """Whether a NodePool's nodes may have a value of a label; where it requires nothing of the label they may."""
    try:
        return allows(requirements(spec), label, value)
    except RequirementError:
        return False  # the schema's checks say what is wrong with it


#: Rules of a controller and of NodePools, whoever has made the cluster.
OF_NODE_POOLS: Final = (node_pool, endless_drain, negative_limits)


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `EksSettings`' fields.
        today: The day that decides which versions are offered.
    """
    network: NetworkSettings | None = valid.get("network")
    return check_sections(
        "aws",
        valid,
        today,
        rules=(
            _of_versions,
            check_unused_version,
            region_checks,
            check_reserved_tags,
            _public_vpc,
            _whose_network,
            _no_way_in,
            _no_way_out,
            _no_images,
            _endpoints_elsewhere,
            aws_zones,
            _trusted_too_late,
            _too_few_pod_ranges,
            controller_values,
            newer_charts,
            overlays_without_gate,
            _controller_on_system_nodes,
            egress_checks,
            _system_nodes,
            system_nodes_too_old,
            _release,
        ),
        of_node_classes=(node_class, _images, block_devices),
        of_node_pools=(
            windows_alone,
            *OF_NODE_POOLS,
            check_ebs_taint,
            bottlerocket_on_arm,
            _zones_without_subnet,
            requirement_checks,
        ),
        mask=network.pod_cidr_mask_size if network else None,
    )
