"""Rules between sections of an AKS environment's configuration; those within one section are in `aks`.

Each rule takes the sections that it needs and yields what is wrong, so that all of it can be shown at once. A
section that is not valid by itself is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from karpstack.karpenter import addresses, crds
from karpstack.karpenter.findings import Finding
from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.offers import Offers

from ..documents import manifests
from ..documents.provisioning import BROUGHT_BY_AKS
from ..problems import Judge, Shown, finding, key_of
from .aks import AZURE_ADDRESSES, NODE_SHARE_PREFIX, is_subnet_id, names_of_network, network_of
from .aks_addon_checks import dns_on_the_node, unassigned_permissions, workspaces
from .aks_proxy_checks import check_proxy
from .chart_checks import controller_values, oversized_requests
from .node_pool_checks import endless_drain, negative_limits, node_class_reference, overlays_without_gate
from .region_checks import azure_zones, region_checks
from .requirement_checks import instance_type, requirement_checks
from .rules import check_sections
from .sections import public_network
from .version_checks import aks_version, joining, newer_charts

if TYPE_CHECKING:
    from .aks import (
        ClusterSettings,
        ImagesSettings,
        KarpenterSettings,
        NetworkSettings,
        NodeProvisioningSettings,
        SystemNodesSettings,
    )

_LINUX: Final = "kubernetes.io/os"
#: What a system node pool needs (learn.microsoft.com/azure/aks/use-system-pools).
_LEAST_VCPUS, _LEAST_MEMORY = 4, 4 * 2**30
#: Names of VM sizes of the B series, or with one or two vCPUs, of which the facts may know no more.
_SMALL: Final = re.compile(
    r"(Standard|Basic)_((?P<burstable>B)[0-9]|[ABDEF][A-Z]*([0-9]+-)?(?P<vcpus>[12])(?![0-9]))", re.ASCII
)
#: Characters of the shortest name of a virtual network.
_SHORTEST_OF_NETWORK: Final = 2


def _of_version(cluster: ClusterSettings, mode: str, today: date) -> Iterator[Finding]:
    yield from aks_version(cluster.version, today, mode=mode, tier=cluster.tier)


def _of_type(system_nodes: SystemNodesSettings, known_region: str) -> Iterator[Finding]:
    key = key_of("systemNodes", "vmSize")
    yield from instance_type(Offers.load("azure"), key, system_nodes.vm_size, known_region)
    # A warning about sizes that AKS may take.
    known, named, said = Facts.load("azure").types.get(system_nodes.vm_size), _SMALL.match(system_nodes.vm_size), ""
    if named and named["burstable"]:
        said = "is of the B series"
    elif known and (known.vcpus < _LEAST_VCPUS or known.memory < _LEAST_MEMORY):
        said = f"has {known.vcpus} vCPU and {known.memory / 2**30:g} GiB"
    elif not known and named:
        said = f"has {named['vcpus']} vCPU"
    if said:
        yield finding("aks-system-node-unsupported", key, system_nodes.vm_size, said=said)


def _which_subnet(say: Judge, network: NetworkSettings) -> Iterator[Finding]:
    yield from public_network("network", "vnetCidr", network.vnet_cidr)
    if (network.subnet_id is None) == (network.subnet_cidr is None):
        yield say("aks-subnet-ambiguous", "network.subnetId")
    if network.outbound_type == "userDefinedRouting" and network.subnet_id is None:
        yield say("route-table-missing", "network.outboundType")


def _name_of_network(say: Judge, name: str, network: NetworkSettings) -> Iterator[Finding]:
    """Find a name too short for the stack's own virtual network; those of all other resources may be as short."""
    if network.subnet_id is None and len(name) < _SHORTEST_OF_NETWORK:
        yield say("name-too-short", "name", least=_SHORTEST_OF_NETWORK)


def _foreign_subnet(say: Judge, network: NetworkSettings, subscription_id: str) -> Iterator[Finding]:
    if network.subnet_id is not None and network.subnet_id.split("/")[2].lower() != subscription_id:
        yield say("subnet-in-other-subscription", "network.subnetId", subscription_id=subscription_id)


