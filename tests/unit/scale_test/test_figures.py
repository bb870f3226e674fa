"""Percentiles and step functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from karpstack.scale_test.numbers.figures import accumulate, integral, merge_steps, percentile

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7], 50, 7), ([1, 2, 3, 4], 50, 2), ([1, 2, 3, 4, 5], 50, 3), (range(1, 101), 99, 99), (range(1, 11), 99, 10)],
)
def test_percentiles_are_values_that_occurred(values: list[float], percent: float, expected: float) -> None:
    assert percentile(list(values), percent) == expected


def test_changes_of_one_moment_are_one_step() -> None:
    assert accumulate([(at(2), 1), (at(1), 1), (at(2), 1), (None, 5)]) == [(at(1), 1), (at(2), 3)]


def test_the_integral_ends_where_it_is_told_to() -> None:
    steps = accumulate([(at(-5), 2), (at(10), 1), (at(20), -3)])
    assert integral(steps, at(0), at(100)) == 2 * 10 + 3 * 10
    assert integral(steps, at(0), at(15)) == 2 * 10 + 3 * 5
    assert integral([], at(0), at(15)) == 0


def test_functions_are_read_together() -> None:
    first, second = accumulate([(at(-1), 1), (at(3), 1)]), accumulate([(at(2), 5), (at(3), -5), (at(9), 1)])
    assert merge_steps(at(0), at(5), first, second) == [(at(0), (1, 0)), (at(2), (1, 5)), (at(3), (2, 0))]
