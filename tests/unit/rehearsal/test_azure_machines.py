"""The catalogue of VM sizes and their prices."""

from __future__ import annotations

import pytest

from karpstack.generators.azure_types import instance_types
from karpstack.rehearsal.azure.machines.catalogue import FAMILIES, find, offered, sizes
from karpstack.rehearsal.azure.machines.prices import PriceTable
from tests.unit.rehearsal.azure_world import REGION, table


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
