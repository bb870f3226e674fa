"""What is known of instance types: the pack's own reader of `../../facts/*.json`, described in facts/README.md.

Read when a rule first asks. A type, a region or a label that the files lack is `NotKnownError`: prices and zones of
one region say nothing about another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from .clouds import Cloud
from .regions import REGIONS, Regions
from .rule import NotKnownError

_FOLDER: Final = Path(__file__).resolve().parents[2] / "facts"


@dataclass(frozen=True)
class InstanceType:
    """One instance type (on Azure a VM size) in one region.

    Attributes:
        name: As the cloud calls it.
        vcpus: Number.
        memory: Bytes, as the cloud states them.
        price: USD an hour on demand; None where the file has none for the region.
        zones: Zones of the region that offer it.
        capacity_types: `on-demand`, `spot`.
        labels: Labels of its nodes; None is a label that they don't have.
    """

    name: str
    vcpus: int
    memory: int
    price: float | None
    zones: frozenset[str]
    capacity_types: frozenset[str]
    labels: Mapping[str, str | None]


@dataclass(frozen=True, eq=False)  # one object a region, and large: the same only as itself
class Facts:
    """The instance types of one region, and which labels are known of them."""

    region: str
    types: tuple[InstanceType, ...]
    labels: frozenset[str]


def region_of(cloud: Cloud, regions: Regions | None = None) -> str:
    """The region in which the stack's clusters are; NotKnownError where nothing says it, or where there are several."""
    found = sorted((regions or REGIONS).of(cloud))
    if len(found) != 1:
        what = f"there are clusters in {', '.join(found)}" if found else "nothing says the region of the cluster"
        raise NotKnownError(f"{what}, so prices and zones of the NodePool are not known", "facts", cloud, "region")
    return found[0]


def facts(cloud: Cloud, regions: Regions | None = None) -> Facts:
    """What is known in the stack's region; NotKnownError where the file lacks it."""
    return _facts(cloud, region_of(cloud, regions))


@cache
def _facts(cloud: str, region: str) -> Facts:
    content = _content(cloud)
    if region not in content["regions"]:
        source = content["source"]["prices"]
        raise NotKnownError(
            f"facts/{cloud}.json ({source['name']} {source['version']}) has no prices and zones of {region}; it has "
            f"{', '.join(content['regions'])}",
            "facts",
            cloud,
            region,
        )
    keys = content["labels"]
    zones = [frozenset(by_region.get(region, ())) for by_region in content["zones"]]
    return Facts(
        region=region,
        types=tuple(
            InstanceType(
                name=entry["name"],
                vcpus=entry["vcpus"],
                memory=entry["memory_mib"] * 2**20,
                price=entry["on_demand"].get(region),
                zones=zones[entry["zones"]],
                capacity_types=frozenset(entry["capacity_types"]),
                labels=dict(zip(keys, entry["labels"], strict=True)),
            )
            for entry in content["types"]
            # One without a price here is not offered here.
            if region in entry["on_demand"]
        ),
        labels=frozenset(keys),
    )


@cache
def _content(cloud: str) -> dict[str, Any]:
    path = _FOLDER / f"{cloud}.json"
    if not path.is_file():
        raise NotKnownError(f"{path.name} is not in facts/: make facts writes it", "facts", cloud)
    content: dict[str, Any] = json.loads(path.read_text())
    return content
