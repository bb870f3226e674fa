"""What Azure says of a network that is there; `network` judges it."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any, Final

from karpstack.components.settings.aks import network_of
from karpstack.components.settings.existing_vnet import FoundGateway, FoundNetwork, FoundSubnet, cidrs

from ..finding import NotAskedError
from .api_versions import NETWORK, ZONES
from .existing_cluster import READS_NETWORKS
from .subject import Subject

READS_ZONES: Final = "Microsoft.Network/privateDnsZones/read"


def find(subject: Subject, subnet_id: str) -> FoundNetwork:
    """What Azure says of the network of a subnet.

    Raises:
        NotAskedError: Azure does not tell.
    """
    settings = subject.settings
    vnet = subject.azure.find(READS_NETWORKS, network_of(subnet_id), NETWORK) or {}
    properties = vnet.get("properties") or {}
    subnets = {str(one["name"]).lower(): _subnet(one["properties"]) for one in properties.get("subnets") or ()}
    names = (one.rpartition("/")[2].lower() for one in [subnet_id, *settings.further_subnet_ids])
    of_nodes = [subnets[name] for name in names if name in subnets]
    zone = settings.cluster.own_dns_zone
    return FoundNetwork(
        location=str(vnet.get("location", "")).replace(" ", "").lower(),
        guid=str(properties.get("resourceGuid", "")),
        space=space(properties),
        peered={
            str(peering.get("name")): cidrs(
                ((peering.get("properties") or {}).get("remoteAddressSpace") or {}).get("addressPrefixes")
            )
            for peering in properties.get("virtualNetworkPeerings") or ()
        },
        subnets=subnets,
        gateways={one: _gateway(subject, one) for one in {subnet.nat_gateway for subnet in of_nodes} if one},
        routes={one: _routes(subject, one) for one in {subnet.route_table for subnet in of_nodes} if one},
        has_zone=zone is None or subject.azure.find(READS_ZONES, zone, ZONES) is not None,
        has_cluster=subject.is_up,
        dns_servers=_dns_servers(properties),
        encrypted=bool((properties.get("encryption") or {}).get("enabled")),
    )


def dns_servers(subject: Subject, subnet_id: str) -> list[str]:
    """Addresses of the DNS servers of a subnet's network; none where it asks Azure's, or cannot be read."""
    try:
        vnet = subject.azure.find(READS_NETWORKS, network_of(subnet_id), NETWORK) or {}
    except NotAskedError:
        return []
    return _dns_servers(vnet.get("properties") or {})


def _dns_servers(properties: Mapping[str, Any]) -> list[str]:
    return list((properties.get("dhcpOptions") or {}).get("dnsServers") or ())


def space(properties: Mapping[str, Any]) -> list[IPv4Network]:
    """The IPv4 ranges of a network, by its properties."""
    return cidrs((properties.get("addressSpace") or {}).get("addressPrefixes"))


def _subnet(properties: Mapping[str, Any]) -> FoundSubnet:
    return FoundSubnet(
        # Azure has one of them under a name of its own.
        prefixes=cidrs(properties.get("addressPrefixes") or [properties.get("addressPrefix")]),
        delegations=[
            str((one.get("properties") or {}).get("serviceName") or one.get("name"))
            for one in properties.get("delegations") or ()
        ],
        taken=len(properties.get("ipConfigurations") or ()),
        nat_gateway=_id(properties.get("natGateway")),
        route_table=_id(properties.get("routeTable")),
    )


def _gateway(subject: Subject, gateway_id: str) -> FoundGateway:
    properties = subject.azure.ask("Microsoft.Network/natGateways/read", gateway_id, NETWORK)["properties"]
    addresses = [
        subject.azure.ask("Microsoft.Network/publicIPAddresses/read", _id(one), NETWORK)["properties"].get("ipAddress")
        for one in properties.get("publicIpAddresses") or ()
    ]
    return FoundGateway(
        addresses=[address for address in addresses if address], prefixes=len(properties.get("publicIpPrefixes") or ())
    )


def _routes(subject: Subject, table_id: str) -> dict[str, str]:
    table = subject.azure.ask("Microsoft.Network/routeTables/read", table_id, NETWORK)
    routes = [one["properties"] for one in table["properties"].get("routes") or ()]
    return {str(route.get("addressPrefix")): str(route.get("nextHopType")) for route in routes}


def _id(reference: Mapping[str, Any] | None) -> str:
    return str((reference or {}).get("id", "")).lower()
