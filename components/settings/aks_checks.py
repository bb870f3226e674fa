"""Rules between sections of an AKS environment's configuration; those within one section are in `aks`.

Each rule takes the sections that it needs and yields what is wrong, so that all of it can be shown at once. A
section that is not valid by itself is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from karpenter.offers import Offers

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..problems import Problem, key_of, shown
from .aks import AZURE_ADDRESSES, NODE_SHARE_PREFIX, WRITE_SUBNET_ID, is_subnet_id, names_of_network, network_of
from .aks_addon_checks import dns_on_the_node, rights_of_nobody, workspaces
from .aks_proxy_checks import ways_through_a_proxy
from .chart_checks import chart_values, resource_values
from .node_pool_checks import endless_drain, negative_limits, node_class_reference
from .region_checks import azure_zones, region_checks
from .requirement_checks import instance_type, requirement_checks
from .sections import public_network
from .version_checks import aks_version, joining

if TYPE_CHECKING:
    from .aks import (
        ClusterSettings,
        ImagesSettings,
        KarpenterSettings,
        NetworkSettings,
        NodeProvisioningSettings,
        SystemNodesSettings,
    )
    from .aks_addons import AddonsSettings, CiliumSettings

_FAMILIES: Final = ("Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux")
_BOUNDS: Final = {"maxPods": (10, 250), "osDiskSizeGB": (30, 2048)}
_LINUX: Final = "kubernetes.io/os"


@dataclass(frozen=True)
class _Valid:
    """The sections that are valid, by the names of `AksSettings`' fields; None for the others."""

    mode: str | None = None
    region: str | None = None
    subscription_id: str | None = None
    cluster: ClusterSettings | None = None
    network: NetworkSettings | None = None
    system_nodes: SystemNodesSettings | None = None
    karpenter: KarpenterSettings | None = None
    images: ImagesSettings | None = None
    node_provisioning: NodeProvisioningSettings | None = None
    addons: AddonsSettings | None = None
    cilium: CiliumSettings | None = None
    node_classes: dict[str, dict[str, Any]] | None = None
    node_pools: dict[str, dict[str, Any]] | None = None

    @property
    def brought(self) -> frozenset[str]:
        """Names of the NodePools and node classes that AKS makes by itself."""
        provisioning = self.node_provisioning
        automatic = provisioning is not None and provisioning.default_node_pools == "Auto"
        return frozenset(BROUGHT_BY_AKS if self.mode == "nap" and automatic else ())

    @property
    def location(self) -> str | None:
        """The location, if there is one of that name."""
        wrong = self.region is not None and Offers.load("azure").region(self.region) == "wrong"
        return None if wrong else self.region


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Problem]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `AksSettings`' fields.
        today: The day that decides which versions are offered.
    """
    given = _Valid(**{field.name: valid.get(field.name) for field in fields(_Valid)})
    yield from _of_cluster(given, today)
    yield from _of_network(given)
    if given.mode is not None and "karpenter" in valid:
        yield from who_runs_karpenter(given.mode, given.karpenter)
    yield from ways_through_a_proxy(valid, today)
    yield from _of_karpenter(given)
    yield from _of_node_classes(given)
    yield from _of_node_pools(given)


def _of_cluster(given: _Valid, today: date) -> Iterator[Problem]:
    if given.cluster is not None and given.mode is not None:
        yield from aks_version(given.cluster.version, today, mode=given.mode, tier=given.cluster.tier)
    if given.region is not None:
        yield from region_checks("azure", "azure-native:location", given.region)
    if given.location is not None and (nodes := given.system_nodes) is not None:
        yield from instance_type(Offers.load("azure"), key_of("systemNodes", "vmSize"), nodes.vm_size, given.location)
        yield from azure_zones(given.location, list(nodes.zones))
    if given.addons is not None:
        yield from rights_of_nobody(given.addons)
        if given.cluster is not None:
            yield from workspaces(given.cluster, given.addons)


def _of_network(given: _Valid) -> Iterator[Problem]:
    cluster, network = given.cluster, given.network
    if network is not None:
        yield from public_network("network", "vnetCidr", network.vnet_cidr)
        yield from _which_subnet(network)
        yield from _routes_of_whom(network)
        yield from _foreign_subnet(network, given.subscription_id)
        if given.system_nodes is not None:
            yield from _too_few_addresses(network, given.system_nodes)
    if cluster is not None:
        yield from _zone_of_a_private_cluster(cluster)
        if given.location is not None and cluster.own_dns_zone is not None:
            yield from _name_of_the_zone(cluster, cluster.own_dns_zone, given.location)
        if network is not None and cluster.api_server_subnet_id is not None:
            yield from _subnet_of_the_api_server(cluster.api_server_subnet_id, network)
            if given.mode is not None:
                yield from _two_ways_to_the_api_server(cluster, given.mode)


def _of_karpenter(given: _Valid) -> Iterator[Problem]:
    if given.mode is not None and given.images is not None:
        yield from whose_images(given.mode, given.images)
    if (karpenter := given.karpenter) is not None:
        yield from chart_values(karpenter.settings)
        yield from resource_values(karpenter.resources.requests, karpenter.resources.limits)
        if given.system_nodes is not None:
            yield from _too_many_replicas(karpenter, given.system_nodes)
        if given.cluster is not None:
            yield from joining(given.cluster.version, karpenter=karpenter.chart_version)
    if given.mode is not None and given.node_provisioning is not None:
        yield from _no_default_pools(given.mode, given.node_provisioning)


def _of_node_classes(given: _Valid) -> Iterator[Problem]:
    for name, spec in (given.node_classes or {}).items():
        yield from brought_by_aks("nodeClasses", name, given.brought)
        yield from node_class(name, spec, given.mode)
        if given.cilium is not None:
            yield from dns_on_the_node(name, spec, given.cilium)
        if given.network is not None and "vnetSubnetID" in spec:
            yield from _subnet_of_a_node_class(name, spec["vnetSubnetID"], given.network)


def _of_node_pools(given: _Valid) -> Iterator[Problem]:
    known = None
    if given.node_classes is not None and given.mode is not None and given.node_provisioning is not None:
        known = {*given.node_classes, *given.brought}
    for name, spec in (given.node_pools or {}).items():
        yield from brought_by_aks("nodePools", name, given.brought)
        yield from linux_alone(name, spec)
        yield from dataplane_label(name, spec, "cilium")
        yield from node_class_reference(name, spec, manifests.AKS_NODE_CLASS, known)
        yield from endless_drain(name, spec)
        yield from negative_limits(name, spec)
        if given.location is not None:
            chart_settings = given.karpenter.settings if given.karpenter is not None else {}
            yield from requirement_checks("azure", given.location, name, spec, chart_settings)


def _which_subnet(network: NetworkSettings) -> Iterator[Problem]:
    if (network.subnet_id is None) == (network.subnet_cidr is None):
        yield Problem(
            key_of("network", "subnetId"),
            "(not set)" if network.subnet_id is None else shown(network.subnet_id),
            "leaves open which subnet nodes live in: either subnetCidr makes one, or subnetId takes one that exists",
            "set exactly one of the two",
        )


def _routes_of_whom(network: NetworkSettings) -> Iterator[Problem]:
    if network.outbound_type == "userDefinedRouting" and network.subnet_id is None:
        yield Problem(
            key_of("network", "outboundType"),
            shown(network.outbound_type),
            "needs a route table with a default route on the nodes' subnet, and the stack's own subnet has none: AKS "
            "refuses the cluster (ExistingRouteTableNotAssociatedWithSubnet)",
            "name in karpstack:network.subnetId a subnet that has one, or write userAssignedNATGateway",
        )


def _foreign_subnet(network: NetworkSettings, subscription_id: str | None) -> Iterator[Problem]:
    if network.subnet_id is None or subscription_id is None:
        return
    if network.subnet_id.split("/")[2].lower() != subscription_id:
        yield Problem(
            key_of("network", "subnetId"),
            shown(network.subnet_id),
            f"lies in another subscription than the cluster ({subscription_id}): Karpenter looks for the network in "
            "its own and never makes a node",
            "take a subnet of the same subscription",
        )


def _too_few_addresses(network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Problem]:
    shares = 2 ** (NODE_SHARE_PREFIX - network.pod_cidr.prefixlen)
    if shares <= system_nodes.count:
        yield Problem(
            key_of("network", "podCidr"),
            shown(network.pod_cidr),
            f"has room for {shares} nodes of /{NODE_SHARE_PREFIX} each, and there are {system_nodes.count} system "
            "nodes: what Karpenter launches would never become ready",
            "choose a larger podCidr",
        )
    if network.subnet_cidr is None:
        return
    # One more while the system pool is upgraded.
    room = network.subnet_cidr.num_addresses - AZURE_ADDRESSES - system_nodes.count - 1
    if room < 1:
        yield Problem(
            key_of("network", "subnetCidr"),
            shown(network.subnet_cidr),
            f"has no address left for Karpenter's nodes: Azure keeps {AZURE_ADDRESSES} and {system_nodes.count} system "
            "nodes need one each, plus one in an upgrade",
            "choose a larger range, for example a /20",
        )


def who_runs_karpenter(mode: str, karpenter: KarpenterSettings | None) -> Iterator[Problem]:
    """Settings of a controller of the stack's own, which are there exactly where it has one."""
    if mode == "nap" and karpenter is not None:
        yield Problem(
            key_of("karpenter"),
            "(set)",
            "configures a controller of this stack's, and in mode nap AKS runs its own, which has no such settings: "
            "it would change nothing",
            "remove it, or set karpstack:mode to self-hosted",
        )
    if mode == "self-hosted" and karpenter is None:
        yield Problem(
            key_of("karpenter"),
            "(not set)",
            "is required in mode self-hosted: nodes need at least an SSH key, without which Azure makes none",
            "set karpstack:karpenter.sshPublicKey",
        )


