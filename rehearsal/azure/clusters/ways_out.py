"""What AKS refuses of the way out of a cluster's subnets (`networkProfile.outboundType`).

Where public reports show AKS's words, they are AKS's: of a managed gateway in one's own network
(kubernetes-sigs/cluster-api-provider-azure#5429), of a subnet without a gateway (jenkins-infra/azure#715), without a
route table or a default route (MicrosoftDocs/azure-docs#108240), with one that leads to the internet (Azure/AKS#1875),
and of a network isolated cluster (hashicorp/terraform-provider-azurerm#29808). The other codes are AKS's, and their
texts in its manner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import Kind, at

_ANYWHERE = "0.0.0.0/0"
_NEXT_HOPS = ("VirtualAppliance", "VirtualNetworkGateway")


def check(kind: Kind, properties: Mapping[str, Any]) -> None:
    """Refuse a way out that the subnets of the cluster's pools do not have.

    Args:
        kind: For look-ups.
        properties: Those of the cluster, defaults filled in; its subnets exist.
    """
    match at(properties, "networkProfile.outboundType"):
        case "managedNATGateway":
            for pool in properties["agentPoolProfiles"]:
                if pool.get("vnetSubnetID"):
                    raise _bad(
                        "InvalidParameter",
                        f"Outbound type is managedNATGateway but agent pool '{pool['name']}' is using custom VNet, "
                        "which is not allowed.",
                    )
        case "userAssignedNATGateway":
            for name, subnet in _subnets(properties):
                if not subnet:
                    raise _bad(
                        "InvalidParameter",
                        f"Outbound type is userAssignedNATGateway but agent pool '{name}' is not using custom VNet, "
                        "which is not allowed.",
                    )
                _gateway(kind, subnet)
        case "userDefinedRouting":
            for name, subnet in _subnets(properties):
                if not subnet:
                    raise _bad(
                        "EmptySubnetError",
                        f"Outbound type is userDefinedRouting but agent pool '{name}' has no subnet of its own.",
                    )
                _route(kind, subnet)
        case "none" | "block":
            if at(properties, "bootstrapProfile.artifactSource") != "Cache":
                raise _bad(
                    "InvalidNetworkIsolatedClusterConfiguration",
                    "When outbound type is none or block, bootstrapProfile.artifactSource must be 'Cache'",
                )


def _gateway(kind: Kind, subnet_id: str) -> None:
    gateway_id = _named(kind, subnet_id, "natGateway")
    gateway = kind.context.get(gateway_id) if gateway_id else None
    if gateway is None:
        raise _bad(
            "SubnetNotAssociatedWithNATGateway",
            f"Subnet '{subnet_id}' must have a NAT gateway associated for outbound connection.",
        )
    if not gateway.properties.get("publicIpAddresses") and not gateway.properties.get("publicIpPrefixes"):
        raise _bad(
            "NATGatewayNotAssociatedWithPublicIPOrIPPrefix",
            f"NAT gateway '{gateway.id.text}' must have a public IP or a public IP prefix associated for outbound "
            "connection.",
        )


def _route(kind: Kind, subnet_id: str) -> None:
    table_id = _named(kind, subnet_id, "routeTable")
    table = kind.context.get(table_id) if table_id else None
    if table is None:
        raise _bad(
            "ExistingRouteTableNotAssociatedWithSubnet",
            f"An existing route table has not been associated with subnet {subnet_id}. Please update the route table "
            "association",
        )
    hops = [
        at(route, "properties.nextHopType")
        for route in table.properties["routes"]
        if at(route, "properties.addressPrefix") == _ANYWHERE
    ]
    if not hops:
        raise _bad(
            "RouteTableMissingDefaultRouteError", f"Default route {_ANYWHERE} missing from route table {table.id.text}"
        )
    if hops[0] not in _NEXT_HOPS:
        raise _bad(
            "RouteTableInvalidNextHop",
            f"Default route {_ANYWHERE} has a next hop of {hops[0]} but only next hops of VirtualAppliance or "
            "VirtualNetworkGateway are allowed. Please see http://aka.ms/aks/outboundtype for more details",
        )


def _subnets(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The name and the subnet of each pool; empty where AKS makes it."""
    for pool in properties["agentPoolProfiles"]:
        yield pool["name"], str(pool.get("vnetSubnetID") or "")


def _named(kind: Kind, subnet_id: str, name: str) -> str:
    """The ID of what a subnet names."""
    subnet = kind.context.get(subnet_id)
    return str(at(subnet.properties, f"{name}.id", "")) if subnet else ""


def _bad(code: str, message: str) -> ArmError:
    return ArmError(code, message, 400)
