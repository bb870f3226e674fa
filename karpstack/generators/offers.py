"""What karpenter/facts/offers-<cloud>.json state: the names of all instance types, and the regions that sell them.

Wider and flatter than `aws.json` and `azure.json`, which describe only what has a price and a size that is known: here
stands every name, so that one that is misspelt can be told from one of which nothing else is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from karpstack.karpenter.fact_files import offers_document
from karpstack.karpenter.type_facts import VM_SIZE

#: Partitions that nobody outside has a way to.
_CLOSED = re.compile("aws-iso")

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
    head = {"cloud": "aws", "source": {"botocore": version("botocore"), "moto": version("moto")}}
    return offers_document(head, regions, sold)


def azure(table: Prices) -> dict[str, Any]:
    """Azure's: the names with a price in a region. Zones and locations are in `locations-azure.json`."""
    sold: dict[str, set[str]] = {}
    for region, prices in table.items():
        for name in filter(VM_SIZE.fullmatch, prices):
            sold.setdefault(name, set()).add(region)
    return offers_document({"cloud": "azure", "source": {}}, {region: [] for region in table}, sold)


def _eks_regions() -> list[str]:
    endpoints = json.loads(files("botocore").joinpath("data/endpoints.json").read_text(encoding="utf-8"))
    return [
        region
        for partition in endpoints["partitions"]
        if not _CLOSED.match(partition["partition"])
        for region in partition["regions"]
        if region in partition["services"]["eks"]["endpoints"]
    ]
