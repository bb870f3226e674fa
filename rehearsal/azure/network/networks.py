"""Virtual networks and their subnets: address spaces, and who is in a subnet.

Simplified: no peerings, no IPv6, no DNS; service endpoints, delegations and the like are kept as they are given.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from copy import deepcopy
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any

from rehearsal.azure.arm.errors import ArmError, invalid_reference
from rehearsal.azure.arm.identifiers import ResourceId, same
from rehearsal.azure.arm.kind import Body, Kind, Request, at
from rehearsal.azure.arm.store import Resource

NETWORK_TYPE = "Microsoft.Network/virtualNetworks"
SUBNET_TYPE = f"{NETWORK_TYPE}/subnets"
INTERFACE_TYPE = "Microsoft.Network/networkInterfaces"
SCALE_SET_TYPE = "Microsoft.Compute/virtualMachineScaleSets"

#: API versions of the network types that are in use: by the controller's SDK, by Pulumi's default and between.
NETWORK_VERSIONS = (
    "2018-10-01",
    "2022-01-01",
    "2023-02-01",
    "2023-11-01",
    "2024-01-01",
    "2024-03-01",
    "2024-05-01",
    "2024-07-01",
    "2024-10-01",
    "2025-01-01",
    "2025-03-01",
    "2025-05-01",
)
#: What the names of all network types look like.
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]{0,78}[A-Za-z0-9_])?")
#: Azure keeps the first four addresses of a subnet and the last.
_RESERVED_FIRST, _RESERVED = 4, 5

_BAD_CIDR = (
    "The address prefix {cidr} for resource {id} is not formatted correctly. It should follow CIDR notation, for "
    "example 10.0.0.0/24."
)
_UNALIGNED = (
    "The address prefix {cidr} in resource {id} has an invalid CIDR notation. For the given prefix length, the address "
    "prefix should be {right}."
)
_OUTSIDE = (
    "Subnet '{name}' is not valid because its IP address range is outside the IP address range of virtual network "
    "'{network}'."
)
_OVERLAP = (
    "Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in virtual "
    "network '{network}'."
)
_IN_USE = (
    "Subnet {name} is in use by {user} and cannot be deleted. In order to delete the subnet, delete all the resources "
    "within the subnet. See aka.ms/deletesubnet."
)
_FULL = "Subnet {name} with address prefix {cidr} does not have enough capacity for 1 IP addresses."
_STILL_USED = (
    "Address prefix {cidr} of virtual network {network} cannot be removed or changed because the subnet {subnet} lies "
    "in it."
)


#: What Azure answers of a subnet that says nothing about it; recorded, see docs/recorded.md.
_SUBNET: dict[str, Any] = {
    "delegations": [],
    "privateEndpointNetworkPolicies": "Disabled",
    "privateLinkServiceNetworkPolicies": "Enabled",
}


class VirtualNetwork(Kind):
    """A virtual network. Subnets in its body are made, changed and removed with it; a body without any leaves them."""

    type = NETWORK_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """Check the address space, and that no subnet falls out of it."""
        resource = self.resource(request)
        prefixes = at(resource.properties, "addressSpace.addressPrefixes") or []
        if not prefixes:
            raise ArmError(
                "AddressSpaceNotSpecified",
                f"The virtual network {request.id.text} has no address space: give addressSpace.addressPrefixes.",
            )
        space = [network(prefix, request.id.text) for prefix in prefixes]
        for subnet in self.context.store.of_type(SUBNET_TYPE, request.id.text):
            cidr = network(subnet.properties["addressPrefix"], subnet.id.text)
            if not any(cidr.subnet_of(prefix) for prefix in space):
                raise ArmError(
                    "InUsePrefixCannotBeDeleted",
                    _STILL_USED.format(cidr=cidr, network=request.id.name, subnet=subnet.id.name),
                )
        resource.private["subnets"] = resource.properties.pop("subnets", None)
        resource.properties.setdefault("enableDdosProtection", False)
        resource.properties.setdefault("virtualNetworkPeerings", [])
        kept = request.existing.properties if request.existing else {}
        given = resource.properties.get("resourceGuid")
        resource.properties["resourceGuid"] = kept.get("resourceGuid") or given or str(uuid.uuid4())
        return resource

    def created(self, resource: Resource, request: Request) -> None:
        """Make the subnets of the body."""
        listed = resource.private.pop("subnets", None)
        if listed is None:
            return
        names = {str(item.get("name", "")).lower() for item in listed}
        for subnet in list(self.context.store.of_type(SUBNET_TYPE, resource.id.text)):
            if subnet.id.name.lower() not in names:
                check_unused(self, subnet)
                self.context.store.remove(subnet.id.text)
        kind = Subnet(self.context)
        for item in listed:
            identifier = ResourceId.parse(resource.id.child("subnets", str(item.get("name") or "")))
            kind.check_name(identifier)
            self.context.store.add(
                kind.put(
                    Request(identifier, dict(item), self.context.get(identifier.text), request.version, request.caller)
                )
            )

    def shown(self, resource: Resource) -> Body:
        """The network with its subnets."""
        body = resource.shown()
        body["properties"]["subnets"] = [
            subnet.shown() for subnet in self.context.store.of_type(SUBNET_TYPE, resource.id.text)
        ]
        return body

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Whoever is in one of its subnets."""
        for subnet in self.context.store.of_type(SUBNET_TYPE, resource.id.text):
            yield from users(self, subnet)

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """Azure names the subnet."""
        subnet = next(
            subnet
            for subnet in self.context.store.of_type(SUBNET_TYPE, resource.id.text)
            if any(holder is user for holder in users(self, subnet))
        )
        return _in_use(subnet, user)


