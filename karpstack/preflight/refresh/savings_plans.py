"""The discounts of an account's Savings Plans, by instance family, as a file of prices has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from .aws import Ask

#: The service has one endpoint for all regions.
_ASKED_IN: Final = "us-east-1"
_TYPES: Final = ("Compute", "EC2Instance")
#: Karpenter's nodes: Linux without a licence, shared tenancy. Bare metal is left out.
_LIKE_NODES: Final = {"productDescription": "linux/unix", "tenancy": "shared"}
_DIGITS: Final = 4


def discounts(ask: Ask, region: str, on_demand: Mapping[str, float]) -> dict[str, float]:
    """Return instance family -> share of the on-demand price that the active Savings Plans take off, 0 to 1.

    Several plans: the one that takes off most. In a family: what is taken off every instance type.

    Raises:
        NotAskedError: A call is refused or fails.
    """
    aws = ask(_ASKED_IN)
    best: dict[str, float] = {}
    for plan in aws.all("savingsplans", "DescribeSavingsPlans", "savingsPlans", states=["active"]):
        if plan.get("savingsPlanType") not in _TYPES or plan.get("currency") != "USD":
            continue
        rates = aws.all(
            "savingsplans",
            "DescribeSavingsPlanRates",
            "searchResults",
            savingsPlanId=plan["savingsPlanId"],
            filters=[{"name": "region", "values": [region]}, {"name": "productType", "values": ["EC2"]}],
        )
        for family, share in _by_family(rates, on_demand).items():
            best[family] = max(best.get(family, 0.0), share)
    return {family: share for family, share in sorted(best.items()) if share > 0}


def _by_family(rates: Iterable[Mapping[str, Any]], on_demand: Mapping[str, float]) -> dict[str, float]:
    least: dict[str, float] = {}
    for rate in rates:
        about = {one["name"]: str(one["value"]) for one in rate.get("properties", [])}
        name = about.get("instanceType", "")
        is_like_a_node = all(about.get(key, "").lower() == value for key, value in _LIKE_NODES.items())
        if is_like_a_node and rate.get("unit") == "Hrs" and name in on_demand:
            family = name.partition(".")[0]
            share = max(0.0, round(1 - float(rate["rate"]) / on_demand[name], _DIGITS))
            least[family] = min(least.get(family, share), share)
    return least
