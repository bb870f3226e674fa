"""NAT gateways, public addresses and route tables: by which way a subnet is left.

Nothing is routed. Simplified: a public address is always a static one of the standard kind, and routes are kept as
they are given.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final

from rehearsal.azure.arm.errors import ArmError, invalid_reference
from rehearsal.azure.arm.identifiers import same
from rehearsal.azure.arm.kind import Body, Kind, Request, at
from rehearsal.azure.arm.store import Resource
from rehearsal.azure.network.networks import NAME, NETWORK_VERSIONS, SUBNET_TYPE

GATEWAY_TYPE: Final = "Microsoft.Network/natGateways"
ADDRESS_TYPE: Final = "Microsoft.Network/publicIPAddresses"
ROUTE_TABLE_TYPE: Final = "Microsoft.Network/routeTables"

# Nobody has them: a range for documentation.
_FIRST: Final = IPv4Address("203.0.113.1")
_ADDRESS_IN_USE: Final = (
    "Public IP address {id} can not be deleted since it is still allocated to resource {user}. In order to delete the "
    "public IP, disassociate/detach the Public IP address from the resource.  To learn how to do this, see "
    "aka.ms/deletepublicip."
)


class PublicIPAddress(Kind):
    """A public IP address."""

    type = ADDRESS_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """Give it an address that it keeps."""
        resource = self.resource(request)
        resource.body.setdefault("sku", {"name": "Standard", "tier": "Regional"})
        resource.properties.setdefault("publicIPAddressVersion", "IPv4")
        resource.properties.setdefault("idleTimeoutInMinutes", 4)
        resource.properties["publicIPAllocationMethod"] = "Static"
        kept = request.existing.properties if request.existing else {}
        resource.properties["ipAddress"] = (
            kept.get("ipAddress") or resource.properties.get("ipAddress") or self._free_address()
        )
        resource.properties["resourceGuid"] = _guid(request)
        return resource

    def users(self, resource: Resource) -> Iterator[Resource]:
        """The NAT gateway that has it."""
        for gateway in self.context.store.of_type(GATEWAY_TYPE):
            if any(same(one["id"], resource.id.text) for one in gateway.properties.get("publicIpAddresses") or []):
                yield gateway

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return ArmError(
            "PublicIPAddressCannotBeDeleted", _ADDRESS_IN_USE.format(id=resource.id.text, user=user.id.text)
        )

    def _free_address(self) -> str:
        taken = {one.properties.get("ipAddress") for one in self.context.store.of_type(ADDRESS_TYPE)}
        return next(address for number in range(254) if (address := str(_FIRST + number)) not in taken)


class NatGateway(Kind):
    """A NAT gateway."""

    type = GATEWAY_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """See that its addresses are there."""
        for address in at(request.body, "properties.publicIpAddresses") or []:
            if self.context.get(str(address.get("id", ""))) is None:
                raise invalid_reference(str(address.get("id", "")), request.id.text)
        resource = self.resource(request)
        resource.body.setdefault("sku", {"name": "Standard"})
        resource.properties.setdefault("idleTimeoutInMinutes", 4)
        resource.properties["resourceGuid"] = _guid(request)
        return resource

    def shown(self, resource: Resource) -> Body:
        """The gateway with its subnets."""
        return _with_subnets(self, resource, "natGateway")

    def users(self, resource: Resource) -> Iterator[Resource]:
        """The subnets that are left by it."""
        return _subnets(self, resource, "natGateway")

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion; the code is Azure's."""
        return ArmError(
            "InUseNatGatewayCannotBeDeleted",
            f"Nat gateway {resource.id.name} is in use and cannot be deleted. It is used by {user.id.text}.",
        )


class RouteTable(Kind):
    """A route table."""

    type = ROUTE_TABLE_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """Give the routes their ids."""
        resource = self.resource(request)
        resource.properties.setdefault("disableBgpRoutePropagation", False)
        for route in resource.properties.setdefault("routes", []):
            route["id"] = request.id.child("routes", str(route.get("name")))
            route.setdefault("properties", {})["provisioningState"] = "Succeeded"
        resource.properties["resourceGuid"] = _guid(request)
        return resource

    def shown(self, resource: Resource) -> Body:
        """The table with its subnets."""
        return _with_subnets(self, resource, "routeTable")

    def users(self, resource: Resource) -> Iterator[Resource]:
        """The subnets that have it."""
        return _subnets(self, resource, "routeTable")

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion, in Azure's words."""
        return ArmError(
            "InUseRouteTableCannotBeDeleted", f"Route table {resource.id.name} is in use and cannot be deleted."
        )


def _guid(request: Request) -> str:
    """Azure's own name of a resource, which it keeps."""
    kept = request.existing.properties if request.existing else {}
    return str(kept.get("resourceGuid") or uuid.uuid4())


def _subnets(kind: Kind, resource: Resource, name: str) -> Iterator[Resource]:
    for subnet in kind.context.store.of_type(SUBNET_TYPE):
        if same(str(at(subnet.properties, f"{name}.id", "")), resource.id.text):
            yield subnet


def _with_subnets(kind: Kind, resource: Resource, name: str) -> Body:
    body = resource.shown()
    if subnets := [{"id": subnet.id.text} for subnet in _subnets(kind, resource, name)]:
        body["properties"]["subnets"] = subnets
    return body
