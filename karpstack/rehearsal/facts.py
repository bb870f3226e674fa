"""Writes karpenter/facts/: what is known of instance types and their prices, for everyone who has to reckon with them.

`make facts`, which also writes karpstack/karpenter/schemas/ (`karpstack.rehearsal.crds`) and the names of
metrics (`karpstack.rehearsal.metric_names`). The format is described in karpstack/karpenter/facts/README.md.
"""

from __future__ import annotations

import json
from typing import Any

from karpstack.karpenter import crds
from karpstack.karpenter.fact_files import FOLDER, text, types_document
from karpstack.rehearsal import crds as crds_files
from karpstack.rehearsal import metric_names, offers
from karpstack.rehearsal.aws.ec2 import facts as aws
from karpstack.rehearsal.azure.machines import facts as azure
from karpstack.rehearsal.engines import CONTROLLERS, EngineSet, release
from karpstack.rehearsal.engines.builder import Go

# Cloud -> release -> day on which its price table was made, which the head of its generated source says.
_MADE = {"aws": {"1.15.1": "2026-07-20"}, "azure": {"1.14.2": "2026-06-18"}}


def documents(engines: EngineSet) -> dict[str, str]:
    """Name of each file -> its text.

    Raises:
        ValueError: A price table's day is not known.
    """
    found = {}
    for cloud, types, sold in (("aws", aws, offers.aws), ("azure", azure, offers.azure)):
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
            "one; add the day in the head of its zz_generated pricing source to karpstack/rehearsal/facts.py"
        )
    return {"name": CONTROLLERS[cloud], "version": f"v{pinned}", "date": made}


def main() -> None:
    """Write the files."""
    engines = EngineSet.current()
    facts = documents(engines) | metric_names.documents(Go.find())
    for folder, files in ((FOLDER, facts), (crds.FOLDER, crds_files.documents(engines))):
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
            print(f"{folder / name}: {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
