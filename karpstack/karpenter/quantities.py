"""Kubernetes' quantities (`100`, `500m`, `4000Gi`) as numbers, and durations (`720h`, `1h30m`) as times."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

_QUANTITY: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,3})|([numkKMGTPE]?i?))", re.ASCII)
_UNITS: Final = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")} | {
    unit + suffix: Decimal(base) ** (power + 1)
    for suffix, base in (("", 1000), ("i", 1024))
    for power, unit in enumerate(("K" if suffix else "k", "M", "G", "T", "P", "E"))
}
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}[smh])+")
_GO_PART: Final = r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(ns|us|µs|μs|ms|s|m|h)"
_GO_DURATION: Final = re.compile(rf"([-+]?)((?:{_GO_PART})+)")
_GO_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def quantity(value: Any) -> float:
    """The number that a quantity stands for: of cores, of bytes.

    Raises:
        ValueError: It is none.
    """
    return float(exact(value))


def exact(value: Any) -> Decimal:
    """The same without rounding.

    Raises:
        ValueError: It is none.
    """
    match = None if isinstance(value, bool) else _QUANTITY.fullmatch(str(value))
    unit = (match[3] or "") if match else ""
    if match and unit in _UNITS:
        number = Decimal(match[1] + (match[2] or "")) * _UNITS[unit]
        if math.isfinite(float(number)):
            return number
    raise ValueError(f"{value!r} is not a quantity of Kubernetes such as 100, 500m or 4000Gi")


def duration(text: str) -> timedelta:
    """The time that one of Karpenter's durations stands for: hours, minutes and seconds, without fractions.

    `Never` is none: whether it may stand there, and what it then means, is the field's matter.

    Raises:
        ValueError: It is none.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration of Karpenter such as 720h, 1h30m or 30s")
    try:
        return timedelta(seconds=sum(int(part[:-1]) * _SECONDS[part[-1]] for part in re.findall(r"\d+[smh]", text)))
    except OverflowError as error:
        raise ValueError(
            f"{text!r} is longer than any time that can be reckoned with; write one such as 720h"
        ) from error


def finite_duration(text: str) -> timedelta | None:
    """The same; None for `Never`, and for what is no duration."""
    try:
        return duration(text)
    except ValueError:
        return None


def go_duration(text: str) -> timedelta:
    """The time that a text stands for where Karpenter reads it by Go's `time.ParseDuration`: annotations of pods.

    Raises:
        ValueError: It is none.
    """
    match = _GO_DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a duration of Go such as 6h, 1.5h or 1h30m")
    seconds = sum(float(number) * _GO_SECONDS[unit] for number, unit in re.findall(_GO_PART, match[2]))
    return timedelta(seconds=-seconds if match[1] == "-" else seconds)
