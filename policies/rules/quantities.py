"""Kubernetes' quantities (`100`, `500m`, `4000Gi`) as numbers."""

from __future__ import annotations

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
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _QUANTITY.fullmatch(str(value))
    unit = (match[3] or "") if match else ""
    if match is None or unit not in _UNITS:
        raise ValueError(f"{value!r} is not a quantity of Kubernetes such as 100, 500m or 4000Gi")
    return float(match[1] + (match[2] or "")) * _UNITS[unit]
