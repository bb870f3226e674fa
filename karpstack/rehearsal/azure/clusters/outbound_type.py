"""What AKS refuses of the way out of a cluster's subnets (`networkProfile.outboundType`).

Where public reports show AKS's words, they are AKS's: of a subnet without a gateway (jenkins-infra/azure#715), without
a route table or a default route (MicrosoftDocs/azure-docs#108240), and with one that leads to the internet
(Azure/AKS#1875). The other codes are AKS's, and their texts in its manner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.context import Context

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
        raise refused("SubnetNotAssociatedWithNATGateway", subnet_id=subnet_id)
    if not gateway.properties.get("publicIpAddresses") and not gateway.properties.get("publicIpPrefixes"):
        raise refused("NATGatewayNotAssociatedWithPublicIPOrIPPrefix", text=gateway.id.text)


def _route(context: Context, subnet_id: str) -> None:
    table_id = _named(context, subnet_id, "routeTable")
    table = context.get(table_id) if table_id else None
    if table is None:
        raise refused("ExistingRouteTableNotAssociatedWithSubnet", subnet_id=subnet_id)
    hops = [
        at(route, "properties.nextHopType")
        for route in table.properties["routes"]
        if at(route, "properties.addressPrefix") == _ANYWHERE
    ]
    if not hops:
        raise refused("RouteTableMissingDefaultRouteError", text=table.id.text)
    if hops[0] not in _NEXT_HOPS:
        raise refused("RouteTableInvalidNextHop", hops=hops[0])


def _named(context: Context, subnet_id: str, name: str) -> str:
    """The ID of what a subnet names."""
    subnet = context.get(subnet_id)
    return str(at(subnet.properties, f"{name}.id", "")) if subnet else ""
