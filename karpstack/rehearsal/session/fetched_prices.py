"""The prices of the stack's region that a what-if was given: a simulated cloud then sells at them.

The file is that of `karpstack prices fetch`, which `karpstack prices check` has accepted. A file without the prices of
a whole region only changes what the answer counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from karpstack.karpenter.price_file import PriceList
from karpstack.text.yaml_file import YamlError, read

#: Names the file for the daemon; empty for none.
PRICES: Final = "REHEARSAL_PRICES"
_METAL: Final = ".metal"


def of_region(path: Path | None, cloud: str, region: str) -> PriceList | None:
    """Return the prices of a file; None if they are not all those of the region.

    Karpenter for AWS takes on-demand prices only if there are some of bare metal too (`UpdateOnDemandPricing` in
    pkg/providers/pricing/pricing.go, 2026-08-21), and prices of spot only if there are any.
    """
    if path is None:
        return None
    try:
        content = read(path)
    except YamlError:
        return None  # it was refused before
    if not isinstance(content, Mapping) or content.get("region") != region:
        return None
    found = PriceList(region, content.get("onDemand") or {}, content.get("spot") or {})
    whole = found.on_demand and found.spot and (cloud != "aws" or any(_METAL in name for name in found.on_demand))
    return found if whole else None
