"""Prices: the table, the spot rule, the order of a fleet's pools, and the API that lists prices."""

from __future__ import annotations

import json

from karpstack.rehearsal.aws.ec2.fleet import Fleets, Pool, is_scarce
from karpstack.rehearsal.aws.ec2.prices import PriceTable, get_products
from karpstack.rehearsal.aws.iam.roles import Roles
from tests.unit.rehearsal.aws_world import PRICES, REGION

TABLE = PriceTable({REGION: PRICES})
FLEETS = Fleets(TABLE, Roles("1"))


def pool(instance_type: str, zone: str, capacity: str = "spot", priority: float = 0) -> Pool:
    return Pool(instance_type, zone, "subnet", "ami", capacity, priority, {}, {}, {})


def test_spot_prefers_capacity_then_price() -> None:
    types = ("m5.xlarge", "c5.large", "m5.large", "r5.large")
    pools = [pool(instance_type, f"us-east-1{zone}") for instance_type in types for zone in "abcdef"]
    request = {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
    ordered = FLEETS.order(pools, "spot", request)
    scarce = [is_scarce(item.instance_type, item.zone) for item in ordered]
    assert 0 < sum(scarce) < len(scarce)
    assert scarce == sorted(scarce)
    plenty = [FLEETS.price(item) for item in ordered[: scarce.count(False)]]
    assert plenty == sorted(plenty)
    assert FLEETS.order(list(reversed(pools)), "spot", request) == ordered
    cheapest = FLEETS.order(pools, "spot", {"SpotOptions": {"AllocationStrategy": "lowest-price"}})
    assert [FLEETS.price(item) for item in cheapest] == sorted(FLEETS.price(item) for item in pools)


def test_priorities_win_where_the_strategy_says_so() -> None:
    pools = [pool("c5.large", "us-east-1a", "on-demand", 2), pool("m5.xlarge", "us-east-1a", "on-demand", 1)]
    ordered = FLEETS.order(pools, "on-demand", {"OnDemandOptions": {"AllocationStrategy": "prioritized"}})
    assert [item.instance_type for item in ordered] == ["m5.xlarge", "c5.large"]


def test_spot_follows_the_documented_rule() -> None:
    # 0.096 x (0.30 + 0.15 x f) with f from the SHA-256 of m5.large/us-east-1a
    assert TABLE.spot("m5.large", "us-east-1a") == 0.03773
    prices = {TABLE.spot("m5.large", f"us-east-1{zone}") for zone in "abcdef"}
    assert len(prices) == 6
    assert all(price and 0.30 * 0.096 <= price <= 0.45 * 0.096 for price in prices)
    assert (TABLE.on_demand("r9g.large"), TABLE.spot("r9g.large", "us-east-1a")) == (None, None)


def test_get_products_knows_its_region_and_parts_bare_metal() -> None:
    def names(region: str, tenancy: str) -> set[str]:
        filters = [{"Field": "regionCode", "Value": region}, {"Field": "tenancy", "Value": tenancy}]
        answer = get_products(TABLE, {"Filters": filters})
        return {json.loads(item)["product"]["attributes"]["instanceType"] for item in answer["PriceList"]}

    assert names(REGION, "Shared") == PRICES.keys() - {"m5.metal"}
    assert names(REGION, "Dedicated") == {"m5.metal"}
    assert names("eu-west-1", "Shared") == set()
