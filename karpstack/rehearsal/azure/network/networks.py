"""Virtual networks, their subnets, and what has addresses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, ip_network

from karpstack.rehearsal.azure.arm.errors import ArmError, invalid_reference, refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, same
from karpstack.rehearsal.azure.arm.kind import Body, Kind, Request, at
from karpstack.rehearsal.azure.arm.rows import each
from karpstack.rehearsal.azure.arm.store import Resource

NETWORK_TYPE = "Microsoft.Network/virtualNetworks"
SUBNET_TYPE = f"{NETWORK_TYPE}/subnets"
INTERFACE_TYPE = "Microsoft.Network/networkInterfaces"
ADDRESS_TYPE = "Microsoft.Network/publicIPAddresses"
SECURITY_GROUP_TYPE = "Microsoft.Network/networkSecurityGroups"
LOAD_BALANCER_TYPE = "Microsoft.Network/loadBalancers"
SCALE_SET_TYPE = "Microsoft.Compute/virtualMachineScaleSets"

#: Azure keeps the first four addresses of a subnet and the last.
_RESERVED_FIRST, _RESERVED = 4, 5
#: Public addresses that nobody has: a range for documentation.
_FIRST_ADDRESS = IPv4Address("203.0.113.1")


class VirtualNetwork(Kind):
    """A virtual network. Subnets in its body are made, changed and removed with it; a body without any leaves them."""

    type = NETWORK_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check that no subnet falls out of the address space."""
        space = [network(prefix, request.id.text) for prefix in resource.properties["addressSpace"]["addressPrefixes"]]
        for subnet in self.context.store.of_type(SUBNET_TYPE, request.id.text):
            cidr = network(subnet.properties["addressPrefix"], subnet.id.text)
            if not any(cidr.subnet_of(prefix) for prefix in space):
                raise refused("InUsePrefixCannotBeDeleted", cidr=cidr, network=request.id.name, subnet=subnet.id.name)
        resource.private["subnets"] = resource.properties.pop("subnets", None)

    def created(self, resource: Resource, request: Request) -> None:
        """Make the subnets of the body."""
        listed = resource.private.pop("subnets", None)
        if listed is None:
            return
        names = {str(item.get("name", "")).lower() for item in listed}
        kind = Subnet(self.context)
        for subnet in list(self.context.store.of_type(SUBNET_TYPE, resource.id.text)):
            if subnet.id.name.lower() not in names:
                kind.check_delete(subnet)
                self.context.store.remove(subnet.id.text)
        for item in listed:
            identifier = ResourceId.parse(resource.id.child("subnets", str(item.get("name") or "")))
            kind.check_name(identifier)
            existing = self.context.get(identifier.text)
            made = kind.put(Request(identifier, dict(item), existing, request.version, request.caller))
            self.context.store.add(made)

    def shown(self, resource: Resource) -> Body:
        """The network with its subnets."""
        body = resource.shown()
        subnets = self.context.store.of_type(SUBNET_TYPE, resource.id.text)
        body["properties"]["subnets"] = [subnet.shown() for subnet in subnets]
        return body

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Whoever is in one of its subnets."""
        for subnet in self.context.store.of_type(SUBNET_TYPE, resource.id.text):
            yield from Subnet(self.context).users(subnet)

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """Azure names the subnet."""
        kind = Subnet(self.context)
        subnets = self.context.store.of_type(SUBNET_TYPE, resource.id.text)
        return kind.in_use(next(one for one in subnets if any(each is user for each in kind.users(one))), user)


class Subnet(Kind):
    """A subnet."""

    type = SUBNET_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check the address range against the network and its other subnets."""
        parent = self.context.get(request.id.parent)
        listed = each(resource.body, "addressPrefix") + each(resource.body, "addressPrefixes[]")
        cidr = network(str(listed[0]) if listed else "", request.id.text)
        names = {"name": request.id.name, "network": request.id.names[0]}
        space = each(parent.body, "addressSpace.addressPrefixes[]") if parent else []
        if not any(cidr.subnet_of(network(prefix, request.id.parent)) for prefix in space):
            raise refused("NetcfgInvalidSubnet/outside", **names)
        for other in self.context.store.of_type(SUBNET_TYPE, request.id.parent):
            other_cidr = network(other.properties["addressPrefix"], other.id.text)
            if not same(other.id.text, request.id.text) and cidr.overlaps(other_cidr):
                raise refused("NetcfgInvalidSubnet/overlap", **names)
        if request.existing and request.existing.properties["addressPrefix"] != str(cidr):
            user = next(self.users(request.existing), None)
            if user:
                raise ArmError("InUseSubnetCannotBeUpdated", self.in_use(request.existing, user).message)
        resource.body.pop("tags", None)
        resource.properties["addressPrefix"] = str(cidr)


