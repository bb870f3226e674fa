"""What instances cost: the on-demand table that Karpenter carries and spot prices that are derived from it.

Spot prices are simulated, by one fixed rule: on demand x (0.30 + 0.15 x f), where f in [0, 1) is taken from the
SHA-256 of `<instance type>/<zone>`. So they never change, differ between zones, and lie at 30 to 45 per cent of
on demand. Types without an on-demand price have no spot price either.

The price list API has data for the regions of the table only (today us-east-1); for another region it answers an
empty list, and Karpenter keeps its built-in prices. Spot prices and the stand-in's own choice among instance types
use the us-east-1 figures everywhere.

With the prices of a region that were fetched, all of these are the file's.

Replaces in moto: `DescribeSpotPriceHistory`, which answers 0.00001 for everything. Adds `GetProducts`, which moto
has not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karpstack.karpenter import clock
from karpstack.karpenter.instance_types import share
from karpstack.karpenter.price_file import PriceList
from karpstack.rehearsal.aws.patching import Patches

_BASE_REGION = "us-east-1"
#: A spot price lies between LOWEST and LOWEST + SPREAD of the price on demand.
LOWEST, SPREAD = 0.30, 0.15


class PriceTable:
    """Dollars per hour of each instance type."""

    def __init__(self, table: Mapping[str, Mapping[str, float]], fetched: PriceList | None = None) -> None:
        self._table = {**table, fetched.region: fetched.on_demand} if fetched else table
        self._base = self._table[fetched.region if fetched else _BASE_REGION]
        self._fetched = fetched

    @classmethod
    def load(cls, path: Path, fetched: PriceList | None = None) -> PriceTable:
        """Read `{region: {instance type: dollars per hour}}`; prices that were fetched go before."""
        return cls(json.loads(path.read_text()), fetched)

    def on_demand(self, instance_type: str) -> float | None:
        """Dollars per hour, Linux, shared tenancy; None when the table has no price."""
        return self._base.get(instance_type)

    def spot(self, instance_type: str, zone: str) -> float | None:
        """Dollars per hour: as fetched, or by the rule of this module."""
        if self._fetched:
            return self._fetched.spot_price(instance_type, zone)
        price = self.on_demand(instance_type)
        if price is None:
            return None
        return round(price * (LOWEST + SPREAD * share(f"{instance_type}/{zone}")), 6)

    def products(self, region: str, bare_metal: bool) -> list[str]:
        """The entries of the price list API, each a JSON text, with what Karpenter reads of them."""
        return [
            json.dumps(
                {
                    "product": {"attributes": {"instanceType": instance_type, "regionCode": region}},
                    "terms": {
                        "OnDemand": {
                            "term": {"priceDimensions": {"dimension": {"pricePerUnit": {"USD": f"{price:.10f}"}}}}
                        }
                    },
                }
            )
            for instance_type, price in self._table.get(region, {}).items()
            if (".metal" in instance_type) == bare_metal
        ]


def get_products(prices: PriceTable, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one GetProducts call; everything in one page.

    Args:
        prices: The price table.
        request: The call's JSON body; its filters `regionCode` and `tenancy` decide (bare metal is priced as
            Dedicated).
    """
    filters = {item["Field"]: item["Value"] for item in request.get("Filters") or []}
    bare_metal = filters.get("tenancy") == "Dedicated"
    return {"FormatVersion": "aws_v1", "PriceList": prices.products(filters.get("regionCode", ""), bare_metal)}


def patch(patches: Patches, prices: PriceTable) -> None:
    """Give moto the spot prices of this module."""
    from moto.ec2.responses.spot_instances import SpotInstances

    def describe_spot_price_history(response: Any) -> str:
        offerings = response.ec2_backend.describe_spot_price_history(
            response._get_param("InstanceTypes", []), response._filters_from_querystring()
        )
        now = clock.utcnow().strftime("%Y-%m-%dT%H:%M:%S.000Z")
        items = []
        for offering in offerings:
            instance_type, zone = offering["InstanceType"], offering["Location"]
            price = prices.spot(instance_type, zone)
            if price is not None:
                items.append(
                    f"<item><instanceType>{instance_type}</instanceType>"
                    "<productDescription>Linux/UNIX</productDescription>"
                    f"<spotPrice>{price:.6f}</spotPrice><timestamp>{now}</timestamp>"
                    f"<availabilityZone>{zone}</availabilityZone></item>"
                )
        return (
            '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            "<requestId>00000000-0000-0000-0000-000000000000</requestId>"
            f"<spotPriceHistorySet>{''.join(items)}</spotPriceHistorySet><nextToken/>"
            "</DescribeSpotPriceHistoryResponse>"
        )

    patches.set(SpotInstances, "describe_spot_price_history", describe_spot_price_history)
