"""Prices that were fetched: a simulated cloud sells at them, by the calls that Karpenter asks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karpstack.karpenter import price_file
from karpstack.karpenter.price_file import PriceList
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.azure.machines.prices import PriceTable as AzurePrices
from karpstack.rehearsal.session.fetched_prices import of_region
from karpstack.rehearsal.timing import Timing
from tests.unit.rehearsal.aws_world import PRICES

# The region of all tests of the account: a process loads what one region offers.
REGION = "us-east-1"
ON_DEMAND = {"m5.large": 0.107, "m5.metal": 5.136}
SPOT = {"m5.large": {"us-east-1a": 0.041, "us-east-1c": 0.039}}


def file(folder: Path, region: str = REGION, on_demand: dict[str, float] = ON_DEMAND, spot: object = SPOT) -> Path:
    content = price_file.document("aws", region, "2026-11-26T15:00:00+00:00", on_demand, {})
    path = folder / "prices.yaml"
    path.write_text(price_file.text(content | {"spot": spot}))
    return path


def test_the_prices_of_a_whole_region_count(tmp_path: Path) -> None:
    found = of_region(file(tmp_path), "aws", REGION)
    assert found
    assert found == PriceList(REGION, ON_DEMAND, SPOT)
    assert found.spot_price("m5.large", "us-east-1a") == 0.041
    assert (found.spot_price("m5.large"), found.spot_price("m5.large", "us-east-1b")) == (0.039, None)


@pytest.mark.parametrize(
    ("region", "on_demand", "spot"),
    [
        ("eu-west-3", ON_DEMAND, SPOT),
        # Karpenter takes no prices without those of bare metal.
        (REGION, {"m5.large": 0.107}, SPOT),
        (REGION, ON_DEMAND, {}),
        (REGION, {}, SPOT),
    ],
)
def test_prices_that_are_not_all_of_the_region_do_not(
    tmp_path: Path, region: str, on_demand: dict[str, float], spot: object
) -> None:
    assert of_region(file(tmp_path, region, on_demand, spot), "aws", REGION) is None
    assert of_region(None, "aws", REGION) is None


def test_aws_sells_at_them(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"us-east-1": PRICES}))
    account = Account(REGION, table, Timing(), fetched=of_region(file(tmp_path), "aws", REGION))
    account.start()
    try:
        found = {}
        for tenancy in ("Shared", "Dedicated"):
            filters = [
                {"Type": "TERM_MATCH", "Field": "regionCode", "Value": REGION},
                {"Type": "TERM_MATCH", "Field": "tenancy", "Value": tenancy},
            ]
            for text in account.client("pricing").get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]:
                (term,) = json.loads(text)["terms"]["OnDemand"].values()
                (dimension,) = term["priceDimensions"].values()
                name = json.loads(text)["product"]["attributes"]["instanceType"]
                found[name] = float(dimension["pricePerUnit"]["USD"])
        assert found == ON_DEMAND
        history = account.client("ec2").describe_spot_price_history(InstanceTypes=["m5.large", "c5.large"])
        spots = {
            (one["InstanceType"], one["AvailabilityZone"]): one["SpotPrice"] for one in history["SpotPriceHistory"]
        }
        assert spots == {("m5.large", "us-east-1a"): "0.041000", ("m5.large", "us-east-1c"): "0.039000"}
    finally:
        account.stop()


def test_azure_sells_at_them() -> None:
    size, other = "Standard_D2s_v5", "Standard_D4s_v5"
    fetched = PriceList("westus2", {size: 0.1, other: 0.2}, {size: 0.02})
    table = AzurePrices({"westus2": {size: 0.9}, "eastus": {size: 0.8}}, fetched)
    assert table.sizes("westus2") == {size, other}
    items = table.retail_page("armRegionName eq 'westus2'")["Items"]
    assert [(one["skuName"], one["retailPrice"]) for one in items] == [
        (size, 0.1),
        (f"{size} Spot", 0.02),
        (other, 0.2),
    ]
    assert table.on_demand("eastus", size) == 0.8
    assert table.spot("eastus", size)  # by the rule
