"""When the time of a cluster that lives may jump, and how far."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from karpstack.scale_test.acting.living import LONGEST, Pace, decision_times
from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.recording.timeline import Line
from karpstack.whatif.settling import WATCHED
from tests.unit.whatif.test_settling import BEGIN, at, claim, line, pod, pool

MINUTE = 60.0
RESTING = [pool("30s"), claim("n", "Initialized"), pod("p", "n")]
FAR = at(7 * 24 * 60 * MINUTE)
CLOSED_BY_DAY = {"disruption": {"budgets": [{"nodes": "0", "schedule": "0 11 * * *", "duration": "8h"}]}}


def replay(*lines: Line) -> Replay:
    told = Replay()
    told.apply(one | {"received": BEGIN.isoformat()} for one in lines)
    return told


def ahead(told: Replay, *seconds: float, until: datetime = FAR) -> list[float | None]:
    """How far time may jump at some moments, one after another."""
    pace = Pace(BEGIN, WATCHED)
    found = [pace.next(told, at(when), until) for when in seconds]
    return [None if one is None else one.total_seconds() for one in found]


def test_time_jumps_farther_and_farther_while_nothing_moves() -> None:
    found = ahead(replay(*RESTING), 0, 29, 30, 40, 60, 100, 180, 340, 660, 1300, 2600, 5200, 8300)
    longest = LONGEST.total_seconds()
    assert found == [None, None, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, longest, longest]


@pytest.mark.parametrize(
    "moving",
    [
        [claim("n", "Launched")],
        [pod("p", None)],
        [claim("n", "Initialized", "DisruptionReason")],
    ],
)
def test_time_does_not_jump_while_something_is_under_way(moving: list[Line]) -> None:
    told = replay(pool("30s"), *moving)
    assert ahead(told, 0, 60, 299) == [None, None, None]
    assert ahead(told, 0, 301) == [None, 10]  # it does not get on, so days must not wait for it


def test_a_pod_without_room_holds_no_time_up() -> None:
    assert ahead(replay(*RESTING, pod("q", None, refused=True)), 0, 30) == [None, 10]


def test_jumps_begin_anew_when_something_has_moved() -> None:
    told, pace = replay(*RESTING), Pace(BEGIN, WATCHED)
    assert [pace.next(told, at(when), FAR) for when in (0, 30, 60)][1:] == [
        timedelta(seconds=10),
        timedelta(seconds=20),
    ]
    told.apply([pod("q", "n") | {"received": at(61).isoformat()}])
    assert [pace.next(told, at(when), FAR) for when in (62, 80, 92)] == [None, None, timedelta(seconds=10)]


def test_no_jump_goes_past_what_is_planned() -> None:
    assert ahead(replay(*RESTING), 0, 30, until=at(33)) == [None, 3]


def test_no_jump_goes_past_the_opening_of_a_budget() -> None:
    told = replay(line("NodePool", "default", spec=CLOSED_BY_DAY))
    # It begins at 10 o'clock; at 11, and eight hours later, the budget is another one.
    assert ahead(told, 0, 3595) == [None, 5]
    assert list(decision_times(told, BEGIN, FAR))[:2] == [at(3600), at(9 * 3600)]


def test_no_jump_goes_past_the_expiry_of_a_node() -> None:
    born = line("NodeClaim", "n", expireAfter="2h", conditions=[{"type": "Initialized", "status": "True"}])
    born["object"]["metadata"]["creationTimestamp"] = BEGIN.isoformat()
    assert ahead(replay(born), 0, 7197) == [None, 3]


@pytest.mark.parametrize(
    ("grace", "moment"), [({}, 7170), ({"terminationGracePeriodSeconds": 120}, 7080)], ids=["as usual", "its own"]
)
def test_no_jump_goes_past_the_deletion_of_a_held_pod(grace: dict[str, Any], moment: float) -> None:
    going = line("NodeClaim", "n", terminationGracePeriod="2h", nodeName="n", conditions=[])
    going["object"]["metadata"]["deletionTimestamp"] = BEGIN.isoformat()
    held = line("Pod", "p", nodeName="n", conditions=[{"type": "Ready", "status": "True"}], **grace)
    told = replay(going, held)
    assert ahead(told, 0, moment - 4) == [None, 4]
    assert list(decision_times(told, BEGIN, FAR)) == [at(7200), at(moment)]  # the node's end, and the pod's


@pytest.mark.parametrize(
    ("nodes", "jumps"),
    [
        ("1", [None, 10, 20, 40, 60, 60, 60, 120]),  # for ten minutes Karpenter gets its looks
        ("0", [None, 10, 20, 40, 80, 160, 320, 640]),
    ],
)
def test_jumps_are_short_while_a_drifted_node_may_be_replaced(nodes: str, jumps: list[float | None]) -> None:
    drifted = line(
        "NodeClaim", "n", conditions=[{"type": kind, "status": "True"} for kind in ("Initialized", "Drifted")]
    )
    drifted["object"]["metadata"]["labels"] = {"karpenter.sh/nodepool": "default"}
    spec = {"disruption": {"budgets": [{"nodes": nodes}]}}
    assert ahead(replay(line("NodePool", "default", spec=spec), drifted), 0, 30, 40, 60, 100, 160, 220, 660) == jumps


def test_a_budget_that_cannot_be_evaluated_holds_no_time_up() -> None:
    wrong = {"disruption": {"budgets": [{"nodes": "many"}]}}
    assert ahead(replay(line("NodePool", "default", spec=wrong)), 0, 30) == [None, 10]
