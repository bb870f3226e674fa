"""Churn: the rhythm is kept, and the last number is the one that the scenario counts on."""

from __future__ import annotations

import pytest

from karpstack.scale_test.acting.churning import churn
from karpstack.scale_test.scenarios.actions import Churn


class Clock:
    """A time that passes when one sleeps, and while a call takes its time."""

    def __init__(self, call: float) -> None:
        self.now = 100.0
        self.call = call
        self.set: list[tuple[float, int]] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def scale(self, replicas: int) -> None:
        self.set.append((self.now - 100, replicas))
        self.now += self.call


@pytest.mark.parametrize("call", [0.0, 3.0])
def test_each_change_has_its_time(call: float) -> None:
    clock = Clock(call)
    wanted = Churn.model_validate({"replicas": [4, 0, 2], "every": 10, "for": 45})
    done = churn(wanted, clock.scale, lambda: clock.now, clock.sleep)
    assert clock.set == [(0, 4), (10, 0), (20, 2), (30, 4)]
    assert clock.now == 145
    assert done[-1] == wanted.last == 4


def test_a_change_that_takes_too_long_is_followed_at_once() -> None:
    clock = Clock(12.0)
    churn(
        Churn.model_validate({"replicas": [1, 0], "every": 10, "for": 20}), clock.scale, lambda: clock.now, clock.sleep
    )
    assert clock.set == [(0, 1), (12, 0)]
