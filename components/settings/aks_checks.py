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

from karpenter.findings import Finding
from karpenter.offers import Offers

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..problems import Shown, finding, key_of, shown
from .aks import AZURE_ADDRESSES, NODE_SHARE_PREFIX, is_subnet_id, names_of_network, network_of
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


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
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


def _of_cluster(given: _Valid, today: date) -> Iterator[Finding]:
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


def _of_network(given: _Valid) -> Iterator[Finding]:
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


def _of_karpenter(given: _Valid) -> Iterator[Finding]:
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


def _of_node_classes(given: _Valid) -> Iterator[Finding]:
    for name, spec in (given.node_classes or {}).items():
        yield from brought_by_aks("nodeClasses", name, given.brought)
        yield from node_class(name, spec, given.mode)
        if given.cilium is not None:
            yield from dns_on_the_node(name, spec, given.cilium)
        if given.network is not None and "vnetSubnetID" in spec:
            yield from _subnet_of_a_node_class(name, spec["vnetSubnetID"], given.network)


def _of_node_pools(given: _Valid) -> Iterator[Finding]:
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


def _which_subnet(network: NetworkSettings) -> Iterator[Finding]:
    if (network.subnet_id is None) == (network.subnet_cidr is None):
        yield finding("aks-subnet-ambiguous", ("network", "subnetId"), network.subnet_id)


def _routes_of_whom(network: NetworkSettings) -> Iterator[Finding]:
    if network.outbound_type == "userDefinedRouting" and network.subnet_id is None:
        yield finding("route-table-missing", ("network", "outboundType"), network.outbound_type)


def _foreign_subnet(network: NetworkSettings, subscription_id: str | None) -> Iterator[Finding]:
    if network.subnet_id is None or subscription_id is None:
        return
    if network.subnet_id.split("/")[2].lower() != subscription_id:
        yield finding(
            "subnet-in-other-subscription", ("network", "subnetId"), network.subnet_id, subscription_id=subscription_id
        )