def _too_many_replicas(karpenter: KarpenterSettings, system_nodes: SystemNodesSettings) -> Iterator[Problem]:
    if karpenter.replicas > system_nodes.count:
        yield Problem(
            key_of("karpenter", "replicas"),
            shown(karpenter.replicas),
            f"is more than systemNodes.count {system_nodes.count}: two controllers never share a node, "
            "so the last one stays pending and `pulumi up` times out",
            "lower replicas or raise count",
        )


def whose_images(mode: str, images: ImagesSettings) -> Iterator[Problem]:
    """Mirrors are for the controller's chart, which AKS has outside the cluster in mode nap."""
    if mode == "nap" and images.mirrors:
        yield Problem(
            key_of("images", "mirrors"),
            shown(images.mirrors),
            "is for charts of this stack's, and in mode nap there is none: AKS runs its own images",
            "remove it, or set karpstack:mode to self-hosted",
        )


def _no_default_pools(mode: str, provisioning: NodeProvisioningSettings) -> Iterator[Problem]:
    if mode == "self-hosted" and "default_node_pools" in provisioning.model_fields_set:
        yield Problem(
            key_of("nodeProvisioning", "defaultNodePools"),
            shown(provisioning.default_node_pools),
            "has no effect in mode self-hosted: AKS brings NodePools only where it runs Karpenter",
            "remove it, or set karpstack:mode to nap",
        )


