"""The catalogue of VM sizes: vCPUs, memory, architecture and what else Karpenter reads of them.

A family is one line: the pattern of its names, Azure's name of the family (which is also the name of its quota), its
vCPU counts and GiB for each vCPU, as Azure's documentation of the size series gives them; sizes that leave the ratio
have their memory in `_MEMORY`. Only what is sold in a region is offered there: a size without a price is left out.

Simplified: every size is in all three zones, and disk and network figures follow the series, not the size. There are
no constrained-vCPU sizes (`E4-2s_v5`; Karpenter takes none), one series of GPUs, and no HPC, storage, confidential or
burstable series.
Sizes marked isolated are offered as Azure does, but their ratio is that of the family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

ZONES = ("1", "2", "3")

_SMALL = (2, 4, 8, 16, 32, 48, 64)
_MEDIUM = (*_SMALL, 96)
_LARGE = (*_MEDIUM, 128)
_HUGE = (*_LARGE, 192)
_V3_MEMORY = (2, 4, 8, 16, 20, 32, 48, 64)


@dataclass(frozen=True)
class Family:
    """One series of VM sizes.

    Attributes:
        pattern: Name of a size without `Standard_`, with `{}` for the vCPUs.
        name: Azure's name of the family and its quota.
        ratio: GiB of memory for each vCPU.
        vcpus: The sizes that there are.
        arm: Arm64 processors instead of x64.
        premium: Takes premium disks: an `s` in the size's name.
        generations: Hyper-V generations of the images that boot.
        ephemeral: GiB of cache for each vCPU on which an ephemeral OS disk fits; 0 when the series takes none.
        gpu: Name of its GPUs, made by NVIDIA; empty when it has none.
    """

    pattern: str
    name: str
    ratio: float
    vcpus: tuple[int, ...]
    arm: bool = False
    premium: bool = True
    generations: str = "V1,V2"
    ephemeral: float = 0
    gpu: str = ""


FAMILIES = (
    # General purpose
    Family("D{}_v3", "standardDv3Family", 4, _SMALL, premium=False, generations="V1"),
    Family("D{}s_v3", "standardDSv3Family", 4, _SMALL, ephemeral=25),
    Family("D{}_v4", "standardDv4Family", 4, _SMALL, premium=False),
    Family("D{}s_v4", "standardDSv4Family", 4, _SMALL),
    Family("D{}d_v4", "standardDDv4Family", 4, _SMALL, premium=False),
    Family("D{}ds_v4", "standardDDSv4Family", 4, _SMALL, ephemeral=25),
    Family("D{}a_v4", "standardDAv4Family", 4, _MEDIUM, premium=False),
    Family("D{}as_v4", "standardDASv4Family", 4, _MEDIUM, ephemeral=25),
    Family("D{}_v5", "standardDv5Family", 4, _MEDIUM, premium=False),
    Family("D{}s_v5", "standardDSv5Family", 4, _MEDIUM),
    Family("D{}d_v5", "standardDDv5Family", 4, _MEDIUM, premium=False),
    Family("D{}ds_v5", "standardDDSv5Family", 4, _MEDIUM, ephemeral=25),
    Family("D{}as_v5", "standardDASv5Family", 4, _MEDIUM),
    Family("D{}ads_v5", "standardDADSv5Family", 4, _MEDIUM, ephemeral=25),
    Family("D{}ls_v5", "standardDLSv5Family", 2, _MEDIUM),
    Family("D{}lds_v5", "standardDLDSv5Family", 2, _MEDIUM, ephemeral=25),
    Family("D{}ps_v5", "standardDPSv5Family", 4, _SMALL, arm=True, generations="V2"),
    Family("D{}pds_v5", "standardDPDSv5Family", 4, _SMALL, arm=True, generations="V2", ephemeral=25),
    Family("D{}pls_v5", "standardDPLSv5Family", 2, _SMALL, arm=True, generations="V2"),
    Family("D{}plds_v5", "standardDPLDSv5Family", 2, _SMALL, arm=True, generations="V2", ephemeral=25),
    Family("D{}s_v6", "StandardDsv6Family", 4, _HUGE, generations="V2"),
    Family("D{}ds_v6", "StandardDdsv6Family", 4, _HUGE, generations="V2"),
    Family("D{}ls_v6", "StandardDlsv6Family", 2, _LARGE, generations="V2"),
    Family("D{}as_v6", "standardDav6Family", 4, _MEDIUM, generations="V2"),
    Family("D{}ads_v6", "standardDadv6Family", 4, _MEDIUM, generations="V2"),
    Family("D{}als_v6", "standardDalv6Family", 2, _MEDIUM, generations="V2"),
    Family("D{}ps_v6", "StandardDpsv6Family", 4, _MEDIUM, arm=True, generations="V2"),
    Family("D{}pls_v6", "StandardDplsv6Family", 2, _MEDIUM, arm=True, generations="V2"),
    # Memory
    Family("E{}_v3", "standardEv3Family", 8, _V3_MEMORY, premium=False, generations="V1"),
    Family("E{}s_v3", "standardESv3Family", 8, _V3_MEMORY, ephemeral=25),
    Family("E{}_v4", "standardEv4Family", 8, _V3_MEMORY, premium=False),
    Family("E{}s_v4", "standardESv4Family", 8, _V3_MEMORY),
    Family("E{}ds_v4", "standardEDSv4Family", 8, _V3_MEMORY, ephemeral=25),
    Family("E{}a_v4", "standardEAv4Family", 8, (*_V3_MEMORY, 96), premium=False),
    Family("E{}as_v4", "standardEASv4Family", 8, (*_V3_MEMORY, 96), ephemeral=25),
    Family("E{}_v5", "standardEv5Family", 8, (*_V3_MEMORY, 96), premium=False),
    Family("E{}s_v5", "standardESv5Family", 8, (*_V3_MEMORY, 96)),
    Family("E{}ds_v5", "standardEDSv5Family", 8, (*_V3_MEMORY, 96), ephemeral=25),
    Family("E{}as_v5", "standardEASv5Family", 8, (*_V3_MEMORY, 96)),
    Family("E{}ads_v5", "standardEADSv5Family", 8, (*_V3_MEMORY, 96), ephemeral=25),
    Family("E{}ps_v5", "standardEPSv5Family", 8, (2, 4, 8, 16, 20, 32), arm=True, generations="V2"),
    Family("E{}s_v6", "StandardEsv6Family", 8, (2, 4, 8, 16, 20, 32, 48, 64, 96, 128), generations="V2"),
    Family("E{}as_v6", "standardEav6Family", 8, (2, 4, 8, 16, 20, 32, 48, 64, 96), generations="V2"),
    Family("E{}ps_v6", "StandardEpsv6Family", 8, _MEDIUM, arm=True, generations="V2"),
    # Compute
    Family("F{}", "standardFFamily", 2, (1, 2, 4, 8, 16), premium=False, generations="V1"),
    Family("F{}s", "standardFSFamily", 2, (1, 2, 4, 8, 16), ephemeral=12),
    Family("F{}s_v2", "standardFSv2Family", 2, (2, 4, 8, 16, 32, 48, 64, 72), ephemeral=16),
    Family("F{}as_v6", "StandardFasv6Family", 4, _SMALL, generations="V2"),
    Family("F{}als_v6", "StandardFalsv6Family", 2, _SMALL, generations="V2"),
    Family("F{}ams_v6", "StandardFamsv6Family", 8, _SMALL, generations="V2"),
    # GPU
    Family("NC{}as_T4_v3", "Standard NCASv3_T4 Family", 7, (4, 8, 16, 64), gpu="T4"),
)

#: GiB of the sizes that leave their family's ratio (Azure's size series pages).
_MEMORY = {
    "E64_v3": 432,
    "E64s_v3": 432,
    "E64_v4": 504,
    "E64s_v4": 504,
    "E64ds_v4": 504,
    "E64a_v4": 512,
    "E64as_v4": 512,
    "E96a_v4": 672,
    "E96as_v4": 672,
    "E64_v5": 512,
    "E96_v5": 672,
    "E96s_v5": 672,
    "E96ds_v5": 672,
    "E96as_v5": 672,
    "E96ads_v5": 672,
    "E32ps_v5": 208,
    "D64ps_v5": 208,
    "D64pds_v5": 208,
    "E96as_v6": 672,
    "E128s_v6": 1024,
    "NC16as_T4_v3": 110,
    "NC64as_T4_v3": 440,
}

#: GPUs of the sizes that have more than one.
_GPUS = {"Standard_NC64as_T4_v3": 4}


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
        return _GPUS.get(self.name, 1) if self.family.gpu else 0

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
        yield Size(f"Standard_{short}", family, vcpus, _MEMORY.get(short, vcpus * family.ratio))
