"""What AKS refuses of the way out of a cluster's subnets (`networkProfile.outboundType`).

Where public reports show AKS's words, they are AKS's: of a subnet without a gateway (jenkins-infra/azure#715), without
a route table or a default route (MicrosoftDocs/azure-docs#108240), and with one that leads to the internet
(Azure/AKS#1875). The other codes are AKS's, and their texts in its manner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import at
from rehearsal.azure.context import Context

_ANYWHERE = "0.0.0.0/0"
_NEXT_HOPS = ("VirtualAppliance", "VirtualNetworkGateway")


def check(context: Context, properties: Mapping[str, Any]) -> None:
    """Refuse a way out that the subnets of the cluster's pools do not have; that they have some, their row says.

    Args:
        context: For look-ups.
        properties: Those of the cluster, defaults filled in; its subnets exist.
    """
    outbound = at(properties, "networkProfile.outboundType")
    look = {"userAssignedNATGateway": _gateway, "userDefinedRouting": _route}.get(outbound)
    for pool in properties["agentPoolProfiles"]:
        if look:
            look(context, str(pool["vnetSubnetID"]))


def _gateway(context: Context, subnet_id: str) -> None:
    gateway_id = _named(context, subnet_id, "natGateway")
    gateway = context.get(gateway_id) if gateway_id else None
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


def _route(context: Context, subnet_id: str) -> None:
    table_id = _named(context, subnet_id, "routeTable")
    table = context.get(table_id) if table_id else None
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


def _named(context: Context, subnet_id: str, name: str) -> str:
    """The ID of what a subnet names."""
    subnet = context.get(subnet_id)
    return str(at(subnet.properties, f"{name}.id", "")) if subnet else ""


def _bad(code: str, message: str) -> ArmError:
    return ArmError(code, message, 400)
