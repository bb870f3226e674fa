"""ARM's own checks: ids, API versions, names, parents, references, deletions; each precondition is broken once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.faults import Fault
from rehearsal.azure.arm.identifiers import ResourceId, within
from rehearsal.azure.arm.operations import Durations
from tests.unit.rehearsal.azure_world import COMPUTE, GROUP, GROUPS, NETWORK, REGION, SCOPE, World, machine_id

PROVIDER = f"{GROUP}/providers/Microsoft.Network"
NET = f"{PROVIDER}/virtualNetworks/net"
NODES = f"{NET}/subnets/nodes"
GATEWAY, ADDRESS, ROUTES = (f"{PROVIDER}/{kind}/out" for kind in ("natGateways", "publicIPAddresses", "routeTables"))


def refused(call: Callable[[], Any]) -> ArmError:
    with pytest.raises(ArmError) as caught:
        call()
    return caught.value


def test_ids_are_taken_apart() -> None:
    one = ResourceId.parse(f"{NET}/subnets/nodes")
    assert (one.type, one.names, one.group) == ("Microsoft.Network/virtualNetworks/subnets", ("net", "nodes"), "demo")
    assert one.parent == NET
    extension = ResourceId.parse(f"{NET}/providers/Microsoft.Authorization/roleAssignments/x")
    assert (extension.scope, extension.parent, extension.subscription) == (NET, NET, SCOPE.rsplit("/", 1)[-1])
    assert within(f"{NET}/subnets/nodes", GROUP.upper())
    assert not within(f"{GROUP}2", GROUP)


@pytest.mark.parametrize(
    "text", ["", "net", "/subscriptions/x/resourceGroups", f"{GROUP}/providers/Microsoft.Network/virtualNetworks"]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    assert refused(lambda: ResourceId.parse(text)).code == "LinkedInvalidPropertyId"


def test_ids_are_found_in_any_case() -> None:
    world = World()
    world.network()
    assert world.arm.get(NET.upper().replace("/SUBSCRIPTIONS", "/subscriptions"), NETWORK)["id"] == NET


def test_a_put_is_idempotent() -> None:
    world = World()
    first, second = world.network("net", ("nodes", "10.1.0.0/24")), world.network("net", ("nodes", "10.1.0.0/24"))
    assert first["properties"]["resourceGuid"] == second["properties"]["resourceGuid"]
    assert world.identity()["properties"] == world.identity()["properties"]
    assert len(world.arm.list(f"{NET}/subnets", NETWORK)) == 1


def test_gets_and_deletes_of_nothing() -> None:
    world = World()
    assert refused(lambda: world.arm.get(NET, NETWORK)).status == 404
    world.arm.delete(NET, NETWORK)
    assert refused(lambda: world.arm.delete(f"{SCOPE}/resourceGroups/none", GROUPS)).code == "ResourceGroupNotFound"


def test_addresses_are_given_once_and_run_out() -> None:
    world = World()
    subnet = world.network("net", ("tiny", "10.1.0.0/29"))["properties"]["subnets"][0]["id"]
    addresses = {
        world.interface(subnet, f"nic{n}")["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
        for n in range(3)
    }
    assert addresses == {"10.1.0.4", "10.1.0.5", "10.1.0.6"}
    assert refused(lambda: world.interface(subnet, "nic4")).code == "SubnetIsFull"


def test_what_is_in_use_stays() -> None:
    world = World()
    subnet = world.subnet()
    nic = world.interface(subnet)
    world.machine(world.machine_body(nic["id"]))
    assert refused(lambda: world.arm.delete(subnet, NETWORK)).code == "InUseSubnetCannotBeDeleted"
    assert refused(lambda: world.arm.delete(NET, NETWORK)).code == "InUseSubnetCannotBeDeleted"
    error = refused(lambda: world.arm.delete(nic["id"], NETWORK))
    assert error.code == "NicInUse"
    assert machine_id() in error.message
    world.arm.delete(machine_id(), COMPUTE)
    assert world.arm.list(f"{GROUP}/providers/Microsoft.Network/networkInterfaces", NETWORK) == []
    world.arm.delete(NET, NETWORK)


def test_a_subnet_in_use_is_neither_changed_nor_dropped() -> None:
    world = World()
    world.interface(world.subnet())
    body = {"properties": {"addressPrefix": "10.1.0.0/25"}}
    assert refused(lambda: world.arm.put(f"{NET}/subnets/nodes", NETWORK, body)).code == "InUseSubnetCannotBeUpdated"
    assert refused(lambda: world.network("net", ("other", "10.1.9.0/24"))).code == "InUseSubnetCannotBeDeleted"
    shrunk = {"location": REGION, "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}}
    assert refused(lambda: world.arm.put(NET, NETWORK, shrunk)).code == "InUsePrefixCannotBeDeleted"
    assert len(world.arm.list(f"{NET}/subnets", NETWORK)) == 1


def test_a_network_with_a_bad_subnet_is_not_made() -> None:
    world = World()
    assert (
        refused(lambda: world.network("net", ("a", "10.1.0.0/24"), ("b", "10.1.0.0/25"))).code == "NetcfgInvalidSubnet"
    )
    assert refused(lambda: world.arm.get(NET, NETWORK)).code == "ResourceNotFound"


def test_security_groups_in_use_stay() -> None:
    world = World()
    group = world.arm.put(
        f"{GROUP}/providers/Microsoft.Network/networkSecurityGroups/nsg", NETWORK, {"location": REGION}
    )
    world.network()
    world.arm.put(
        f"{NET}/subnets/nodes",
        NETWORK,
        {"properties": {"addressPrefix": "10.1.0.0/24", "networkSecurityGroup": {"id": group["id"]}}},
    )
    assert refused(lambda: world.arm.delete(group["id"], NETWORK)).code == "InUseNetworkSecurityGroupCannotBeDeleted"


def test_a_group_goes_with_all_in_it() -> None:
    world = World()
    world.machine(world.machine_body(world.interface(world.subnet())["id"]))
    world.arm.delete(GROUP, GROUPS)
    assert world.azure.directory.by_client("x") is None
    assert refused(lambda: world.arm.get(GROUP, GROUPS)).code == "ResourceGroupNotFound"
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    assert world.arm.list(f"{GROUP}/providers/Microsoft.Network/virtualNetworks", NETWORK) == []


def test_a_group_is_held_from_outside() -> None:
    world = World()
    subnet = world.subnet()
    other = f"{SCOPE}/resourceGroups/other"
    world.arm.put(other, GROUPS, {"location": REGION})
    world.arm.put(
        f"{other}/providers/Microsoft.Network/networkInterfaces/nic",
        NETWORK,
        {
            "location": REGION,
            "properties": {"ipConfigurations": [{"name": "a", "properties": {"subnet": {"id": subnet}}}]},
        },
    )
    assert refused(lambda: world.arm.delete(GROUP, GROUPS)).code == "ResourceGroupDeletionBlocked"


def test_operations_take_their_time() -> None:
    world = World(Durations(0, 0, 0.3, 0.2))
    body = world.machine_body(world.interface(world.subnet())["id"])
    accepted = world.arm.begin_put(machine_id(), COMPUTE, body)
    assert accepted.body["properties"]["provisioningState"] == "Creating"
    begun = time.monotonic()
    world.arm.delete(machine_id(), COMPUTE)
    assert time.monotonic() - begun >= 0.2
    assert refused(lambda: world.arm.get(machine_id(), COMPUTE)).code == "ResourceNotFound"


def test_stopping_ends_a_wait() -> None:
    world = World(Durations(0, 0, 60, 0))
    accepted = world.arm.begin_put(machine_id(), COMPUTE, world.machine_body(world.interface(world.subnet())["id"]))
    world.azure.stop()
    assert accepted.operation is not None
    with pytest.raises(RuntimeError, match="stopped"):
        world.azure._context.operations.wait(accepted.operation)


def test_injected_errors_are_counted_and_reset() -> None:
    world = World()
    world.azure.faults.inject(Fault.throttled(1, "PUT", retry_after=7))
    error = refused(world.identity)
    assert (error.status, error.headers) == (429, {"Retry-After": "7"})
    world.identity()
    assert [call.code for call in world.azure.faults.calls if call.code] == ["OperationNotAllowed"]
    world.azure.faults.reset()
    assert world.azure.faults.calls == []


def test_an_unknown_price_region_is_refused() -> None:
    from rehearsal.azure.subscription import Subscription
    from rehearsal.timing import Timing

    with pytest.raises(ValueError, match="no Azure region 'moon'"):
        Subscription("moon", {REGION: {}}, Timing())


def test_an_issuer_and_subject_are_given_once() -> None:
    world = World()
    identity = world.identity()["id"]
    world.credential(identity, "https://issuer/")
    error = refused(lambda: world.credential(identity, "https://issuer/", name="another"))
    assert (error.code, error.status) == ("Conflict", 409)
    world.credential(identity, "https://issuer", name="another")


def test_ways_out_of_a_subnet_stay_while_it_has_them() -> None:
    world = World()
    world.network()
    world.arm.put(ADDRESS, NETWORK, {"location": REGION})
    world.arm.put(GATEWAY, NETWORK, {"location": REGION, "properties": {"publicIpAddresses": [{"id": ADDRESS}]}})
    world.arm.put(ROUTES, NETWORK, {"location": REGION})
    ways = {"natGateway": {"id": GATEWAY}, "routeTable": {"id": ROUTES}}
    plain = {"addressPrefix": "10.1.0.0/24"}
    world.arm.put(NODES, NETWORK, {"properties": {**plain, **ways}})
    assert world.arm.get(GATEWAY, NETWORK)["properties"]["subnets"] == [{"id": NODES}]
    assert world.arm.get(ROUTES, NETWORK)["properties"]["subnets"] == [{"id": NODES}]
    for identifier, code in (
        (GATEWAY, "InUseNatGatewayCannotBeDeleted"),
        (ADDRESS, "PublicIPAddressCannotBeDeleted"),
        (ROUTES, "InUseRouteTableCannotBeDeleted"),
    ):
        with pytest.raises(ArmError, match=code):
            world.arm.delete(identifier, NETWORK)
    world.arm.put(NODES, NETWORK, {"properties": plain})
    for identifier in (GATEWAY, ADDRESS, ROUTES):
        world.arm.delete(identifier, NETWORK)


def test_each_public_address_is_another_and_stays_what_it_is() -> None:
    world = World()
    first = world.arm.put(ADDRESS, NETWORK, {"location": REGION})["properties"]["ipAddress"]
    second = world.arm.put(f"{ADDRESS}2", NETWORK, {"location": REGION})["properties"]["ipAddress"]
    assert first != second
    assert world.arm.put(ADDRESS, NETWORK, {"location": REGION, "tags": {"a": "b"}})["properties"]["ipAddress"] == first
