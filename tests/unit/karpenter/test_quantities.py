"""Quantities and durations as numbers and times."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from karpstack.karpenter.quantities import duration, exact, go_duration, quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [("100", 100), (100.0, 100), ("500m", 0.5), ("4Gi", 4 * 2**30), ("1k", 1000), ("1e3", 1000), ("1.5M", 1.5e6)],
)
def test_quantities(text: object, number: float) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["", "many", "4GiB", "1 Gi", True])
def test_no_quantities(text: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity(text)


def test_nothing_is_rounded() -> None:
    assert exact("0.1") + exact("200m") == Decimal("0.3")
    assert sum(exact("100m") for _ in range(10)) == 1


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("720h", timedelta(days=30)),
        ("1h30m", timedelta(minutes=90)),
        ("30s", timedelta(seconds=30)),
        ("0s", timedelta()),
    ],
)
def test_durations(text: str, time: timedelta) -> None:
    assert duration(text) == time


@pytest.mark.parametrize("text", ["", "Never", "1d", "1.5h", "-1h", "5", "1h ", "999999999h" * 30])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)):
        duration(text)


@pytest.mark.parametrize("text", ["lots", "1e999", "9" * 400, float("inf"), float("nan"), None])
def test_what_no_number_comes_of_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5h", 5400), ("+4h", 14400), ("100ms", 0.1), ("1h30m", 5400), (".5m", 30), ("-1s", -1)]
)
def test_durations_of_go(text: str, seconds: float) -> None:
    assert go_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "true", "1d", "5", "1h ", ".h", "1,5h"])
def test_no_durations_of_go(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration of Go"):
        go_duration(text)
