"""Prices: the table, the spot rule and the two APIs that tell of them."""

from __future__ import annotations

import json

from rehearsal.aws.account import Account
from rehearsal.aws.ec2.prices import PriceTable, get_products
from tests.unit.rehearsal.aws_world import PRICES, REGION

TABLE = PriceTable({REGION: PRICES})


def test_spot_follows_the_documented_rule() -> None:
    # 0.096 x (0.30 + 0.15 x f) with f from the SHA-256 of m5.large/us-east-1a
    assert TABLE.spot("m5.large", "us-east-1a") == 0.03773
    assert TABLE.spot("m5.large", "us-east-1b") != TABLE.spot("m5.large", "us-east-1a")
    for zone in "abcdef":
        price = TABLE.spot("m5.large", f"us-east-1{zone}")
        assert price is not None
        assert 0.30 * 0.096 <= price <= 0.45 * 0.096


def test_a_type_without_a_price_has_no_spot_price_either() -> None:
    assert TABLE.on_demand("r9g.large") is None
    assert TABLE.spot("r9g.large", "us-east-1a") is None


def names(region: str, tenancy: str) -> set[str]:
    answer = get_products(
        TABLE, {"Filters": [{"Field": "regionCode", "Value": region}, {"Field": "tenancy", "Value": tenancy}]}
    )
    return {json.loads(item)["product"]["attributes"]["instanceType"] for item in answer["PriceList"]}


def test_get_products_parts_bare_metal() -> None:
    assert names(REGION, "Shared") == PRICES.keys() - {"m5.metal"}
    assert names(REGION, "Dedicated") == {"m5.metal"}


def test_get_products_knows_its_region_only() -> None:
    assert names("eu-west-1", "Shared") == set()


def test_spot_price_history_comes_from_the_table(aws: Account) -> None:
    history = aws.client("ec2").describe_spot_price_history(InstanceTypes=["m5.large", "r9g.large"])["SpotPriceHistory"]
    assert {item["InstanceType"] for item in history} == {"m5.large"}
    assert {item["AvailabilityZone"]: float(item["SpotPrice"]) for item in history} == {
        f"us-east-1{zone}": aws.prices.spot("m5.large", f"us-east-1{zone}") for zone in "abcdf"
    }
