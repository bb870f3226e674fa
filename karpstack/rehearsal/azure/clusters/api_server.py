"""What AKS refuses of the way to the API server (`apiServerAccessProfile`), and how the server is named in private.

The code and the words on rights to a zone are AKS's, and the words on an empty subnet
(pulumi/pulumi-azure-native#4348); the others are in its manner. What AKS demands is in its documentation of API Server
VNet Integration and of private clusters.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, same
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.access import Access
from karpstack.rehearsal.azure.network.networks import NETWORK_TYPE, SUBNET_TYPE, network

ZONE_TYPE: Final = "Microsoft.Network/privateDnsZones"
_SERVICE: Final = "Microsoft.ContainerService/managedClusters"
_LONGEST_PREFIX: Final = 28
_SYSTEM: Final = ("system", "none")


def check(context: Context, properties: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    """Refuse a way to the API server that there cannot be.

    Args:
        context: For look-ups.
        properties: Those of the cluster, defaults filled in.
        before: Those of the cluster as it is; None for a new one.
    """
    profile = properties.get("apiServerAccessProfile") or {}
    _check_subnet(context, profile, properties["agentPoolProfiles"])
    _check_zone(context, profile)
    if before is None:
        return
    old = before.get("apiServerAccessProfile") or {}
    if old.get("enableVnetIntegration") and not profile.get("enableVnetIntegration"):
        raise refused("OperationNotAllowed/integration")
    if old.get("subnetId") and not same(old["subnetId"], str(profile.get("subnetId") or "")):
        raise refused("PropertyChangeNotAllowed/subnet")
    integrated = old.get("enableVnetIntegration") and profile.get("enableVnetIntegration")
    if bool(old.get("enablePrivateCluster")) != bool(profile.get("enablePrivateCluster")) and not integrated:
        raise refused("PropertyChangeNotAllowed/private")
    if _zone(old).lower() != _zone(profile).lower() and _zone(profile) != "none":
        raise refused("PropertyChangeNotAllowed/zone", zone=_zone(old), profile=_zone(profile))


def check_rights(access: Access, principal: str, profile: Mapping[str, Any], cluster: ResourceId) -> None:
    """Refuse what the cluster's identity may not do with the subnet and the zone of the API server."""
    subnet = profile.get("subnetId")
    join = f"{SUBNET_TYPE}/join/action"
    if subnet and not access.allows(principal, join, subnet):
        raise access.linked_failure(principal, f"{_SERVICE}/write", cluster.text, join, subnet)
    zone = _zone(profile)
    if zone in _SYSTEM:
        return
    for verb in ("read", "write"):
        action = f"{ZONE_TYPE}/{verb}"
        if not access.allows(principal, action, zone):
            raise refused("CustomPrivateDNSZoneMissingPermissionError", zone=zone, action=action)


def check_link(
    access: Access, principal: str, profile: Mapping[str, Any], subnet_id: str, *, has_dns_servers: bool
) -> None:
    """Refuse a zone that the cluster's identity may not tie to the network of its nodes.

    AKS ties a zone of its own to a network with Azure's DNS by itself; with other DNS servers by that identity too.
    """
    vnet, join = ResourceId.parse(subnet_id).parent, f"{NETWORK_TYPE}/join/action"
    zone, private = _zone(profile), bool(profile.get("enablePrivateCluster"))
    by_identity = zone not in _SYSTEM or (private and zone == "system" and has_dns_servers)
    if by_identity and not access.allows(principal, join, vnet):
        link = f"{_zone(profile)}/virtualNetworkLinks/{ResourceId.parse(vnet).name}"
        raise access.linked_failure(principal, f"{ZONE_TYPE}/virtualNetworkLinks/write", link, join, vnet)


def private_name(profile: Mapping[str, Any], host: str, region: str) -> str:
    """The API server's name in its private zone; empty where there is none.

    Args:
        profile: The cluster's `apiServerAccessProfile`.
        host: The first part of its name.
        region: Where it is.
    """
    zone = _zone(profile)
    if not profile.get("enablePrivateCluster") or zone == "none":
        return ""
    if zone == "system":
        return f"{host}.{uuid.uuid4()}.{_base(profile)}.{region}.azmk8s.io"
    return f"{host}.{ResourceId.parse(zone).name}"


def _check_subnet(context: Context, profile: Mapping[str, Any], pools: list[Mapping[str, Any]]) -> None:
    own = next((str(pool["vnetSubnetID"]) for pool in pools if pool.get("vnetSubnetID")), "")
    subnet_id = str(profile.get("subnetId") or "")
    if not subnet_id:
        return
    subnet = context.get(subnet_id)
    if subnet is None or subnet.type != SUBNET_TYPE:
        raise refused("SubnetNotFound/api-server", subnet_id=subnet_id)
    if not same(ResourceId.parse(subnet_id).parent, ResourceId.parse(own).parent):
        raise refused("InvalidParameter/network", subnet_id=subnet_id)
    services = [at(one, "properties.serviceName", "") for one in subnet.properties.get("delegations") or []]
    if not any(same(service, _SERVICE) for service in services):
        raise refused("InvalidParameter/delegation", subnet_id=subnet_id)
    cidr = network(subnet.properties["addressPrefix"], subnet_id)
    if cidr.prefixlen > _LONGEST_PREFIX:
        raise refused("InsufficientSubnetSize", subnet_id=subnet_id, prefixlen=cidr.prefixlen)


def _check_zone(context: Context, profile: Mapping[str, Any]) -> None:
    zone = _zone(profile)
    if zone in _SYSTEM:
        return
    identifier = ResourceId.parse(zone)
    base = f"{_base(profile)}.{context.region}.azmk8s.io"
    if not re.fullmatch(rf"([a-z0-9-]{{1,32}}\.)?{re.escape(base)}", identifier.name.lower()):
        raise refused("InvalidParameter/zone-name", zone=zone, base=base)
    # That of a hub is in another subscription, which the rehearsal does not have.
    if identifier.subscription.lower() == context.subscription and context.get(zone) is None:
        raise refused("InvalidParameter/zone", zone=zone)


def _zone(profile: Mapping[str, Any]) -> str:
    zone = str(profile.get("privateDNSZone") or "system")
    return zone.lower() if zone.lower() in _SYSTEM else zone


def _base(profile: Mapping[str, Any]) -> str:
    """Without private link, which the API server in a subnet does not need, the zone's name is another."""
    return "private" if profile.get("enableVnetIntegration") else "privatelink"
