"""How fast the cluster's clock runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.exceptions import TyperException

from karpstack.karpenter import clock
from karpstack.rehearsal.session import speed
from tests.unit.command_line import parsed

HIGHEST = 8.0


@pytest.mark.parametrize(
    ("now", "busiest", "late", "expected"),
    [
        pytest.param(1.0, 0.0, 0.0, 1.5, id="goes up step by step while nothing computes"),
        pytest.param(7.0, 0.0, 0.0, HIGHEST, id="up to the highest"),
        pytest.param(8.0, 1.0, 0.0, 4.0, id="goes down at once when an engine computes"),
        pytest.param(2.0, 2.0, 0.0, 1.0, id="to real time, and no slower"),
        pytest.param(8.0, 0.0, 0.1, 2.5, id="no timer is later than a quarter of a second"),
        pytest.param(4.0, 0.5, 0.0, 4.0, id="half a core is what the busiest may use"),
    ],
)
def test_next_speed(now: float, busiest: float, late: float, expected: float) -> None:
    assert speed.next_speed(now, HIGHEST, busiest, late) == expected


@pytest.mark.parametrize(("text", "expected"), [("", speed.DEFAULT), ("1", 1.0), ("12.5", 12.5)])
def test_ceiling(text: str, expected: float) -> None:
    assert speed.ceiling({speed.VARIABLE: text}) == expected


@pytest.mark.parametrize("text", ["0.5", "65", "fast", "nan", "-1", "inf"])
def test_a_speed_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"set it to a number from 1 \(real time\) to 64"):
        speed.ceiling({speed.VARIABLE: text})
    for command in ("up", "run"):
        with pytest.raises(TyperException, match=r"is no number from 1 \(real time\) to 64"):
            parsed([command, "eks", f"--speed={text}"])


def test_time_runs_faster_while_somebody_waits_and_is_real_again_after(tmp_path: Path) -> None:
    page = clock.Page.create(tmp_path / "clock")
    governor = speed.Governor(page, HIGHEST, lambda: [os.getppid()])
    governor.start()
    try:
        time.sleep(0.3)
        assert page.speed == 1
        with page.waiting():
            _until(lambda: page.speed > 1)
        _until(lambda: page.speed == 1)
    finally:
        governor.stop()


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)
