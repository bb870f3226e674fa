"""Instances, network interfaces and what depends on them.

Changes in moto: interfaces that come with an instance go with it; terminating twice is not an error; a NAT
gateway gives its interface and address back when it is deleted; a subnet, security group, VPC, internet gateway
or address that is in use refuses to go, with AWS's DependencyViolation (moto lets most of them go, and destroying
in the wrong order would never be found); an instance that is asked for twice is described once; launch templates take
as much user data as EC2 does. EC2's state-change events are emitted. Instances run at once: how long they take to boot
is the registrar's matter.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from karpstack.rehearsal.aws.errors import answer, refused
from karpstack.rehearsal.aws.patching import Patches

#: Instances that one call launches at most. Karpenter asks for no more than that, and each takes some milliseconds in
#: which no other request is answered.
MOST_AT_ONCE: Final = 1_000

#: Bytes of user data, before base64 (EC2's user guide, "Run commands on your Linux instance at launch").
MOST_USER_DATA: Final = 16_384

_SUBNET_IN_USE = "The subnet '{id}' has dependencies and cannot be deleted."
_GROUP_IN_USE = "resource {id} has a dependent object"
_VPC_IN_USE = "The vpc '{id}' has dependencies and cannot be deleted."
_MAPPED_ADDRESSES = (
    "Network {id} has some mapped public address(es). Please unmap those public address(es) before "
    "detaching the gateway."
)
#: As CreateLaunchTemplateVersion was seen to answer (github-aws-runners/terraform-aws-github-runner#3700).
_LONG_USER_DATA = f"User data is limited to {MOST_USER_DATA} bytes."
_BAD_USER_DATA = "Invalid BASE64 encoding of user data."
_ADDRESS_IN_USE = "Address {address} is in use."


def patch(patches: Patches, changed: Callable[[str, str], object]) -> None:
    """Install all of it.

    Args:
        patches: Where to install.
        changed: Called with an instance's id and its new state.
    """
    from moto.ec2.models import EC2Backend
    from moto.ec2.models.instances import Instance
    from moto.ec2.models.launch_templates import LaunchTemplate

    def run_instances(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(backend: Any, image_id: str, count: int, *arguments: Any, **options: Any) -> Any:
            if not 0 < count <= MOST_AT_ONCE:
                raise refused("too many", count=count, most=MOST_AT_ONCE)
            kept = {
                nic["DeviceIndex"]
                for nic in options.get("nics") or []
                if nic.get("NetworkInterfaceId") or nic.get("DeleteOnTermination") is False
            }
            reservation = original(backend, image_id, count, *arguments, **options)
            for instance in reservation.instances:
                for index, nic in instance.nics.items():
                    if index not in kept:
                        nic.delete_on_termination = True
                changed(instance.id, "running")
            return reservation

        return run

    def terminate(original: Callable[..., Any]) -> Callable[..., Any]:
        def end(instance: Any) -> Any:
            if instance.state == "terminated":
                return instance._state
            previous = original(instance)
            changed(instance.id, "shutting-down")
            changed(instance.id, "terminated")
            return previous

        return end

    def describe(original: Callable[..., Any]) -> Callable[..., Any]:
        # Karpenter puts questions of several threads into one, the same instance's among them (pkg/batcher), and moto
        # fails where it finds fewer than were asked for.
        return lambda backend, ids, **options: original(backend, list(dict.fromkeys(ids)), **options)

    patches.wrap(EC2Backend, "run_instances", run_instances)
    patches.wrap(EC2Backend, "get_reservations_by_instance_ids", describe)
    patches.wrap(Instance, "terminate", terminate)
    for name, refuse in _REFUSALS.items():
        patches.wrap(EC2Backend, name, _guard(refuse))
    patches.wrap(EC2Backend, "delete_nat_gateway", _give_back)
    patches.wrap(LaunchTemplate, "create_version", _guard(_user_data))


def _guard(refuse: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(backend: Any, *arguments: Any, **options: Any) -> Any:
            refuse(backend, *arguments, **options)
            return original(backend, *arguments, **options)

        return call

    return wrap


def _violation(message: str, code: str = "DependencyViolation") -> Exception:
    return answer(code, message)


def _user_data(_: Any, data: dict[str, Any], *__: Any) -> None:
    try:
        length = len(base64.b64decode(str(data.get("UserData") or ""), validate=True))
    except ValueError:
        raise _violation(_BAD_USER_DATA, "InvalidUserData.Malformed") from None
    if length > MOST_USER_DATA:
        raise _violation(_LONG_USER_DATA, "InvalidUserData.Malformed")


def _subnet(backend: Any, subnet_id: str) -> None:
    if any(nic.subnet.id == subnet_id for nic in list(backend.enis.values())):
        raise _violation(_SUBNET_IN_USE.format(id=subnet_id))


def _group(backend: Any, name: str | None = None, group_id: str | None = None) -> None:
    if group_id is None:
        return
    used = any(group.id == group_id for nic in list(backend.enis.values()) for group in nic.group_set)
    if used or any(group_id in _referenced(group) for group in _groups(backend) if group.id != group_id):
        raise _violation(_GROUP_IN_USE.format(id=group_id))


def _vpc(backend: Any, vpc_id: str) -> None:
    groups = [group for group in _groups(backend) if group.vpc_id == vpc_id and group.name != "default"]
    gateways = [gateway for gateway in backend.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
    if groups or gateways:
        raise _violation(_VPC_IN_USE.format(id=vpc_id))


def _gateway(backend: Any, internet_gateway_id: str, vpc_id: str) -> None:
    if any(nic.public_ip and nic.subnet.vpc_id == vpc_id for nic in list(backend.enis.values())):
        raise _violation(_MAPPED_ADDRESSES.format(id=vpc_id))


def _address(backend: Any, address: str | None = None, allocation_id: str | None = None) -> None:
    found = backend.address_by_allocation([allocation_id]) if allocation_id else []
    if found and found[0].eni is not None:
        raise _violation(_ADDRESS_IN_USE.format(address=found[0].public_ip), "InvalidIPAddress.InUse")


_REFUSALS: dict[str, Callable[..., None]] = {
    "delete_subnet": _subnet,
    "delete_security_group": _group,
    "delete_vpc": _vpc,
    "detach_internet_gateway": _gateway,
    "release_address": _address,
}


def _groups(backend: Any) -> list[Any]:
    return [group for groups in list(backend.groups.values()) for group in list(groups.values())]


def _referenced(group: Any) -> set[str]:
    rules = [*group.ingress_rules, *group.egress_rules]
    return {rule.source_group["GroupId"] for rule in rules if rule.source_group.get("GroupId")}


def _give_back(original: Callable[..., Any]) -> Callable[..., Any]:
    def delete(backend: Any, nat_gateway_id: str) -> Any:
        gateway = original(backend, nat_gateway_id)
        backend.enis.pop(gateway._eni.id, None)
        for address in backend.addresses:
            if address.eni is gateway._eni:
                address.eni, address.association_id = None, None
        return gateway

    return delete
