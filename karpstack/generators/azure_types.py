"""What is known of Azure's VM sizes, as karpenter/facts/azure.json states it: the catalogue and the price table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.karpenter.type_facts import vm_size
from karpstack.rehearsal.azure.machines import prices
from karpstack.rehearsal.azure.machines.catalogue import ZONES, sizes

SOURCE = {"name": "Azure's documentation of its size series", "version": None}
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
        if not priced:
            continue
        zones = {region: [f"{region}-{zone}" for zone in ZONES] for region in priced}
        entry = vm_size(size.entry(""), zones, priced)
        if entry is None:
            raise ValueError(
                f"VM size {size.name} does not follow Azure's naming, so its family and version labels cannot be "
                "derived; extend the pattern in karpstack/karpenter/type_facts.py"
            )
        types.append(entry)
    return types
