"""What a cloud sells where, by name: its regions and their zones, and all instance types.

Reads `facts/offers-<cloud>.json`, and for Azure `facts/locations-azure.json`. They hold every name; what a type is like
is said by `instance_types`, of most of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

from .fact_files import load
from .instance_types import (
    ARCHITECTURE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    OPERATING_SYSTEM,
    REGION,
    ZONE,
    Facts,
    InstanceType,
)
from .type_names import NAMED, Names, Verdict

_AWS: Final = "karpenter.k8s.aws/"
_AZURE: Final = "karpenter.azure.com/"
_TRUTH: Final = ("true", "false")
#: Labels with values that only another release of Karpenter or of Kubernetes could add to.
_CLOSED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "aws": {
        ARCHITECTURE: ("amd64", "arm64"),
        CAPACITY_TYPE: ("on-demand", "reserved", "spot"),
        OPERATING_SYSTEM: ("linux", "windows"),
        f"{_AWS}instance-capability-flex": _TRUTH,
        f"{_AWS}instance-cpu-manufacturer": ("amd", "aws", "intel"),
        f"{_AWS}instance-encryption-in-transit-supported": _TRUTH,
        f"{_AWS}instance-hypervisor": ("", "nitro", "xen"),
        f"{_AWS}instance-tenancy": ("dedicated", "default"),
    },
    "azure": {
        ARCHITECTURE: ("amd64", "arm64"),
        CAPACITY_TYPE: ("on-demand", "spot"),
        OPERATING_SYSTEM: ("linux", "windows"),
        f"{_AZURE}placement-scope": ("regional", "zonal"),
        f"{_AZURE}sku-gpu-manufacturer": ("amd", "nvidia"),
        f"{_AZURE}sku-networking-accelerated": _TRUTH,
        f"{_AZURE}sku-storage-premium-capable": _TRUTH,
        f"{_AZURE}sku-storage-ultra-ssd": _TRUTH,
        "kubernetes.azure.com/fips_enabled": ("true",),
        "kubernetes.azure.com/mode": ("system", "user"),
        "kubernetes.azure.com/os-sku": ("AzureLinux", "Ubuntu"),
        "kubernetes.azure.com/priority": ("regular", "spot"),
        "kubernetes.azure.com/scalesetpriority": ("regular", "spot"),
    },
}
#: Labels with numbers: any may be compared with, and nothing else.
NUMBERS: Final = frozenset(
    {
        f"{_AWS}instance-accelerator-count",
        f"{_AWS}instance-cpu",
        f"{_AWS}instance-ebs-bandwidth",
        f"{_AWS}instance-generation",
        f"{_AWS}instance-gpu-count",
        f"{_AWS}instance-gpu-memory",
        f"{_AWS}instance-local-nvme",
        f"{_AWS}instance-memory",
        f"{_AWS}instance-network-bandwidth",
        f"{_AZURE}sku-cpu",
        f"{_AZURE}sku-gpu-count",
        f"{_AZURE}sku-memory",
        f"{_AZURE}sku-storage-ephemeralos-maxsize",
        f"{_AZURE}sku-version",
        "kubernetes.azure.com/sku-cpu",
        "kubernetes.azure.com/sku-memory",
    }
)
#: All labels of the clouds and of Karpenter that requirements may be on and whose values are judged.
LABELS: Final = NUMBERS.union(_CLOSED["aws"], _CLOSED["azure"], (INSTANCE_TYPE, REGION, ZONE), NAMED)
_NUMBER: Final = re.compile("[0-9]{1,18}", re.ASCII)
#: `us-west-2` and `westus2`: what a region's name is made of, and its number.
_NUMBERED: Final = re.compile("(.+?)([1-9]?)", re.ASCII)


@dataclass(frozen=True, eq=False)  # one object a region and type: the same only as itself
class Offer:
    """An instance type as one region sells it.

    Attributes:
        type: The type, with its zones in this region.
        labels: Keys of the labels of which is known what value it has.
        described: Whether more is known of it than follows from its name.
    """

    type: InstanceType
    labels: frozenset[str]
    described: bool


class Offers:
    """What one cloud sells.

    Attributes:
        cloud: `aws` or `azure`.
        zones: Region -> its zones. None on AWS is not known; on Azure the region has none.
        types: The names of all instance types.
    """

    def __init__(self, data: Mapping[str, Any], zones: Mapping[str, Iterable[str]], announced: Iterable[str]) -> None:
        """`data` is the content of a file; `announced` are regions that may have been opened since."""
        self.cloud: str = data["cloud"]
        self.zones = {region: tuple(names) for region, names in zones.items()}
        self._sold = [(frozenset(found["regions"]), tuple(found["names"])) for found in data["sold"]]
        self.types = Names(self.cloud, {name for _, names in self._sold for name in names})
        self._announced = frozenset(announced)
        self._in: dict[str, tuple[Offer, ...]] = {}

    @classmethod
    def load(cls, cloud: str) -> Offers:
        """Those of `aws` or `azure`; read once."""
        return _load(cloud)

    def region(self, name: str) -> Verdict:
        """Whether there is such a region, or location."""
        if name in self.zones:
            return "known"
        return "newer" if name in self._announced or self._goes_on(name) else "wrong"

    def sold_in(self, region: str) -> tuple[Offer, ...]:
        """All instance types of a region; none where it is not known what it sells."""
        if region not in self._in:
            names = (name for regions, found in self._sold if region in regions for name in found)
            self._in[region] = tuple(self._offer(name, region) for name in sorted(names))
        return self._in[region]

    def values(self, label: str, region: str) -> tuple[str, ...] | None:
        """The values of a label that are known; None where any could be right."""
        match label:
            case "topology.kubernetes.io/region":
                return (region,)
            case "topology.kubernetes.io/zone":
                return self.zones.get(region) or None
        return _CLOSED[self.cloud].get(label) or self.types.values.get(label)

    def value(self, label: str, value: str, region: str) -> Verdict:
        """Whether a node of a region may have this value of a label. A label of one's own may have any."""
        if label in NUMBERS:
            return "known" if _NUMBER.fullmatch(value) else "wrong"
        if label == ZONE:
            return self.zone(value, region)
        known = self.values(label, region)
        if known is None or value in known:
            return "known"
        match label:
            case "node.kubernetes.io/instance-type" | "karpenter.azure.com/sku-name":
                return self.types.verdict(value)
            case "karpenter.k8s.aws/instance-family":
                return self.types.family(value)
            case "karpenter.k8s.aws/instance-size":
                return "newer" if self.types.is_size(value) else "wrong"
        return "wrong"

    def zone(self, zone: str, region: str) -> Verdict:
        """Whether a region has a zone."""
        known = self.zones.get(region)
        if known is None or (not known and self.cloud == "aws"):
            return (
                "newer"
                if re.fullmatch(re.escape(region) + ("[a-f]" if self.cloud == "aws" else "-[1-3]"), zone)
                else "wrong"
            )
        if zone in known:
            return "known"
        # AWS names the zones of a region for each account, so that one account lacks a letter that another has.
        skipped = (
            {region + chr(letter) for letter in range(ord("a"), ord(known[-1][-1]))} if self.cloud == "aws" else ()
        )
        return "newer" if zone in skipped else "wrong"

    def _goes_on(self, region: str) -> bool:
        """Whether only the number is new in a region's name."""
        match = _NUMBERED.fullmatch(region)
        return bool(match and match[2] and match[1] in self._stems)

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(match[1] for region in self.zones if (match := _NUMBERED.fullmatch(region)))

    def _offer(self, name: str, region: str) -> Offer:
        facts = Facts.load(self.cloud)
        here = {region: self.zones.get(region, ())}
        if found := facts.types.get(name):
            exact = self.cloud == "aws" and region in found.zones
            return Offer(found if exact else replace(found, zones=here), facts.labels, described=True)
        labels = self.types.labels(name)
        named = InstanceType(name, 0, 0, None, ("on-demand", "spot"), here, {}, labels)
        return Offer(named, frozenset(labels) | {CAPACITY_TYPE, REGION, ZONE}, described=False)


@cache
def _load(cloud: str) -> Offers:
    data = load(f"offers-{cloud}.json")
    if cloud == "aws":
        return Offers(data, data["regions"], ())
    locations = load("locations-azure.json")
    return Offers(data, locations["regions"], locations["announced"])
