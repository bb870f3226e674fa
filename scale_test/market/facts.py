"""Reads facts/: what is known of instance types and their prices. facts/README.md describes the files.

What the files do not say is None here, never a guess: a region without prices, a type that is not listed, the spot
price of a real cloud.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20
_TYPE_LABEL = "node.kubernetes.io/instance-type"


class FactsError(ValueError):
    """A file of facts that cannot be read."""


@dataclass(frozen=True)
class InstanceType:
    """One instance type, or VM size.

    Attributes:
        name: As the cloud calls it.
        vcpus: Virtual processors.
        memory: Bytes, before the system's share.
        max_pods: Pods on a node where the node class does not say; None if not known.
        capacity_types: Those it is sold in.
        zones: Region -> its zones there.
        on_demand: Region -> USD an hour.
        labels: Those of its nodes, as far as the file lists labels.
    """

    name: str
    vcpus: float
    memory: float
    max_pods: int | None
    capacity_types: tuple[str, ...]
    zones: Mapping[str, tuple[str, ...]]
    on_demand: Mapping[str, float]
    labels: Mapping[str, str]


class Facts:
    """The facts of one cloud.

    Attributes:
        cloud: `aws` or `azure`.
        regions: Those with prices.
        known_labels: Keys of the labels that the file tells of every type.
        types: Name -> instance type.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.cloud: str = data["cloud"]
        self.regions = frozenset[str](data["regions"])
        self.known_labels = frozenset[str]([*data["labels"], _TYPE_LABEL])
        self._spot: Mapping[str, Any] = data["spot"]
        self.types = {found["name"]: _instance_type(found, data["labels"], data["zones"]) for found in data["types"]}

    @classmethod
    def load(cls, folder: Path, cloud: str) -> Facts:
        """Read the file of a cloud.

        Raises:
            FactsError: It is missing, or it is not such a file.
        """
        path = folder / f"{cloud}.json"
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise FactsError(
                f"{path}: {error.strerror}, so no price could be looked up; take facts/ of the repository, or write it "
                "with `make facts`"
            ) from error
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise FactsError(
                f"{path}: {type(error).__name__} {error}: not a file of facts, so no price could be looked up; write "
                "it anew with `make facts`"
            ) from error

    def price(self, instance_type: str, capacity_type: str, region: str, zone: str, *, simulated: bool) -> float | None:
        """USD an hour; None if the file does not say.

        Args:
            instance_type: Name of the type.
            capacity_type: `on-demand` or `spot`.
            region: The region.
            zone: The zone; not needed on Azure.
            simulated: Whether a rehearsal sells it: only there is there a rule for spot prices.
        """
        found = self.types.get(instance_type)
        on_demand = found.on_demand.get(region) if found else None
        if on_demand is None or capacity_type == "on-demand":
            return on_demand
        if capacity_type != "spot" or self._spot.get("simulated", False) is not simulated:
            return None
        share = _share(self._spot["share_of"].format(type=instance_type, zone=zone, region=region))
        lowest, spread = float(self._spot["lowest"]), float(self._spot["spread"])
        return round(on_demand * (lowest + spread * share), 6)

    def cheapest(self, instance_type: str, capacity_type: str, region: str, *, simulated: bool) -> float | None:
        """The lowest of its prices in a region's zones; None if the file does not say."""
        found = self.types.get(instance_type)
        if not found or capacity_type not in found.capacity_types:
            return None
        prices = (
            self.price(instance_type, capacity_type, region, zone, simulated=simulated)
            for zone in found.zones.get(region, ())
        )
        return min((price for price in prices if price is not None), default=None)


def _instance_type(found: Mapping[str, Any], labels: list[str], zones: list[dict[str, list[str]]]) -> InstanceType:
    return InstanceType(
        name=found["name"],
        vcpus=found["vcpus"],
        memory=found["memory_mib"] * MEBIBYTE,
        max_pods=found["max_pods"],
        capacity_types=tuple(found["capacity_types"]),
        zones={region: tuple(names) for region, names in zones[found["zones"]].items()},
        on_demand=found["on_demand"],
        labels={
            _TYPE_LABEL: found["name"],
            **{key: value for key, value in zip(labels, found["labels"], strict=True) if value is not None},
        },
    )


def _share(text: str) -> float:
    """A number in [0, 1) that depends on nothing but the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