class NetworkInterface(Kind):
    """A network interface with addresses of one subnet."""

    type = INTERFACE_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check what it names and give it addresses."""
        before = request.existing.properties if request.existing else {}
        kept = {item["name"]: at(item, "properties.privateIPAddress") for item in before.get("ipConfigurations", ())}
        for item in resource.properties["ipConfigurations"]:
            properties = item["properties"]
            identifier = at(properties, "subnet.id", "")
            subnet = self.context.get(identifier)
            if subnet is None or subnet.type != SUBNET_TYPE:
                raise invalid_reference(identifier, request.id.text)
            for pool in each(item, "loadBalancerBackendAddressPools[].id"):
                balancer = self.context.get(ResourceId.parse(str(pool)).parent)
                pools = each(balancer.body, "backendAddressPools[].id") if balancer else []
                if not any(same(known, str(pool)) for known in pools):
                    raise invalid_reference(str(pool), request.id.text)
            properties["privateIPAddress"] = kept.get(item.get("name")) or self._free_address(subnet)
            properties["privateIPAllocationMethod"] = "Dynamic"
        resource.properties.update({name: before[name] for name in ("virtualMachine", "macAddress") if name in before})

    def _free_address(self, subnet: Resource) -> str:
        """The first free address of a subnet; refused when it is full."""
        cidr = network(subnet.properties["addressPrefix"], subnet.id.text)
        taken = 0
        used: set[str] = set()
        for user in Subnet(self.context).users(subnet):
            if user.type == INTERFACE_TYPE:
                used.update(each(user.body, "ipConfigurations[].properties.privateIPAddress"))
            else:
                taken += int(user.body["sku"]["capacity"])
        if len(used) + taken + 1 > cidr.num_addresses - _RESERVED:
            raise refused("SubnetIsFull", name=subnet.id.name, cidr=cidr)
        # The scale sets' instances come first: their addresses are counted, not named.
        addresses = range(int(cidr.network_address) + _RESERVED_FIRST + taken, int(cidr.broadcast_address))
        return next(address for number in addresses if (address := str(IPv4Address(number))) not in used)


class PublicIPAddress(Kind):
    """A public IP address, which it keeps."""

    type = ADDRESS_TYPE

    def fill(self, request: Request, resource: Resource) -> None:
        """It is static, whatever is asked for."""
        resource.properties["publicIPAllocationMethod"] = "Static"

    def words(self) -> dict[str, str]:
        """A free address."""
        taken = {one.properties.get("ipAddress") for one in self.context.store.of_type(ADDRESS_TYPE)}
        free = (str(_FIRST_ADDRESS + number) for number in range(254))
        return {"free_address": next(address for address in free if address not in taken)}


# Each subnet is compared with all others of its network.
_parsed = lru_cache(4096)(partial(ip_network, strict=False))


def network(cidr: str, identifier: str) -> IPv4Network:
    """An address range; a broken or unaligned one is refused in the name of a resource."""
    try:
        loose = _parsed(cidr)
    except ValueError:
        raise refused("InvalidAddressPrefixFormat", cidr=cidr or "''", id=identifier) from None
    if not isinstance(loose, IPv4Network) or "/" not in cidr:
        raise refused("InvalidAddressPrefixFormat", cidr=cidr, id=identifier)
    if str(loose) != cidr:
        raise refused("InvalidCIDRNotation", cidr=cidr, id=identifier, right=loose)
    return loose
