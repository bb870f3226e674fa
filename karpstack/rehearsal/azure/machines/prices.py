"""What VM sizes cost.

On-demand prices come from the table that the controller for Azure carries (Linux, pay as you go), region by region.
Spot prices follow a rule of ours, because Azure's change by the day: on demand times 0.15 + 0.25 x, where x in [0, 1)
is the first number of the SHA-256 of `<region>/<size>`. So they never change, differ between sizes and regions, and
lie at 15 to 40 per cent of on demand. Azure has one spot price for a region, not one for each zone. The prices of a
region that were fetched go before both.

`retail_page` answers the Retail Prices API, which needs no identity. It knows virtual machines in USD only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karpstack.karpenter.instance_types import share
from karpstack.karpenter.price_file import PriceList

#: A spot price lies between LOWEST and LOWEST + SPREAD of the price on demand.
LOWEST, SPREAD = 0.15, 0.25
_REGION_FILTER = re.compile(r"armRegionName eq '([a-z0-9]+)'")


class PriceTable:
    """Dollars per hour of each VM size."""

    def __init__(self, table: Mapping[str, Mapping[str, float]], fetched: PriceList | None = None) -> None:
        """`table` is region -> VM size -> dollars per hour."""
        self._table = {**table, fetched.region: fetched.on_demand} if fetched else table
        self._fetched = fetched

    @classmethod
    def load(cls, path: Path, fetched: PriceList | None = None) -> PriceTable:
        """Read the table that the engine build writes; prices that were fetched go before."""
        return cls(json.loads(path.read_text()), fetched)

    @property
    def regions(self) -> frozenset[str]:
        """Regions with prices."""
        return frozenset(self._table)

    def sizes(self, region: str) -> frozenset[str]:
        """VM sizes that Azure sells in a region: those that have a price there."""
        return frozenset(self._table.get(region, {}))

    def on_demand(self, region: str, size: str) -> float | None:
        """Dollars per hour; None where the size is not sold."""
        return self._table.get(region, {}).get(size)

    def spot(self, region: str, size: str) -> float | None:
        """Dollars per hour, as fetched or by the rule of this module; None where the size is not sold."""
        if self._fetched and self._fetched.region == region:
            return self._fetched.spot_price(size)
        price = self.on_demand(region, size)
        return None if price is None else round(price * (LOWEST + SPREAD * share(f"{region}/{size}")), 6)

    def retail_page(self, filter: str) -> dict[str, Any]:
        """Answer one call of the Retail Prices API; everything in one page.

        Args:
            filter: The OData filter; only its region counts, prices of virtual machines are all there are.
        """
        match = _REGION_FILTER.search(filter)
        regions = [match[1]] if match else sorted(self._table)
        items = [
            item
            for region in regions
            for size, price in sorted(self._table.get(region, {}).items())
            for sku, usd in ((size, price), (f"{size} Spot", self.spot(region, size)))
            if usd is not None
            for item in [_item(region, size, sku, usd)]
        ]
        return {
            "BillingCurrency": "USD",
            "CustomerEntityId": "Default",
            "CustomerEntityType": "Retail",
            "Items": items,
            "NextPageLink": None,
            "Count": len(items),
        }


def _item(region: str, size: str, sku: str, price: float) -> dict[str, Any]:
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": region,
        "meterName": sku.removeprefix("Standard_"),
        "productName": "Virtual Machines",
        "skuName": sku,
        "serviceName": "Virtual Machines",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
    }
