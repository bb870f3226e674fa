"""Virtual machines: what Azure refuses, injected shortages, quotas; and the catalogue and prices behind them."""

from __future__ import annotations

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.faults import Fault
from rehearsal.azure.arm.operations import Durations
from rehearsal.azure.machines.catalogue import FAMILIES, find, offered, sizes
from rehearsal.azure.machines.facts import instance_types
from rehearsal.azure.machines.prices import PriceTable
from tests.unit.rehearsal.azure_world import COMPUTE, GROUP, NETWORK, REGION, World, machine_id, table


def test_an_interface_is_of_one_machine_and_its_size_stays() -> None:
    world = World()
    nic = world.interface(world.subnet())["id"]
    body = world.machine_body(nic)
    world.machine(body)
    with pytest.raises(ArmError, match="already attached"):
        world.machine(body, "aks-two")
    with pytest.raises(ArmError, match="PropertyChangeNotAllowed"):
        world.machine(world.machine_body(nic, "Standard_D4s_v5"))


def test_custom_data_is_not_shown() -> None:
    world = World()
    body = world.machine_body(world.interface(world.subnet())["id"])
    body["properties"]["osProfile"]["customData"] = "c2VjcmV0"
    assert "c2VjcmV0" not in str(world.machine(body))
    assert "c2VjcmV0" not in str(world.arm.get(machine_id(), COMPUTE))


def test_tags_are_patched() -> None:
    world = World()
    world.machine(world.machine_body(world.interface(world.subnet())["id"]))
    assert world.arm.patch(machine_id(), COMPUTE, {"tags": {"a": "b"}})["tags"] == {"a": "b"}
    with pytest.raises(ArmError, match="InvalidRequestContent"):
        world.arm.patch(machine_id(), COMPUTE, {"properties": {}})


def test_a_size_that_is_not_available_is_refused_at_once() -> None:
    world = World()
    body = world.machine_body(world.interface(world.subnet())["id"])
    world.azure.faults.inject(Fault.sku_not_available("Standard_D2s_v5", zone="1"))
    with pytest.raises(ArmError, match="SkuNotAvailable"):
        world.machine(body)
    world.machine({**body, "zones": ["2"]})


def test_a_failed_allocation_shows_at_the_end() -> None:
    world = World(Durations(0, 0, 0.1, 0))
    body = world.machine_body(world.interface(world.subnet())["id"])
    world.azure.faults.inject(Fault.allocation_failed(zone="1"))
    accepted = world.arm.begin_put(machine_id(), COMPUTE, body)
    assert accepted.operation is not None
    with pytest.raises(ArmError, match="ZonalAllocationFailed"):
        world.azure._context.operations.wait(accepted.operation)
    assert world.arm.get(machine_id(), COMPUTE)["properties"]["provisioningState"] == "Failed"
    world.arm.delete(machine_id(), COMPUTE)
    assert world.arm.list(f"{GROUP}/providers/Microsoft.Network/networkInterfaces", NETWORK) == []


@pytest.mark.parametrize(
    ("name", "vcpus", "memory", "architecture"),
    [
        ("Standard_D8_v4", 8, 32, "x64"),
        ("Standard_E16as_v5", 16, 128, "x64"),
        ("Standard_F8s_v2", 8, 16, "x64"),
        ("Standard_D2ps_v5", 2, 8, "Arm64"),
        ("Standard_E64_v3", 64, 432, "x64"),
        ("Standard_D2ls_v5", 2, 4, "x64"),
        ("Standard_NC4as_T4_v3", 4, 28, "x64"),
        ("Standard_NC64as_T4_v3", 64, 440, "x64"),
    ],
)
def test_facts_of_sizes(name: str, vcpus: int, memory: float, architecture: str) -> None:
    size = find(name.lower())
    assert size is not None
    assert (size.name, size.vcpus, size.memory, size.architecture) == (name, vcpus, memory, architecture)
    entry = {one["name"]: one["value"] for one in size.entry(REGION)["capabilities"]}
    assert (entry["vCPUs"], entry["MemoryGB"], entry["LowPriorityCapable"]) == (str(vcpus), f"{memory:g}", "True")


def test_the_catalogue_is_wide_and_sold() -> None:
    assert len(sizes()) == sum(len(family.vcpus) for family in FAMILIES)
    generations = {name.split("_v")[-1] for name in sizes() if "_v" in name}
    assert {"3", "4", "5", "6"} <= generations
    assert [size.name for size in offered(["Standard_D8_v4", "Standard_ND96"])] == ["Standard_D8_v4"]


def test_prices_are_real_on_demand_and_fixed_on_spot() -> None:
    prices = PriceTable(table())
    on_demand, spot = prices.on_demand(REGION, "Standard_D8_v4"), prices.spot(REGION, "Standard_D8_v4")
    assert on_demand is not None
    assert spot is not None
    assert 0.15 * on_demand <= spot <= 0.40 * on_demand
    assert prices.spot(REGION, "Standard_D8_v4") == spot
    assert prices.on_demand(REGION, "Standard_X") is None
    page = prices.retail_page(f"priceType eq 'Consumption' and armRegionName eq '{REGION}'")
    found = {item["skuName"]: item["retailPrice"] for item in page["Items"] if item["armSkuName"] == "Standard_D8_v4"}
    assert found == {"Standard_D8_v4": on_demand, "Standard_D8_v4 Spot": spot}


@pytest.mark.parametrize(
    ("name", "gpus", "labels"),
    [
        ("Standard_D2s_v5", None, {"sku-family": "D", "sku-series": "Ds_v5", "sku-gpu-count": "0"}),
        (
            "Standard_NC4as_T4_v3",
            "1",
            {
                "sku-family": "N",
                "sku-series": "NCas_v3",
                "sku-version": "3",
                "sku-gpu-count": "1",
                "sku-gpu-manufacturer": "nvidia",
                "sku-gpu-name": "T4",
            },
        ),
        ("Standard_NC64as_T4_v3", "4", {"sku-gpu-count": "4"}),
    ],
)
def test_gpus_are_told_as_azure_and_karpenter_tell_them(name: str, gpus: str | None, labels: dict[str, str]) -> None:
    size = find(name)
    assert size is not None
    told = {entry["name"]: entry["value"] for entry in size.entry(REGION)["capabilities"]}
    assert told.get("GPUs") == gpus
    (found,) = instance_types({REGION: {name: 1.0}})
    group = "karpenter.azure.com/"
    assert {key: found["labels"].get(f"{group}{key}") for key in labels} == labels
    assert (f"{group}sku-gpu-name" in found["labels"]) == (gpus is not None)
