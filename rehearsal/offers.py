"""What karpenter/facts/offers-<cloud>.json state: the names of all instance types, and the regions that sell them.

Wider and flatter than `aws.json` and `azure.json`, which describe only what has a price and a size that is known: here
stands every name, so that one that is misspelt can be told from one of which nothing else is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

#: Partitions that nobody outside has a way to.
_CLOSED = re.compile("aws-iso")
#: VM sizes; the price table has dedicated hosts and reservations too.
_SIZE = re.compile(r"Standard_[A-Z]+[0-9][A-Za-z0-9_-]*")

Prices = Mapping[str, Mapping[str, float]]


def aws(table: Prices) -> dict[str, Any]:
    """EC2's: regions of EKS and their zones, from botocore and moto; names from moto and the price table."""
    from moto.utilities.utils import load_resource

    regions: dict[str, list[str]] = {}
    sold: dict[str, set[str]] = {}
    for region in _eks_regions():
        try:
            offerings = load_resource(f"ec2/resources/instance_type_offerings/availability-zone/{region}.json")
        except FileNotFoundError:
            offerings = []  # moto has no list of this region
        regions[region] = sorted({offering["Location"] for offering in offerings})
        for name in {offering["InstanceType"] for offering in offerings} | table.get(region, {}).keys():
            sold.setdefault(name, set()).add(region)
    return _document("aws", {"botocore": version("botocore"), "moto": version("moto")}, regions, sold)


def azure(table: Prices) -> dict[str, Any]:
    """Azure's: the names with a price in a region. Zones and locations are in `locations-azure.json`."""
    sold: dict[str, set[str]] = {}
    for region, prices in table.items():
        for name in filter(_SIZE.fullmatch, prices):
            sold.setdefault(name, set()).add(region)
    return _document("azure", {}, {region: [] for region in sorted(table)}, sold)


def text(document: Mapping[str, Any]) -> str:
    """JSON with one line a region and one for each set of regions."""
    head = {key: document[key] for key in ("cloud", "source")}
    lines = [f'"{key}": {_compact(value)}' for key, value in head.items()]
    regions = ",\n".join(f'"{name}": {_compact(zones)}' for name, zones in document["regions"].items())
    sold = ",\n".join(map(_compact, document["sold"]))
    return "{\n" + ",\n".join([*lines, f'"regions": {{\n{regions}\n}}', f'"sold": [\n{sold}\n]']) + "\n}\n"


def _document(
    cloud: str, source: Mapping[str, str], regions: Mapping[str, list[str]], sold: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    together: dict[tuple[str, ...], list[str]] = {}
    for name, where in sorted(sold.items()):
        together.setdefault(tuple(sorted(where)), []).append(name)
    return {
        "cloud": cloud,
        "source": dict(source),
        "regions": dict(sorted(regions.items())),
        "sold": [{"regions": where, "names": names} for where, names in sorted(together.items())],
    }


def _eks_regions() -> list[str]:
    endpoints = json.loads(files("botocore").joinpath("data/endpoints.json").read_text(encoding="utf-8"))
    return [
        region
        for partition in endpoints["partitions"]
        if not _CLOSED.match(partition["partition"])
        for region in partition["regions"]
        if region in partition["services"]["eks"]["endpoints"]
    ]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
