"""Network interfaces, and the network security groups and load balancers that they name."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from rehearsal.azure.arm.errors import ArmError, invalid_parameter, invalid_reference
from rehearsal.azure.arm.identifiers import ResourceId, same
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource
from rehearsal.azure.network.networks import INTERFACE_TYPE, NAME, NETWORK_VERSIONS, SUBNET_TYPE, free_address

SECURITY_GROUP_TYPE = "Microsoft.Network/networkSecurityGroups"
LOAD_BALANCER_TYPE = "Microsoft.Network/loadBalancers"
_POOL_TYPE = f"{LOAD_BALANCER_TYPE}/backendAddressPools"

_NIC_IN_USE = (
    "Network Interface {id} is used by existing resource {user}. In order to delete the network interface, it must be "
    "dissociated from the resource. To learn more, see aka.ms/deletenic."
)
_GROUP_IN_USE = (
    "Network security group {id} cannot be deleted because it is in use by the following resources: {user}. In order "
    "to delete the Network security group, remove the association with the resource(s). To learn how to do this, see "
    "aka.ms/deletensg."
)


class NetworkInterface(Kind):
    """A network interface with addresses of one subnet."""

    type = INTERFACE_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """Check what it names and give it addresses."""
        resource = self.resource(request)
        configurations = resource.properties.get("ipConfigurations") or []
        if not configurations:
            raise invalid_parameter(
                "ipConfigurations", f"Network interface {request.id.text} must have at least one IP configuration."
            )
        group = at(resource.properties, "networkSecurityGroup.id")
        if group and self.context.get(group) is None:
            raise invalid_reference(group, request.id.text)
        kept = {
            item["name"]: at(item, "properties.privateIPAddress")
            for item in (request.existing.properties["ipConfigurations"] if request.existing else [])
        }
        for item in configurations:
            properties = item.setdefault("properties", {})
            subnet = self.context.get(at(properties, "subnet.id", ""))
            if subnet is None or subnet.type != SUBNET_TYPE:
                raise invalid_reference(at(properties, "subnet.id", ""), request.id.text)
            for pool in properties.get("loadBalancerBackendAddressPools") or []:
                self._check_pool(str(pool.get("id", "")), request)
            properties["privateIPAddress"] = kept.get(item.get("name")) or free_address(self, subnet)
            properties |= {"provisioningState": "Succeeded", "privateIPAllocationMethod": "Dynamic"}
            item["id"] = request.id.child("ipConfigurations", str(item.get("name")))
        if request.existing:
            for name in ("virtualMachine", "macAddress", "resourceGuid"):
                if name in request.existing.properties:
                    resource.properties[name] = request.existing.properties[name]
        resource.properties.setdefault("resourceGuid", str(uuid.uuid4()))
        return resource

    def users(self, resource: Resource) -> Iterator[Resource]:
        """The VM that has it."""
        machine = self.context.get(at(resource.properties, "virtualMachine.id", ""))
        if machine:
            yield machine

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return ArmError("NicInUse", _NIC_IN_USE.format(id=resource.id.text, user=user.id.text))

    def delete_seconds(self) -> float:
        """How long a deletion takes."""
        return self.context.durations.deletion

    def linked(self, request: Request) -> list[tuple[str, str]]:
        """Joining a subnet, a security group and a backend pool are actions on those."""
        wanted: list[tuple[str, str]] = []
        group = at(request.body, "properties.networkSecurityGroup.id")
        if group:
            wanted.append((f"{SECURITY_GROUP_TYPE}/join/action", group))
        for item in at(request.body, "properties.ipConfigurations") or []:
            subnet = at(item, "properties.subnet.id")
            if subnet:
                wanted.append((f"{SUBNET_TYPE}/join/action", subnet))
            wanted += [
                (f"{_POOL_TYPE}/join/action", str(pool.get("id")))
                for pool in at(item, "properties.loadBalancerBackendAddressPools") or []
            ]
        return wanted

    def _check_pool(self, identifier: str, request: Request) -> None:
        pool = ResourceId.parse(identifier)
        balancer = self.context.get(pool.parent)
        pools = balancer.properties.get("backendAddressPools") or [] if balancer else []
        if not any(same(str(item.get("id", "")), identifier) for item in pools):
            raise invalid_reference(identifier, request.id.text)


class NetworkSecurityGroup(Kind):
    """A network security group; its rules are kept and mean nothing."""

    type = SECURITY_GROUP_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def in_use(self, resource: Resource, user: Resource) -> ArmError:
        """The refusal of a deletion."""
        return ArmError(
            "InUseNetworkSecurityGroupCannotBeDeleted", _GROUP_IN_USE.format(id=resource.id.text, user=user.id.text)
        )

    def users(self, resource: Resource) -> Iterator[Resource]:
        """Subnets and interfaces that have it."""
        for resource_type in (SUBNET_TYPE, INTERFACE_TYPE):
            for user in self.context.store.of_type(resource_type):
                if same(at(user.properties, "networkSecurityGroup.id", ""), resource.id.text):
                    yield user


class LoadBalancer(Kind):
    """A load balancer; backend pools get their ids, nothing is balanced."""

    type = LOAD_BALANCER_TYPE
    versions = NETWORK_VERSIONS
    name = NAME

    def put(self, request: Request) -> Resource:
        """Give the backend pools their ids."""
        resource = self.resource(request)
        for pool in resource.properties.get("backendAddressPools") or []:
            pool["id"] = request.id.child("backendAddressPools", str(pool.get("name")))
            pool.setdefault("properties", {})["provisioningState"] = "Succeeded"
        return resource
