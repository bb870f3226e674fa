"""Kubernetes' quantities (`100`, `500m`, `4000Gi`) as numbers."""

from __future__ import annotations

import math
import re
from typing import Any, Final

_QUANTITY: Final = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:([eE][+-]?\d+)|([numkKMGTPE]?i?))")
_UNITS: Final = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3} | {
    unit + suffix: float(base ** (power + 1))
    for suffix, base in (("", 1000), ("i", 1024))
    for power, unit in enumerate(("K" if suffix else "k", "M", "G", "T", "P", "E"))
}


def quantity(value: Any) -> float:
    """The number that a quantity stands for: of cores, of bytes.

    Raises:
        ValueError: It is none.
    """
    match = None if isinstance(value, bool) else _QUANTITY.fullmatch(str(value))
    unit = (match[3] or "") if match else ""
    number = float(match[1] + (match[2] or "")) * _UNITS[unit] if match and unit in _UNITS else math.inf
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a quantity of Kubernetes such as 100, 500m or 4000Gi")
    return number
