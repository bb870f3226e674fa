"""What is known of Azure's VM sizes, as karpenter/facts/azure.json states it: the catalogue and the price table.

Labels are those that the Azure provider's `computeRequirements` derives from the same entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rehearsal.azure.machines import prices
from rehearsal.azure.machines.catalogue import ZONES, Size, sizes

_GROUP = "karpenter.azure.com/"
_NAME = re.compile(r"Standard_([A-Z])([A-Z]*)[0-9]+([a-z]*)(?:_[A-Z]+[0-9]+)?(?:_v([0-9]+))?$")
_ARCHITECTURES = {"x64": "amd64", "Arm64": "arm64"}

#: The rule by which the rehearsal makes spot prices up.
SPOT_RULE = {
    "simulated": True,
    "share_of": "{region}/{type}",
    "lowest": prices.LOWEST,
    "spread": prices.SPREAD,
}


def instance_types(table: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """One entry a VM size that has a price in one of the regions, by name.

    Args:
        table: On-demand prices: region -> VM size -> dollars per hour.
    """
    types = []
    for size in sorted(sizes().values(), key=lambda size: size.name):
        priced = {
            region: prices_there[size.name] for region, prices_there in table.items() if size.name in prices_there
        }
        if priced:
            types.append(
                {
                    "name": size.name,
                    "vcpus": size.vcpus,
                    "memory_mib": int(size.memory * 1024),
                    "max_pods": None,
                    "capacity_types": ["on-demand", "spot"] if size.spot else ["on-demand"],
                    "zones": {region: [f"{region}-{zone}" for zone in ZONES] for region in priced},
                    "on_demand": priced,
                    "labels": _labels(size),
                }
            )
    return types


def _labels(size: Size) -> dict[str, str]:
    parts = _NAME.match(size.name)
    if not parts:
        raise ValueError(
            f"VM size {size.name} does not follow Azure's naming, so its family and version labels cannot be derived; "
            "extend the pattern in rehearsal/azure/machines/facts.py"
        )
    family, subfamily, features, version = parts.groups()
    vcpus, memory = str(size.vcpus), str(int(size.memory * 1024))
    gpu = {f"{_GROUP}sku-gpu-manufacturer": "nvidia", f"{_GROUP}sku-gpu-name": size.family.gpu} if size.gpus else {}
    return {
        "kubernetes.io/arch": _ARCHITECTURES[size.architecture],
        f"{_GROUP}sku-name": size.name,
        f"{_GROUP}sku-family": family,
        f"{_GROUP}sku-series": f"{family}{subfamily}{features}" + (f"_v{version}" if version else ""),
        f"{_GROUP}sku-version": version or "1",
        f"{_GROUP}sku-cpu": vcpus,
        f"{_GROUP}sku-memory": memory,
        f"{_GROUP}sku-gpu-count": str(size.gpus),
        **gpu,
        f"{_GROUP}sku-storage-premium-capable": str(size.family.premium).lower(),
        f"{_GROUP}sku-networking-accelerated": str(size.vcpus >= 2).lower(),
        "kubernetes.azure.com/sku-cpu": vcpus,
        "kubernetes.azure.com/sku-memory": memory,
    }
