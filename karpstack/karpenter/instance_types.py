"""What is known of instance types and their prices: reads `facts/`, which facts/README.md describes.

What the files do not say is None here, never a guess: a region without prices, a type that is not listed, the spot
price of a real cloud.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from . import fact_files
from .fact_files import FOLDER as FOLDER
from .fact_files import FactsError as FactsError

ARCHITECTURE: Final = "kubernetes.io/arch"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
OPERATING_SYSTEM: Final = "kubernetes.io/os"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
#: How the labels about GPUs begin.
_OF_GPUS: Final = ("karpenter.k8s.aws/instance-gpu", "karpenter.azure.com/sku-gpu")
#: The zone that AKS gives to nodes outside of availability zones.
REGIONAL: Final = "0"

_MEBIBYTE: Final = 2**20
# Labels that follow from the rest of a type's entry.
_DERIVED: Final = frozenset({CAPACITY_TYPE, INSTANCE_TYPE, OPERATING_SYSTEM, REGION, ZONE})


class UnknownRegionError(LookupError):
    """A region of which the facts say nothing."""


def zone_words(zone: str) -> str:
    """A zone for people: `0 (regional, in no availability zone)` for that of AKS."""
    return f"{zone} (regional, in no availability zone)" if zone == REGIONAL else zone


@dataclass(frozen=True)
class InstanceType:
    """One instance type, or VM size.

    Attributes:
        name: As the cloud calls it.
        vcpus: Virtual processors.
        memory: Bytes, before the system's share.
        max_pods: Pods on a node where the node class does not say; None if not known.
        capacity_types: Those it is sold in: `on-demand`, `spot`.
        zones: Region -> its zones there.
        on_demand: Region -> USD an hour.
        labels: Those of its nodes, as far as the file lists labels.
    """

    name: str
    vcpus: int
    memory: int
    max_pods: int | None
    capacity_types: tuple[str, ...]
    zones: Mapping[str, tuple[str, ...]]
    on_demand: Mapping[str, float]
    labels: Mapping[str, str]

    def amount(self, resource: str) -> float | None:
        """How much of a resource its nodes have, before the system's share; None where the facts do not say."""
        match resource:
            case "cpu":
                return self.vcpus
            case "memory":
                return self.memory
            case "nvidia.com/gpu":
                made_by, count = (
                    next((found for prefix in _OF_GPUS if (found := self.labels.get(f"{prefix}-{what}"))), None)
                    for what in ("manufacturer", "count")
                )
                if made_by and count == "0":  # a part of a GPU: releases of Karpenter count it as one or as none
                    return None
                return int(count or 0) if made_by in (None, "nvidia") else 0
        return None

    def values(self, label: str, region: str) -> tuple[str | None, ...]:
        """The values that a label may have on nodes of this type in a region; None is a node without it."""
        match label:
            case "karpenter.sh/capacity-type":
                return self.capacity_types
            case "kubernetes.io/os":
                return ("linux",) if self.labels.get(ARCHITECTURE) == "arm64" else ("linux", "windows")
            case "topology.kubernetes.io/region":
                return (region,)
            case "topology.kubernetes.io/zone":
                return self.zones.get(region, ())
        return (self.labels.get(label),)


@dataclass(frozen=True, eq=False)  # one object a region, and large: the same only as itself
class Region:
    """The instance types that are on sale in one region.

    Attributes:
        name: As the cloud calls it.
        types: Those with a price there.
        labels: Keys of the labels of which is known what value a type has.
    """

    name: str
    types: tuple[InstanceType, ...]
    labels: frozenset[str]


class Facts:
    """The facts of one cloud.

    Attributes:
        cloud: `aws` or `azure`.
        regions: Those with prices.
        labels: Keys of the labels of which is known what value a type has.
        types: Name -> instance type.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        """`data` is the content of a file."""
        self.cloud: str = data["cloud"]
        self.regions: tuple[str, ...] = tuple(data["regions"])
        self.labels = frozenset[str](data["labels"]) | _DERIVED
        self.types = {entry["name"]: _instance_type(entry, data["labels"], data["zones"]) for entry in data["types"]}
        self._source: Mapping[str, Any] = data.get("source", {}).get("prices", {})
        self._spot: Mapping[str, Any] = data["spot"]
        self._in: dict[str, Region] = {}

    @classmethod
    def load(cls, cloud: str, folder: Path | None = None) -> Facts:
        """Read the facts of a cloud, once.

        Args:
            cloud: `aws` or `azure`.
            folder: Where the file is; None takes the packaged one with what the project has newer.

        Raises:
            FactsError: It is missing, or it is not such a file.
        """
        return _load(cloud, folder)

    def known_labels(self, region: str) -> frozenset[str]:
        """Keys of the labels of which is known what value a type has in a region, but for the capacity type's.

        Region and zones are not, of a region without prices.
        """
        return self.labels - {CAPACITY_TYPE} - (frozenset() if region in self.regions else {REGION, ZONE})

    def region(self, name: str) -> Region:
        """What is on sale in a region.

        Raises:
            UnknownRegionError: The file has no prices and zones of it.
        """
        if name not in self.regions:
            source = " ".join(str(self._source[key]) for key in ("name", "version") if key in self._source)
            raise UnknownRegionError(
                f"facts/{self.cloud}.json{f' ({source})' if source else ''} has no prices and zones of {name}; "
                f"it has {', '.join(self.regions)}"
            )
        if name not in self._in:
            sold = tuple(type_ for type_ in self.types.values() if name in type_.on_demand)
            self._in[name] = Region(name, sold, self.labels)
        return self._in[name]

    def price(self, instance_type: str, capacity_type: str, region: str, zone: str, *, simulated: bool) -> float | None:
        """USD an hour; None if the file does not say.

        Args:
            instance_type: Name of the type.
            capacity_type: `on-demand` or `spot`.
            region: The region.
            zone: The zone; not needed on Azure.
            simulated: Whether a rehearsal sells it: only there is there a rule for spot prices.
        """
        known = self.types.get(instance_type)
        on_demand = known.on_demand.get(region) if known else None
        if on_demand is None or capacity_type == "on-demand":
            return on_demand
        if capacity_type != "spot" or self._spot.get("simulated", False) is not simulated:
            return None
        x = share(self._spot["share_of"].format(type=instance_type, zone=zone, region=region))
        lowest, spread = float(self._spot["lowest"]), float(self._spot["spread"])
        return round(on_demand * (lowest + spread * x), 6)


def share(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text: the x of simulated spot prices."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


@cache
def _load(cloud: str, folder: Path | None) -> Facts:
    name = f"{cloud}.json"
    path = folder / name if folder else fact_files.own_file(name) or FOLDER / name
    try:
        return Facts(fact_files.read(path) if folder else fact_files.load(name))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise FactsError(
            f"{path}: {type(error).__name__} {error}: not a file of facts, so no price could be looked up; write "
            "it again with `make facts`"
        ) from error


def _instance_type(entry: Mapping[str, Any], labels: list[str], zones: list[dict[str, list[str]]]) -> InstanceType:
    return InstanceType(
        name=entry["name"],
        vcpus=entry["vcpus"],
        memory=entry["memory_mib"] * _MEBIBYTE,
        max_pods=entry["max_pods"],
        capacity_types=tuple(entry["capacity_types"]),
        zones={region: tuple(names) for region, names in zones[entry["zones"]].items()},
        on_demand=entry["on_demand"],
        labels={
            INSTANCE_TYPE: entry["name"],
            **{key: value for key, value in zip(labels, entry["labels"], strict=True) if value is not None},
        },
    )