def brought_by_aks(section: str, name: str, brought: Collection[str]) -> Iterator[Problem]:
    """An object of the name of one of `brought`, those that AKS brings."""
    if name in brought:
        yield Problem(
            key_of(section, name),
            "(set)",
            "has the name of one that AKS brings itself (nodeProvisioning.defaultNodePools is Auto): the two would "
            "overwrite each other",
            "choose another name, or set nodeProvisioning.defaultNodePools to None",
        )


def node_class(name: str, spec: Mapping[str, Any], mode: str | None) -> Iterator[Problem]:
    """Problems of a node class by itself."""
    for field, (low, high) in _BOUNDS.items():
        value = spec.get(field, low)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield Problem(
                key_of("nodeClasses", name, field),
                shown(value),
                f"is not a number from {low} to {high}: the API server refuses the node class, after all "
                "the rest was created",
                f"choose {low} to {high}",
            )
    family, fips = spec.get("imageFamily", "Ubuntu"), spec.get("fipsMode", "Disabled")
    if family not in _FAMILIES:
        yield Problem(
            key_of("nodeClasses", name, "imageFamily"),
            shown(family),
            "is no image family that this Karpenter can resolve"
            + (", and it cannot make Windows nodes at all" if re.match("windows", str(family), re.IGNORECASE) else "")
            + ": the node class never gets ready (ImagesReady) and no node is made",
            f"choose {', '.join(_FAMILIES)}",
        )
    if fips == "FIPS" and mode == "self-hosted":
        yield Problem(
            key_of("nodeClasses", name, "fipsMode"),
            shown(fips),
            "needs images that only AKS's own Karpenter may use: self-hosted, no image resolves and no node is made",
            "set it to Disabled, or karpstack:mode to nap",
        )
    elif fips == "FIPS" and family in ("Ubuntu2204", "Ubuntu2404"):
        yield Problem(
            key_of("nodeClasses", name, "fipsMode"),
            shown(fips),
            f"has no image in the family {family}: the API server refuses the node class",
            "choose the imageFamily Ubuntu or AzureLinux, or set fipsMode to Disabled",
        )
    for gone in sorted({"imageVersion", "imageID"} & spec.keys()):
        yield Problem(
            key_of("nodeClasses", name, gone),
            shown(spec[gone]),
            "is no field of AKSNodeClass v1beta1: Karpenter takes the latest image of the family, and a pinned one "
            "that is withdrawn made machines that never joined",
            "remove it",
        )