def _too_few_addresses(say: Judge, network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Finding]:
    words = {"count": system_nodes.count, "azure_addresses": AZURE_ADDRESSES, "node_share_prefix": NODE_SHARE_PREFIX}
    if (shares := addresses.nodes(network.pod_cidr.prefixlen, NODE_SHARE_PREFIX)) <= system_nodes.count:
        yield say("aks-pod-cidr-too-small", "network.podCidr", shares=shares, **words)
    # One more while the system pool is upgraded.
    taken = AZURE_ADDRESSES + system_nodes.count + 1
    if network.subnet_cidr is not None and network.subnet_cidr.num_addresses <= taken:
        yield say("subnet-too-small", "network.subnetCidr", **words)


def _zone_of_the_api_server(say: Judge, cluster: ClusterSettings, known_region: str | None = None) -> Iterator[Finding]:
    if cluster.public_access_cidrs and cluster.private_dns_zone != "system":
        yield say("private-dns-zone-of-public-cluster", "cluster.privateDnsZone")
    if cluster.own_dns_zone is None or known_region is None:
        return
    # With the API server in a subnet there is no private link, and AKS names its zones otherwise.
    base = f"{'privatelink' if cluster.api_server_subnet_id is None else 'private'}.{known_region}.azmk8s.io"
    name = cluster.own_dns_zone.rpartition("/")[2].lower()
    if not re.fullmatch(rf"([a-z0-9-]{{1,32}}\.)?{re.escape(base)}", name):
        yield say("private-dns-zone-name", "cluster.privateDnsZone", location=known_region, base=base)


def _subnet_of_the_api_server(
    say: Judge, cluster: ClusterSettings, network: NetworkSettings, mode: str | None = None
) -> Iterator[Finding]:
    key, subnet = "cluster.apiServerSubnetId", cluster.api_server_subnet_id
    if subnet is None:
        return
    if network.subnet_id is None:
        yield say("api-server-subnet-in-own-network", key)
    elif network_of(subnet).lower() != network_of(network.subnet_id).lower():
        yield say("api-server-subnet-in-other-network", key, network=network_of(network.subnet_id))
    elif subnet.lower() == network.subnet_id.lower():
        yield say("api-server-subnet-of-nodes", key)
    if mode == "self-hosted" and cluster.public_access_cidrs:
        yield say("api-server-subnet-when-self-hosted", key)


