"""A daily curve of replicas: for hours of the day (UTC), by how much the replicas of workloads are multiplied.

A file in YAML has a mapping of hours for each pattern of workloads, a file in CSV the columns workload, hour, factor:

    shop/*: {0h: 0.2, 8h: 1, 20h: 0.5}
    "*": {0h: 0.6, 7h: 1}

A factor holds until the next hour that the pattern names, past midnight too. Of the patterns that match a workload
(`namespace/name`, with `*` for any characters), the first one counts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from karpstack.text.yaml_file import YamlError, content, parse, read

_COLUMNS: Final = ["workload", "hour", "factor"]
_HOUR_OF_DAY: Final = re.compile(r"([01]?[0-9]|2[0-3])h?", re.ASCII)
_MOST: Final = 100
_EXAMPLE: Final = '"*": {0h: 0.5, 8h: 1, 20h: 0.7}'
_HOUR: Final = timedelta(hours=1)


class CurveError(ValueError):
    """A file that is no curve; the text says where, and has the fix."""


@dataclass(frozen=True)
class Curve:
    """Replicas over a day.

    Attributes:
        factors: Pattern of workloads -> first hour of each stretch -> factor.
    """

    factors: Mapping[str, Mapping[int, float]]

    def replicas(self, workload: str, base: int, at: datetime) -> int:
        """Return how many replicas a workload has at a moment.

        Args:
            workload: Its namespace and name, `shop/web`.
            base: How many it has with a factor of 1.
            at: The moment, which has a time zone.
        """
        hours = next((hours for pattern, hours in self.factors.items() if fnmatchcase(workload, pattern)), {0: 1.0})
        now = at.astimezone(UTC).hour
        begun = max((hour for hour in hours if hour <= now), default=max(hours))
        return int(base * hours[begun] + 0.5)

    def turns(self, begin: datetime, end: datetime) -> list[datetime]:
        """Return the moments between two others at which factors change."""
        named = {hour for hours in self.factors.values() for hour in hours}
        first = begin.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        hours = (first + count * _HOUR for count in range(int((end - first) / _HOUR) + 1))
        return [moment for moment in hours if moment.hour in named and begin < moment < end]

    def unused(self, workloads: list[str]) -> list[str]:
        """Return the patterns that match none of some workloads."""
        return [one for one in self.factors if not any(fnmatchcase(name, one) for name in workloads)]


def load(path: Path) -> Curve:
    """Read a curve.

    Raises:
        CurveError: The file is no curve.
    """
    try:
        return of(_rows(path) if path.suffix == ".csv" else read(path))
    except (CurveError, YamlError) as error:
        raise CurveError(f"{path}: {error}") from error


def of(content: Any) -> Curve:
    """Return the curve that a file's content says.

    Raises:
        CurveError: It says none.
    """
    if not isinstance(content, Mapping) or not content:
        raise CurveError(f"has no workload, so no replicas would change; write, for example, {_EXAMPLE}")
    return Curve({str(pattern): _hours(str(pattern), hours) for pattern, hours in content.items()})


def _hours(pattern: str, hours: Any) -> Mapping[int, float]:
    if not isinstance(hours, Mapping) or not hours:
        raise CurveError(
            f"{pattern} has no hours, so its replicas would not change; write, for example, {_EXAMPLE}, or remove it"
        )
    found: dict[int, float] = {}
    for name, factor in hours.items():
        match = _HOUR_OF_DAY.fullmatch(str(name))
        if not match:
            raise CurveError(f"{pattern}: {name!r} is no hour of the day, so it never comes; write one from 0h to 23h")
        hour = int(match[1])
        if hour in found:
            raise CurveError(f"{pattern}: hour {hour} stands there twice, so its factor is not known; keep one of them")
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor <= _MOST:
            raise CurveError(
                f"{pattern}, hour {hour}: {factor!r} is no factor, so the number of replicas is not known; write a "
                f"number from 0 to {_MOST}, for example 0.5"
            )
        found[hour] = float(factor)
    return dict(sorted(found.items()))


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    """Read CSV as the same mapping that YAML has."""
    try:
        rows = [*csv.reader(io.StringIO(content(path).decode("utf-8-sig"), newline=None)), list[str]()]
    except (UnicodeDecodeError, csv.Error) as error:
        raise CurveError(f"cannot be read ({error})") from error
    head = rows[0]
    if [column.strip() for column in head] != _COLUMNS:
        raise CurveError(f"its first line is {','.join(head)!r}; write {','.join(_COLUMNS)}")
    found: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(_COLUMNS):
            raise CurveError(f"line {number} has {len(row)} columns instead of {len(_COLUMNS)}; write, e.g., *,8,1")
        workload, hour, factor = (cell.strip() for cell in row)
        hours = found.setdefault(workload, {})
        if hour in hours:
            raise CurveError(f"line {number}: hour {hour} of {workload} stands there twice; keep one of the lines")
        hours[hour] = parse(factor.encode())
    return found
