"""Arithmetic on what was seen: percentiles, and functions of time that change in steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from datetime import datetime

# A value from a moment on, until the next. Times ascend and none comes twice.
Steps = list[tuple[datetime, float]]


def rank(percent: float, count: int) -> int:
    """Position, from 1, of a percentile among so many values in their order: the nearest rank."""
    return max(1, math.ceil(percent * count / 100))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest value that so many per cent of the values do not exceed.

    Args:
        ordered: The values, ascending; one at least.
        percent: More than 0, at most 100.
    """
    return ordered[rank(percent, len(ordered)) - 1]


def accumulate(changes: Iterable[tuple[datetime | None, float]]) -> Steps:
    """Sum up changes into the value at each moment; those of one moment become one step, those without never were."""
    steps: Steps = []
    value = 0.0
    happened = [(time, change) for time, change in changes if time is not None]
    for time, change in sorted(happened, key=lambda pair: pair[0]):
        value += change
        if steps and steps[-1][0] == time:
            steps[-1] = (time, value)
        else:
            steps.append((time, value))
    return steps


class Cursor:
    """Reads a step function at moments that ascend, without searching from its beginning each time."""

    def __init__(self, steps: Sequence[tuple[datetime, float]]) -> None:
        self._steps = steps
        self._next = 0
        self._value = 0.0

    def at(self, time: datetime) -> float:
        """The value at a moment; 0 before the first step."""
        while self._next < len(self._steps) and self._steps[self._next][0] <= time:
            self._value = self._steps[self._next][1]
            self._next += 1
        return self._value


def merge_steps(
    begin: datetime, end: datetime, *functions: Sequence[tuple[datetime, float]]
) -> list[tuple[datetime, tuple[float, ...]]]:
    """Several step functions as one: a row at the beginning and at each change until the end."""
    times = sorted({begin, *(time for steps in functions for time, _ in steps if begin < time <= end)})
    cursors = [Cursor(steps) for steps in functions]
    rows: list[tuple[datetime, tuple[float, ...]]] = []
    for time in times:
        row = tuple(cursor.at(time) for cursor in cursors)
        if not rows or rows[-1][1] != row:
            rows.append((time, row))
    return rows


def integral(steps: Sequence[tuple[datetime, float]], begin: datetime, end: datetime) -> float:
    """Value times seconds between two moments."""
    area = 0.0
    for (time, value), (later, _) in itertools.pairwise([*steps, (end, 0.0)]):
        area += value * max(0.0, (min(later, end) - max(time, begin)).total_seconds())
    return area
