"""How the pages write numbers: always with their unit, never with more digits than mean something."""

from __future__ import annotations

import itertools
from datetime import datetime

NONE = "–"  # noqa: RUF001
_MINUTE, _HOUR = 60, 3600
_FIRST, _LAST = 6, 2  # of a long enumeration


def duration(seconds: float | None) -> str:
    """`0.42 s`, `34.2 s`, `1 min 52 s`, `2 h 05 min`."""
    if seconds is None:
        return NONE
    size = abs(seconds)
    if size < 10:
        return f"{seconds:.2f} s"
    if size < 2 * _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(size)
    sign = "-" if seconds < 0 else ""
    if whole < _HOUR:
        return f"{sign}{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    return f"{sign}{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"


def clock(seconds: float) -> str:
    """Minutes and seconds after a beginning: `0:07`, `12:30`."""
    whole = round(seconds)
    return f"{whole // _MINUTE}:{whole % _MINUTE:02d}"


def dollars(usd: float | None) -> str:
    """`$0.0231`, `$1.90`, `$1,204`: at least three significant digits."""
    if usd is None:
        return NONE
    size = abs(usd)
    digits = 0 if size >= 1000 else 2 if size >= 1 or size == 0 else 3 if size >= 0.1 else 4
    if 0 < size < 0.001:
        digits = 6
    return f"{'-' if usd < 0 else ''}${size:,.{digits}f}"


def share(part: float | None) -> str:
    """`87 %` of 0.871."""
    return NONE if part is None else f"{100 * part:.0f} %"


def times(factor: float | None) -> str:
    """A factor, with the sign for times."""
    return NONE if factor is None else f"{factor:.2f}×"  # noqa: RUF001


def count(number: float | None) -> str:
    """`5,000`."""
    return NONE if number is None else f"{number:,.0f}"


def plural(number: int, noun: str, many: str = "") -> str:
    """`1 node`, `2 nodes`."""
    return f"{count(number)} {noun if number == 1 else many or f'{noun}s'}"


def memory(size: float | None) -> str:
    """`148 MiB`, `16 GiB`."""
    if size is None:
        return NONE
    return f"{size / 2**30:,.3g} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def moment(text: str | None) -> str:
    """A time of the report for people: `21 November 2026, 03:53 UTC`."""
    if not text:
        return NONE
    time = datetime.fromisoformat(text)
    return f"{time.day} {time:%B %Y, %H:%M} {time.tzname() or ''}".rstrip()


def brief(text: str) -> str:
    """An enumeration for reading: `m5.large × 20`, and of many different things the first and the last."""  # noqa: RUF002
    runs = [(part, len(list(same))) for part, same in itertools.groupby(text.split(", "))]
    parts = [part if n == 1 else f"{part} × {n}" for part, n in runs]  # noqa: RUF001
    more = len(parts) - _FIRST - _LAST
    return ", ".join([*parts[:_FIRST], f"… {more} more …", *parts[-_LAST:]] if more > 1 else parts)