def check_controller_settings(mode: str, valid: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that settings of a self-hosted controller are set if, and only if, the stack has one."""
    if "karpenter" not in valid:
        return
    if mode == "nap" and valid["karpenter"] is not None:
        yield finding("controller-settings-in-nap", "karpenter", Shown("(set)"))
    if mode == "self-hosted" and valid["karpenter"] is None:
        yield finding("controller-settings-missing", "karpenter", None)


def _controller_on_system_nodes(
    say: Judge, karpenter: KarpenterSettings, system_nodes: SystemNodesSettings
) -> Iterator[Finding]:
    if karpenter.replicas > system_nodes.count:
        yield say("aks-too-many-replicas", "karpenter.replicas", count=system_nodes.count)
    yield from oversized_requests("azure", karpenter.resources, system_nodes.vm_size, "systemNodes.vmSize")


def _joining(karpenter: KarpenterSettings, cluster: ClusterSettings) -> Iterator[Finding]:
    yield from joining(cluster.version, karpenter=karpenter.chart_version)


def check_image_mirrors(say: Judge, mode: str, images: ImagesSettings) -> Iterator[Finding]:
    """Find mirrors in mode nap: they are for the controller's chart, and AKS runs it outside the cluster."""
    if mode == "nap" and images.mirrors:
        yield say("mirrors-in-nap", "images.mirrors")


def _no_default_pools(say: Judge, mode: str, node_provisioning: NodeProvisioningSettings) -> Iterator[Finding]:
    if mode == "self-hosted" and "default_node_pools" in node_provisioning.model_fields_set:
        yield say("default-node-pools-when-self-hosted", "nodeProvisioning.defaultNodePools")


def check_names_of_aks(section: str, name: str, brought: Collection[str]) -> Iterator[Finding]:
    """Find an object with the name of one that AKS creates (`brought`)."""
    if name in brought:
        yield finding("name-used-by-aks", (section, name), Shown("(set)"))


def node_class(name: str, spec: Mapping[str, Any], mode: str | None = None) -> Iterator[Finding]:
    """Problems of a node class by itself."""
    fields = crds.fields("azure", "AKSNodeClass")
    for field in ("maxPods", "osDiskSizeGB"):
        low, high = fields[field]["minimum"], fields[field]["maximum"]
        value = spec.get(field, low)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield finding("node-class-number-out-of-range", ("nodeClasses", name, field), value, low=low, high=high)
    family, fips = spec.get("imageFamily", "Ubuntu"), spec.get("fipsMode", "Disabled")
    if family not in (families := fields["imageFamily"]["enum"]):
        is_windows = re.match("windows", str(family), re.IGNORECASE)
        words = {"nor_windows": ", and it cannot make Windows nodes at all" if is_windows else "", "families": families}
        yield finding("image-family-unknown", ("nodeClasses", name, "imageFamily"), family, **words)
    if fips == "FIPS" and mode == "self-hosted":
        yield finding("fips-when-self-hosted", ("nodeClasses", name, "fipsMode"), fips)
    elif fips == "FIPS" and family in ("Ubuntu2204", "Ubuntu2404"):
        yield finding("fips-without-image", ("nodeClasses", name, "fipsMode"), fips, family=family)
    for gone in sorted({"imageVersion", "imageID"} & spec.keys()):
        yield finding("image-version-removed", ("nodeClasses", name, gone), spec[gone])


def _subnet_of_a_node_class(
    say: Judge, name: str, spec: Mapping[str, Any], network: NetworkSettings
) -> Iterator[Finding]:
    if "vnetSubnetID" not in spec:
        return
    key, subnet = ("nodeClasses", name, "vnetSubnetID"), spec["vnetSubnetID"]
    if not isinstance(subnet, str) or not is_subnet_id(subnet):
        yield say("node-class-subnet-id-invalid", key)
    elif network.subnet_id is None:
        yield say("node-class-subnet-in-own-network", key)
    elif names_of_network(subnet) != names_of_network(network.subnet_id):
        same = network_of(subnet).lower() == network_of(network.subnet_id).lower()
        code = "node-class-subnet-spelled-otherwise" if same else "node-class-subnet-of-other-network"
        yield say(code, key, network=network_of(network.subnet_id))


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


def _class_of_aks(name: str, brought: Collection[str]) -> Iterator[Finding]:
    yield from check_names_of_aks("nodeClasses", name, brought)


def _pool_of_aks(name: str, brought: Collection[str]) -> Iterator[Finding]:
    yield from check_names_of_aks("nodePools", name, brought)


def _label(name: str, spec: Mapping[str, Any]) -> Iterator[Finding]:
    yield from dataplane_label(name, spec, "cilium")


def reference(name: str, spec: Mapping[str, Any], classes: Collection[str] | None) -> Iterator[Finding]:
    """Problems of a NodePool's node class; `classes` are those that exist, None if they are unknown."""
    yield from node_class_reference(name, spec, manifests.AKS_NODE_CLASS, classes)


def cross_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems between sections and with what exists, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `AksSettings`' fields.
        today: The day that decides which versions are offered.
    """
    mode, provisioning, classes = (valid.get(name) for name in ("mode", "node_provisioning", "node_classes"))
    is_automatic = provisioning is not None and provisioning.default_node_pools == "Auto"
    brought = BROUGHT_BY_AKS if mode == "nap" and is_automatic else ()
    is_known = classes is not None and mode is not None and provisioning is not None
    return check_sections(
        "azure",
        valid,
        today,
        rules=(
            _of_version,
            region_checks,
            _of_type,
            azure_zones,
            unassigned_permissions,
            workspaces,
            _which_subnet,
            _name_of_network,
            _foreign_subnet,
            _too_few_addresses,
            _zone_of_the_api_server,
            _subnet_of_the_api_server,
            check_controller_settings,
            check_proxy,
            check_image_mirrors,
            controller_values,
            newer_charts,
            overlays_without_gate,
            _controller_on_system_nodes,
            _joining,
            _no_default_pools,
        ),
        of_node_classes=(_class_of_aks, node_class, dns_on_the_node, _subnet_of_a_node_class),
        of_node_pools=(
            _pool_of_aks,
            linux_alone,
            _label,
            reference,
            endless_drain,
            negative_limits,
            requirement_checks,
        ),
        brought=brought,
        classes={*(classes or ()), *brought} if is_known else None,
    )