def _subnet_of_a_node_class(name: str, subnet: Any, network: NetworkSettings) -> Iterator[Problem]:
    key, value = key_of("nodeClasses", name, "vnetSubnetID"), shown(subnet)
    if not isinstance(subnet, str) or not is_subnet_id(subnet):
        yield Problem(
            key,
            value,
            "is no resource ID of a subnet: the node class never gets ready (SubnetIDInvalid) and no node is made",
            WRITE_SUBNET_ID,
        )
    elif network.subnet_id is None:
        yield Problem(
            key,
            value,
            "is a subnet of a network that is there, and the cluster is in a network of the stack's own, which has one "
            "subnet: the node class never gets ready (SubnetIDInvalid) and no node is made",
            "remove it, or name a subnet of the same network in karpstack:network.subnetId instead of subnetCidr",
        )
    elif names_of_network(subnet) != names_of_network(network.subnet_id):
        same = network_of(subnet).lower() == network_of(network.subnet_id).lower()
        yield Problem(
            key,
            value,
            (
                "spells the network in another way than karpstack:network.subnetId, and Karpenter tells upper from "
                "lower case"
                if same
                else "lies in another network than the cluster, and Karpenter makes nodes in the cluster's alone"
            )
            + ": the node class never gets ready (SubnetIDInvalid)",
            f"name a subnet of {network_of(network.subnet_id)}",
        )


