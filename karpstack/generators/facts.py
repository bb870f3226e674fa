"""The sizes and prices of instance types: the files that karpstack/karpenter/facts/README.md describes."""

from __future__ import annotations

import json
from typing import Any

from karpstack.generators import aws_types, azure_types, offers
from karpstack.karpenter.fact_files import text, types_document
from karpstack.rehearsal.engines import CONTROLLERS, EngineSet, release

# Cloud -> release -> day on which its price table was made, which the head of its generated source says.
_MADE = {"aws": {"1.15.1": "2026-07-20"}, "azure": {"1.14.2": "2026-06-18"}}


def documents(engines: EngineSet) -> dict[str, str]:
    """Name of each file -> its text.

    Raises:
        ValueError: A price table's day is not known.
    """
    found = {}
    for cloud, types, sold in (("aws", aws_types, offers.aws), ("azure", azure_types, offers.azure)):
        prices = json.loads(engines.prices(cloud).read_text(encoding="utf-8"))
        head = {
            "cloud": cloud,
            "source": {"prices": _source(cloud), "instance types": types.SOURCE},
            "regions": list(prices),
            "spot": types.SPOT_RULE,
        }
        found[f"{cloud}.json"] = text(types_document(head, types.instance_types(prices)))
        found[f"offers-{cloud}.json"] = text(_with_source(sold(prices)))
    return found


def _with_source(document: dict[str, Any]) -> dict[str, Any]:
    """A document whose source names the price table too."""
    return document | {"source": {"prices": _source(document["cloud"]), **document["source"]}}


def _source(cloud: str) -> dict[str, str]:
    """Which price table the engines were built with."""
    pinned = release(cloud)
    made = _MADE[cloud].get(pinned)
    if not made:
        raise ValueError(
            f"{CONTROLLERS[cloud]} v{pinned}: the day of its price table is not known, so the facts would say a wrong "
            "one; add the day in the head of its zz_generated pricing source to karpstack/generators/facts.py"
        )
    return {"name": CONTROLLERS[cloud], "version": f"v{pinned}", "date": made}