class Subnet(Kind):
    """A subnet."""

    type = SUBNET_TYPE
    versions = NETWORK_VERSIONS
    name = NAME
    located = False

    def put(self, request: Request) -> Resource:
        """Check the address range against the network and its other subnets."""
        parent = self.context.get(request.id.parent)
        given = at(request.body, "properties.addressPrefix") or next(
            iter(at(request.body, "properties.addressPrefixes") or []), ""
        )
        cidr = network(str(given), request.id.text)
        space = (
            [network(prefix, request.id.parent) for prefix in at(parent.properties, "addressSpace.addressPrefixes")]
            if parent
            else []
        )
        if not any(cidr.subnet_of(prefix) for prefix in space):
            raise ArmError("NetcfgInvalidSubnet", _OUTSIDE.format(name=request.id.name, network=request.id.names[0]))
        for other in self.context.store.of_type(SUBNET_TYPE, request.id.parent):
            if not same(other.id.text, request.id.text) and cidr.overlaps(
                network(other.properties["addressPrefix"], other.id.text)
            ):
                raise ArmError(
                    "NetcfgInvalidSubnet", _OVERLAP.format(name=request.id.name, network=request.id.names[0])
                )
        if request.existing and request.existing.properties["addressPrefix"] != str(cidr):
            check_unused(self, request.existing, "InUseSubnetCannotBeUpdated")
        for name in ("networkSecurityGroup", "natGateway", "routeTable"):
            check_reference(self, request, name)
        resource = self.resource(request)
        resource.body.pop("tags", None)
        resource.properties["addressPrefix"] = str(cidr)
        for delegation in resource.properties.get("delegations") or []:
            delegation["id"] = request.id.child("delegations", str(delegation.get("name")))
            delegation.setdefault("properties", {})["provisioningState"] = "Succeeded"
        for name, value in _SUBNET.items():
            resource.properties.setdefault(name, deepcopy(value))
        return resource

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Whoever has an address in it."""
        return users(self, resource)

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return _in_use(resource, user)


def network(cidr: str, identifier: str) -> IPv4Network:
    """An address range; a broken or unaligned one is refused in the name of a resource."""
    try:
        loose = ip_network(cidr, strict=False)
    except ValueError:
        raise ArmError("InvalidAddressPrefixFormat", _BAD_CIDR.format(cidr=cidr or "''", id=identifier)) from None
    if not isinstance(loose, IPv4Network) or "/" not in cidr:
        raise ArmError("InvalidAddressPrefixFormat", _BAD_CIDR.format(cidr=cidr, id=identifier))
    if str(loose) != cidr:
        raise ArmError("InvalidCIDRNotation", _UNALIGNED.format(cidr=cidr, id=identifier, right=loose))
    return loose


def check_reference(kind: Kind, request: Request, name: str) -> None:
    """Refuse a `properties.<name>.id` that names nothing."""
    identifier = at(request.body, f"properties.{name}.id")
    if identifier and kind.context.get(ResourceId.parse(str(identifier)).text) is None:
        raise invalid_reference(str(identifier), request.id.text)


def users(kind: Kind, subnet: Resource) -> Iterator[Resource]:
    """What has addresses in a subnet: network interfaces and the scale sets of agent pools."""
    for interface in kind.context.store.of_type(INTERFACE_TYPE):
        if any(
            same(at(item, "properties.subnet.id", ""), subnet.id.text)
            for item in interface.properties["ipConfigurations"]
        ):
            yield interface
    for scale_set in kind.context.store.of_type(SCALE_SET_TYPE):
        if same(str(scale_set.private.get("subnet", "")), subnet.id.text):
            yield scale_set


def check_unused(kind: Kind, subnet: Resource, code: str = "InUseSubnetCannotBeDeleted") -> None:
    """Refuse while a subnet is in use."""
    user = next(users(kind, subnet), None)
    if user:
        raise _in_use(subnet, user, code)


def _in_use(subnet: Resource, user: Resource, code: str = "InUseSubnetCannotBeDeleted") -> ArmError:
    return ArmError(code, _IN_USE.format(name=subnet.id.name, user=user.id.text))


def free_address(kind: Kind, subnet: Resource) -> str:
    """The first free address of a subnet; refused when it is full."""
    cidr = network(subnet.properties["addressPrefix"], subnet.id.text)
    taken = 0
    used: set[str] = set()
    for user in users(kind, subnet):
        if user.type == INTERFACE_TYPE:
            used.update(str(at(item, "properties.privateIPAddress")) for item in user.properties["ipConfigurations"])
        else:
            taken += int(user.body["sku"]["capacity"])
    if len(used) + taken + 1 > cidr.num_addresses - _RESERVED:
        raise ArmError("SubnetIsFull", _FULL.format(name=subnet.id.name, cidr=cidr))
    # The scale sets' instances come first: their addresses are counted, not named.
    start = int(cidr.network_address) + _RESERVED_FIRST + taken
    return next(
        str(IPv4Address(number))
        for number in range(start, int(cidr.broadcast_address))
        if str(IPv4Address(number)) not in used
    )
