"""Writes karpenter/facts/: what is known of instance types and their prices, for everyone who has to reckon with them.

`make facts`, or `python -m rehearsal.facts [FOLDER]`. The format is described in karpenter/facts/README.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from karpenter.instance_types import FOLDER
from rehearsal import offers
from rehearsal.aws.ec2 import facts as aws
from rehearsal.azure.machines import facts as azure
from rehearsal.engines import CONTROLLERS, EngineSet, release

# Cloud -> release -> day on which its price table was made, which the head of its generated source says.
_MADE = {"aws": {"1.15.1": "2026-07-20"}, "azure": {"1.14.2": "2026-06-18"}}


def documents(engines: EngineSet) -> dict[str, str]:
    """Name of each file -> its text.

    Raises:
        ValueError: A price table's day is not known.
    """
    on_demand = {cloud: json.loads(engines.prices(cloud).read_text(encoding="utf-8")) for cloud in ("aws", "azure")}
    return {
        "aws.json": _write(
            {
                "cloud": "aws",
                "source": {
                    "prices": _source("aws"),
                    "instance types": {"name": "moto", "version": version("moto")},
                },
                "regions": list(on_demand["aws"]),
                "spot": aws.SPOT_RULE,
            },
            aws.instance_types(on_demand["aws"]),
        ),
        "azure.json": _write(
            {
                "cloud": "azure",
                "source": {
                    "prices": _source("azure"),
                    "instance types": {"name": "Azure's documentation of its size series", "version": None},
                },
                "regions": list(on_demand["azure"]),
                "spot": azure.SPOT_RULE,
            },
            azure.instance_types(on_demand["azure"]),
        ),
        "offers-aws.json": offers.text(_with_source(offers.aws(on_demand["aws"]))),
        "offers-azure.json": offers.text(_with_source(offers.azure(on_demand["azure"]))),
    }


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
            "one; add the day in the head of its zz_generated pricing source to rehearsal/facts.py"
        )
    return {"name": CONTROLLERS[cloud], "version": f"v{pinned}", "date": made}


def _write(head: Mapping[str, Any], types: Sequence[dict[str, Any]]) -> str:
    """JSON with one line an instance type; what repeats itself is written once, in the head."""
    labels = sorted({key for found in types for key in found["labels"]})
    zones = sorted({json.dumps(found["zones"], sort_keys=True) for found in types})
    head = {**head, "labels": labels, "zones": [json.loads(text) for text in zones]}
    lines = []
    for found in types:
        line = found | {
            "labels": [found["labels"].get(key) for key in labels],
            "zones": zones.index(json.dumps(found["zones"], sort_keys=True)),
        }
        lines.append(_compact(line))
    start = "".join(f'"{key}": {_compact(value)},\n' for key, value in head.items())
    return "{\n" + start + '"types": [\n' + ",\n".join(lines) + "\n]\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(arguments: Sequence[str]) -> int:
    """Write the files."""
    folder = Path(arguments[0]) if arguments else FOLDER
    for name, text in documents(EngineSet.current()).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(f"{folder / name}: {len(text) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