def _subnet_of_the_api_server(subnet: str, network: NetworkSettings) -> Iterator[Problem]:
    key, value = key_of("cluster", "apiServerSubnetId"), shown(subnet)
    if network.subnet_id is None:
        yield Problem(
            key,
            value,
            "must be in the network of the nodes, which the stack makes itself and which has one subnet: AKS refuses "
            "the cluster",
            "remove it, or name a subnet of the same network in karpstack:network.subnetId instead of subnetCidr",
        )
    elif network_of(subnet).lower() != network_of(network.subnet_id).lower():
        yield Problem(
            key,
            value,
            "lies in another network than the nodes: AKS refuses the cluster",
            f"name a subnet of {network_of(network.subnet_id)}",
        )
    elif subnet.lower() == network.subnet_id.lower():
        yield Problem(
            key,
            value,
            "is the subnet of the nodes too, and nothing else may be in the API server's: it must be delegated to AKS, "
            "and AKS refuses nodes in a delegated subnet (SubnetIsDelegated)",
            "name a subnet of its own, a /28 at least",
        )


def _two_ways_to_the_api_server(cluster: ClusterSettings, mode: str) -> Iterator[Problem]:
    if mode == "self-hosted" and cluster.public_access_cidrs:
        yield Problem(
            key_of("cluster", "apiServerSubnetId"),
            shown(cluster.api_server_subnet_id),
            "gives AKS's own nodes a private way to the API server, and machines of self-hosted Karpenter are told its "
            "public name: they come from outside, and join only where their way out is let in",
            "empty karpstack:cluster.publicAccessCidrs, so that the name is private, or set karpstack:mode to nap",
            warning=True,
        )


def _zone_of_a_private_cluster(cluster: ClusterSettings) -> Iterator[Problem]:
    if cluster.public_access_cidrs and cluster.private_dns_zone != "system":
        yield Problem(
            key_of("cluster", "privateDnsZone"),
            shown(cluster.private_dns_zone),
            "is of a private cluster, and with karpstack:cluster.publicAccessCidrs it is none: AKS refuses the cluster",
            "remove it, or empty karpstack:cluster.publicAccessCidrs",
        )


def _name_of_the_zone(cluster: ClusterSettings, zone: str, location: str) -> Iterator[Problem]:
    # With the API server in a subnet there is no private link, and AKS names its zones otherwise.
    base = f"{'privatelink' if cluster.api_server_subnet_id is None else 'private'}.{location}.azmk8s.io"
    name = zone.rpartition("/")[2].lower()
    if not re.fullmatch(rf"([a-z0-9-]{{1,32}}\.)?{re.escape(base)}", name):
        yield Problem(
            key_of("cluster", "privateDnsZone"),
            shown(zone),
            f"is not named as AKS demands it in {location}: it refuses the cluster, for the API server's name would "
            "not be in it",
            f"name a zone {base}, or <up to 32 characters>.{base}",
        )


def linux_alone(name: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Windows nodes that a NodePool asks for."""
    for index, requirement in enumerate(manifests.node_template(spec).get("requirements") or []):
        if (
            requirement.get("key") == _LINUX
            and "windows" in (requirement.get("values") or [])
            and requirement.get("operator") == "In"
        ):
            yield Problem(
                key_of("nodePools", name, "template", "spec", "requirements", index),
                shown(requirement),
                "asks for Windows nodes, which Karpenter on AKS cannot make: pods that need them stay pending",
                f"write {_LINUX} In [linux]",
            )


def dataplane_label(name: str, spec: Mapping[str, Any], dataplane: str) -> Iterator[Problem]:
    """A label of nodes by which another dataplane than the cluster's would run on them."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for label, cilium in manifests.AKS_DATAPLANE_LABEL.items():
        if label in labels and (labels[label] == cilium) != (dataplane == cilium):
            yield Problem(
                key_of("nodePools", name, "template", "metadata", "labels", label),
                shown(labels[label]),
                (
                    "contradicts the network, which is Cilium's: its agent would not run on the nodes, and they would "
                    "never be ready"
                )
                if dataplane == cilium
                else f"contradicts the network, whose dataplane is {dataplane or 'not Cilium'}",
                f"write {cilium}, or leave it out" if dataplane == cilium else "leave it out",
            )
