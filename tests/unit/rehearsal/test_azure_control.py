"""What the control endpoint does to the simulated Azure subscription."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.control import AzureControl
from rehearsal.azure.machines.images import UBUNTU
from rehearsal.session.control import ControlError
from tests.unit.rehearsal.azure_world import COMPUTE, REGION, World, machine_id

SIZE = "Standard_D2s_v5"


class Machines:
    """A world in which machines are asked for."""

    def __init__(self) -> None:
        self.world = World()
        self.control = AzureControl(self.world.azure)
        self.interface: dict[str, Any] = self.world.interface(self.world.subnet())

    def code(self, zone: str = "1", **changes: Any) -> str:
        """Azure's code when one more machine is asked for; empty when it is made."""
        body = {**self.world.machine_body(self.interface["id"], **changes), "zones": [zone]}
        try:
            self.world.machine(body)
        except ArmError as error:
            return error.code
        finally:
            self.world.arm.delete(machine_id(), COMPUTE)
            self.interface = self.world.interface(self.world.subnet())
        return ""


@pytest.fixture
def machines() -> Machines:
    return Machines()


def test_the_next_image_is_published_and_machines_can_have_it(machines: Machines) -> None:
    assert machines.control.publish_image() == ["202608.19.0"]
    assert machines.control.publish_image() == ["202608.26.0"]
    images = machines.world.azure.images
    listed = images.versions(UBUNTU, "2204gen2containerd", REGION) or []
    assert max(listed, key=lambda version: version["properties"]["publishedDate"])["name"] == "202608.26.0"
    assert images.find(f"/CommunityGalleries/{UBUNTU}/images/2204gen2containerd/versions/202608.26.0")


def test_what_is_sold(machines: Machines) -> None:
    assert SIZE in machines.control.instance_types()
    assert machines.control.zones() == [f"{REGION}-1", f"{REGION}-2", f"{REGION}-3"]


@pytest.mark.parametrize(
    ("capacity_type", "zone", "regular", "spot"),
    [
        ("", "", "AllocationFailed", "AllocationFailed"),
        ("on-demand", "", "AllocationFailed", ""),
        ("spot", "", "", "SkuNotAvailable"),
        ("", f"{REGION}-1", "ZonalAllocationFailed", "ZonalAllocationFailed"),
        ("on-demand", f"{REGION}-2", "", ""),
        ("spot", f"{REGION}-1", "", "SkuNotAvailable"),
    ],
)
def test_a_shortage_is_met_as_azure_says_it(
    machines: Machines, capacity_type: str, zone: str, regular: str, spot: str
) -> None:
    hits = machines.control.out_of_capacity(SIZE, capacity_type, zone)
    assert machines.code() == regular
    assert machines.code(priority="Spot") == spot
    assert machines.code(hardwareProfile={"vmSize": "Standard_D4s_v5"}) == ""
    assert hits() == len([code for code in (regular, spot) if code])
    machines.control.end_faults()
    assert machines.code() == ""


def test_throttling_hits_machines_only(machines: Machines) -> None:
    hits = machines.control.throttle(2)
    assert [machines.code() for _ in range(3)] == ["OperationNotAllowed", "OperationNotAllowed", ""]
    assert hits() == 2


def test_no_interruptions(machines: Machines) -> None:
    with pytest.raises(ControlError, match="on AWS") as caught:
        machines.control.interrupt("interruption", "azure:///x")
    assert caught.value.status == 404


def test_resources_are_what_karpenter_tagged(machines: Machines) -> None:
    world, control = machines.world, machines.control
    assert control.resources() == {"instances": [], "networkInterfaces": [], "disks": []}
    body = world.machine_body(machines.interface["id"])
    body["properties"]["storageProfile"]["osDisk"]["name"] = "disk"
    world.machine(body)
    made = {"instances": [{"id": machine_id(), "nodeclaim": "one"}], "disks": ["disk"]}
    assert control.resources() == {**made, "networkInterfaces": []}  # the interface has no tag of Karpenter's
    world.arm.patch(machines.interface["id"], "2024-05-01", {"tags": {"karpenter.sh_nodepool": "default"}})
    assert control.resources() == {**made, "networkInterfaces": [machines.interface["id"]]}
    world.arm.patch(machine_id(), COMPUTE, {"tags": {}})
    assert control.resources()["instances"] == []
