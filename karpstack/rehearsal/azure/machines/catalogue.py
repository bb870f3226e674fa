"""The catalogue of VM sizes: vCPUs, memory, architecture and what else Karpenter reads of them.

A family is a row of sizes.yaml. Only what is sold in a region is offered there: a size without a price is left out.

Simplified: every size is in all three zones, and disk and network figures follow the series, not the size. There are
no constrained-vCPU sizes (`E4-2s_v5`; Karpenter takes none), one series of GPUs, and no HPC, storage, confidential or
burstable series.
Sizes marked isolated are offered as Azure does, but their ratio is that of the family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

ZONES = ("1", "2", "3")

_TABLE: Final = yaml.load(Path(__file__).with_name("sizes.yaml").read_bytes(), yaml.CSafeLoader)


@dataclass(frozen=True)
class Family:
    """One series of VM sizes; sizes.yaml says what each field means."""

    pattern: str
    name: str
    ratio: float
    vcpus: tuple[int, ...]
    arm: bool = False
    premium: bool = True
    generations: str = "V1,V2"
    ephemeral: float = 0
    gpu: str = ""


#: In the order of the table.
FAMILIES = tuple(Family(**{**row, "vcpus": tuple(map(int, str(row["vcpus"]).split()))}) for row in _TABLE["families"])


@dataclass(frozen=True)
class Size:
    """One VM size.

    Attributes:
        name: For example `Standard_D8_v4`.
        family: Its series.
        vcpus: Virtual processors.
        memory: GiB.
    """

    name: str
    family: Family
    vcpus: int
    memory: float

    @property
    def architecture(self) -> str:
        """As ARM says it: `x64` or `Arm64`."""
        return "Arm64" if self.family.arm else "x64"

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return _TABLE["gpus"].get(self.name.removeprefix("Standard_"), 1) if self.family.gpu else 0

    def entry(self, region: str, zones: Sequence[str] = ZONES) -> dict[str, Any]:
        """The size in ARM's list of resource SKUs, for a subscription that may have it in `zones` only."""
        cache_bytes = int(self.family.ephemeral * self.vcpus * 2**30)
        capabilities = {
            "MaxResourceVolumeMB": "0",
            "OSVhdSizeMB": "1047552",
            "vCPUs": self.vcpus,
            "vCPUsAvailable": self.vcpus,
            "vCPUsPerCore": 1 if self.family.arm else 2,
            "MemoryGB": f"{self.memory:g}",
            "HyperVGenerations": self.family.generations,
            "CpuArchitectureType": self.architecture,
            "MaxDataDiskCount": min(2 * self.vcpus, 64) if self.vcpus > 2 else 4,
            "MaxNetworkInterfaces": 2 if self.vcpus < 8 else 4 if self.vcpus < 16 else 8,
            "LowPriorityCapable": True,
            "PremiumIO": self.family.premium,
            "VMDeploymentTypes": "IaaS",
            "EphemeralOSDiskSupported": cache_bytes > 0,
            "EncryptionAtHostSupported": not self.name.endswith("_v3"),
            "CapacityReservationSupported": True,
            "AcceleratedNetworkingEnabled": self.vcpus >= 2,
            "RdmaEnabled": False,
        }
        if self.gpus:
            capabilities["GPUs"] = self.gpus
        if cache_bytes:
            capabilities |= {
                "CachedDiskBytes": cache_bytes,
                "SupportedEphemeralOSDiskPlacements": "ResourceDisk,CacheDisk",
            }
        return {
            "resourceType": "virtualMachines",
            "name": self.name,
            "tier": "Standard",
            "size": self.name.removeprefix("Standard_"),
            "family": self.family.name,
            "locations": [region],
            "locationInfo": [{"location": region, "zones": list(ZONES), "zoneDetails": []}],
            "capabilities": [{"name": key, "value": str(value)} for key, value in capabilities.items()],
            "restrictions": _restrictions(region, [zone for zone in ZONES if zone not in zones]),
        }


def _restrictions(region: str, zones: list[str]) -> list[dict[str, Any]]:
    """What keeps a subscription from a size in some zones; in all of them, it is kept from the location too."""
    if not zones:
        return []
    reason = "NotAvailableForSubscription"
    zonal = {
        "type": "Zone",
        "values": [region],
        "restrictionInfo": {"locations": [region], "zones": zones},
        "reasonCode": reason,
    }
    if len(zones) < len(ZONES):
        return [zonal]
    whole = {"type": "Location", "values": [region], "restrictionInfo": {"locations": [region]}, "reasonCode": reason}
    return [whole, zonal]


@cache
def sizes() -> dict[str, Size]:
    """Every size of the table, by the lower-case name."""
    return {size.name.lower(): size for family in FAMILIES for size in _members(family)}


def find(name: str) -> Size | None:
    """The size of a name in any case, or None."""
    return sizes().get(name.lower())


def offered(sold: Iterable[str]) -> list[Size]:
    """The sizes of the table that are sold in a region, ordered by family as in the table.

    Args:
        sold: Names of the sizes with a price in the region.
    """
    wanted = {name.lower() for name in sold}
    return [size for key, size in sizes().items() if key in wanted]


def _members(family: Family) -> Iterator[Size]:
    for vcpus in family.vcpus:
        short = family.pattern.format(vcpus)
        yield Size(f"Standard_{short}", family, vcpus, _TABLE["memory"].get(short, vcpus * family.ratio))
