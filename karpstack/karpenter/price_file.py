"""The file of a region's prices that `karpstack prices fetch` writes: its head, its text, its spot prices.

It is the file of `karpstack whatif --prices` (`karpstack/whatif/prices.py`) with a head. Only the format is here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

KIND: Final = "karpstack-prices"
VERSION: Final = 1
CURRENCY: Final = "USD"
#: USD an hour that nothing costs: a price above is a mistake.
HIGHEST: Final = 100_000.0

#: USD an hour, of all zones or by zone.
Spot = float | Mapping[str, float]


def document(
    cloud: str, region: str, fetched: str, on_demand: Mapping[str, float], spot: Mapping[str, Spot]
) -> dict[str, Any]:
    """Return the content of a file; `fetched` is the time of the prices, in ISO 8601."""
    return {
        "kind": KIND,
        "version": VERSION,
        "cloud": cloud,
        "region": region,
        "fetched": fetched,
        "currency": CURRENCY,
        "onDemand": dict(sorted(on_demand.items())),
        "spot": dict(sorted(spot.items())),
    }


def text(content: Mapping[str, Any]) -> str:
    """Return the text of a file: YAML with a line for each instance type."""
    return "".join(f"{key}:{_value(value)}\n" for key, value in content.items())


def spot_price(found: Spot | None, zone: str | None) -> float | None:
    """Return USD an hour in a zone, or without one in the cheapest; None where the file does not say."""
    if isinstance(found, Mapping):
        return found.get(zone) if zone else min(found.values(), default=None)
    return found


@dataclass(frozen=True)
class PriceList:
    """Prices of a region.

    Attributes:
        region: The region.
        on_demand: Instance type -> USD an hour.
        spot: Instance type -> USD an hour, or zone -> USD an hour.
    """

    region: str
    on_demand: Mapping[str, float]
    spot: Mapping[str, Spot]

    def spot_price(self, instance_type: str, zone: str | None = None) -> float | None:
        """Return USD an hour; None where the type is not sold on spot."""
        return spot_price(self.spot.get(instance_type), zone)


def _value(value: object) -> str:
    if not isinstance(value, Mapping):
        return f" {json.dumps(value)}"
    # JSON is YAML, also for names that are not as names of instance types should be.
    return "".join(f"\n  {json.dumps(name)}: {json.dumps(one)}" for name, one in value.items()) or " {}"