def _too_few_addresses(network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    shares = 2 ** (NODE_SHARE_PREFIX - network.pod_cidr.prefixlen)
    if shares <= system_nodes.count:
        yield finding(
            "aks-pod-cidr-too-small",
            ("network", "podCidr"),
            network.pod_cidr,
            shares=shares,
            node_share_prefix=NODE_SHARE_PREFIX,
            count=system_nodes.count,
        )
    if network.subnet_cidr is None:
        return
    # One more while the system pool is upgraded.
    room = network.subnet_cidr.num_addresses - AZURE_ADDRESSES - system_nodes.count - 1
    if room < 1:
        yield finding(
            "subnet-too-small",
            ("network", "subnetCidr"),
            network.subnet_cidr,
            azure_addresses=AZURE_ADDRESSES,
            count=system_nodes.count,
        )


def who_runs_karpenter(mode: str, karpenter: KarpenterSettings | None) -> Iterator[Finding]:
    """Settings of a controller of the stack's own, which are there exactly where it has one."""
    if mode == "nap" and karpenter is not None:
        yield finding("controller-settings-in-nap", "karpenter", Shown("(set)"))
    if mode == "self-hosted" and karpenter is None:
        yield finding("controller-settings-missing", "karpenter", None)


def _too_many_replicas(karpenter: KarpenterSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    if karpenter.replicas > system_nodes.count:
        yield finding("aks-too-many-replicas", ("karpenter", "replicas"), karpenter.replicas, count=system_nodes.count)


def whose_images(mode: str, images: ImagesSettings) -> Iterator[Finding]:
    """Mirrors are for the controller's chart, which AKS has outside the cluster in mode nap."""
    if mode == "nap" and images.mirrors:
        yield finding("mirrors-in-nap", ("images", "mirrors"), images.mirrors)


def _no_default_pools(mode: str, provisioning: NodeProvisioningSettings) -> Iterator[Finding]:
    if mode == "self-hosted" and "default_node_pools" in provisioning.model_fields_set:
        yield finding(
            "default-node-pools-when-self-hosted",
            ("nodeProvisioning", "defaultNodePools"),
            provisioning.default_node_pools,
        )


def brought_by_aks(section: str, name: str, brought: Collection[str]) -> Iterator[Finding]:
    """An object of the name of one of `brought`, those that AKS brings."""
    if name in brought:
        yield finding("name-used-by-aks", (section, name), Shown("(set)"))


def node_class(name: str, spec: Mapping[str, Any], mode: str | None) -> Iterator[Finding]:
    """Problems of a node class by itself."""
    for field, (low, high) in _BOUNDS.items():
        value = spec.get(field, low)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield finding("node-class-number-out-of-range", ("nodeClasses", name, field), value, low=low, high=high)
    family, fips = spec.get("imageFamily", "Ubuntu"), spec.get("fipsMode", "Disabled")
    if family not in _FAMILIES:
        yield finding(
            "image-family-unknown",
            ("nodeClasses", name, "imageFamily"),
            family,
            nor_windows=", and it cannot make Windows nodes at all"
            if re.match("windows", str(family), re.IGNORECASE)
            else "",
            families=_FAMILIES,
        )
    if fips == "FIPS" and mode == "self-hosted":
        yield finding("fips-when-self-hosted", ("nodeClasses", name, "fipsMode"), fips)
    elif fips == "FIPS" and family in ("Ubuntu2204", "Ubuntu2404"):
        yield finding("fips-without-image", ("nodeClasses", name, "fipsMode"), fips, family=family)
    for gone in sorted({"imageVersion", "imageID"} & spec.keys()):
        yield finding("image-version-removed", ("nodeClasses", name, gone), spec[gone])


def _subnet_of_a_node_class(name: str, subnet: Any, network: NetworkSettings) -> Iterator[Finding]:
    key, value = key_of("nodeClasses", name, "vnetSubnetID"), shown(subnet)
    if not isinstance(subnet, str) or not is_subnet_id(subnet):
        yield finding("node-class-subnet-id-invalid", key, value)
    elif network.subnet_id is None:
        yield finding("node-class-subnet-in-own-network", key, value)
    elif names_of_network(subnet) != names_of_network(network.subnet_id):
        same = network_of(subnet).lower() == network_of(network.subnet_id).lower()
        code = "node-class-subnet-spelled-otherwise" if same else "node-class-subnet-of-other-network"
        yield finding(code, key, value, network=network_of(network.subnet_id))


def _subnet_of_the_api_server(subnet: str, network: NetworkSettings) -> Iterator[Finding]:
    key, value = key_of("cluster", "apiServerSubnetId"), shown(subnet)
    if network.subnet_id is None:
        yield finding("api-server-subnet-in-own-network", key, value)
    elif network_of(subnet).lower() != network_of(network.subnet_id).lower():
        yield finding("api-server-subnet-in-other-network", key, value, network=network_of(network.subnet_id))
    elif subnet.lower() == network.subnet_id.lower():
        yield finding("api-server-subnet-of-nodes", key, value)


def _two_ways_to_the_api_server(cluster: ClusterSettings, mode: str) -> Iterator[Finding]:
    if mode == "self-hosted" and cluster.public_access_cidrs:
        yield finding(
            "api-server-subnet-when-self-hosted", ("cluster", "apiServerSubnetId"), cluster.api_server_subnet_id
        )


def _zone_of_a_private_cluster(cluster: ClusterSettings) -> Iterator[Finding]:
    if cluster.public_access_cidrs and cluster.private_dns_zone != "system":
        yield finding("private-dns-zone-of-public-cluster", ("cluster", "privateDnsZone"), cluster.private_dns_zone)


def _name_of_the_zone(cluster: ClusterSettings, zone: str, location: str) -> Iterator[Finding]:
    # With the API server in a subnet there is no private link, and AKS names its zones otherwise.
    base = f"{'privatelink' if cluster.api_server_subnet_id is None else 'private'}.{location}.azmk8s.io"
    name = zone.rpartition("/")[2].lower()
    if not re.fullmatch(rf"([a-z0-9-]{{1,32}}\.)?{re.escape(base)}", name):
        yield finding("private-dns-zone-name", ("cluster", "privateDnsZone"), zone, location=location, base=base)


def linux_alone(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Windows nodes that a NodePool asks for."""
    for index, requirement in enumerate(manifests.node_template(spec).get("requirements") or []):
        if (
            requirement.get("key") == _LINUX
            and "windows" in (requirement.get("values") or [])
            and requirement.get("operator") == "In"
        ):
            yield finding("windows-nodes", ("nodePools", name, "template", "spec", "requirements", index), requirement)


def dataplane_label(name: str, spec: Mapping[str, Any], dataplane: str) -> Iterator[Finding]:
    """A label of nodes by which another dataplane than the cluster's would run on them."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for label, cilium in manifests.AKS_DATAPLANE_LABEL.items():
        if label in labels and (labels[label] == cilium) != (dataplane == cilium):
            code = "dataplane-label-wrong" if dataplane == cilium else "dataplane-label-without-cilium"
            key = ("nodePools", name, "template", "metadata", "labels", label)
            yield finding(code, key, labels[label], cilium=cilium, dataplane=dataplane or "not Cilium")
