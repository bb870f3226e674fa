"""When a side of a what-if has settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.recording.timeline import Line, parse_time
from karpstack.whatif.labels import SCENARIO
from karpstack.whatif.settling import Settled, Settling

BEGIN = parse_time("2026-11-22T10:00:00+00:00")


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def line(kind: str, name: str, **excerpt: Any) -> Line:
    labels = {"app.kubernetes.io/instance": SCENARIO} if kind == "Pod" else {}
    metadata = {"name": name, "uid": name, "labels": labels}
    return {"type": "MODIFIED", "kind": kind, "object": {"metadata": metadata, **excerpt}}


def pod(name: str, node: str | None, *, refused: bool = False) -> Line:
    if refused:
        return line("Pod", name, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])
    ready = [{"type": "Ready", "status": str(node is not None)}]
    return line("Pod", name, conditions=ready, **({"nodeName": node} if node else {}))


def claim(name: str, *conditions: str) -> Line:
    return line("NodeClaim", name, conditions=[{"type": one, "status": "True"} for one in conditions], nodeName=name)


def pool(after: str) -> Line:
    return line("NodePool", "default", spec={"disruption": {"consolidateAfter": after}})


def settled(
    lines: Mapping[float, Line], patience: float = 600, looks: list[float] | None = None
) -> tuple[float, Settled]:
    """When it was seen to have settled, looked at once a second, and how; `looks` is told when Karpenter was asked."""
    replay, settling = Replay(), Settling(BEGIN, patience)
    looks = [] if looks is None else looks
    for second in range(2000):
        replay.apply(
            told | {"received": at(when).isoformat()} for when, told in lines.items() if second - 1 < when <= second
        )
        if found := settling.outcome(replay, at(second)):
            return second, found
        if settling.due(replay, at(second)):
            settling.asked(at(second))
            looks.append(second)
    raise AssertionError("never")


def test_rest_is_longer_than_karpenter_may_wait() -> None:
    lines: dict[float, Line] = {0: pool("30s"), 1: claim("n", "Initialized"), 2: pod("a", "n")}
    assert settled(lines) == (2 + 55 + 75, Settled(2.0, 130.0, 55.0, []))


def test_a_node_that_goes_begins_the_quiet_anew() -> None:
    lines: dict[float, Line] = {
        0: pool("30s"),
        1: claim("n", "Initialized"),
        2: pod("a", "n"),
        60: claim("n", "Initialized", "DisruptionReason"),
        70: {**claim("n", "Initialized", "DisruptionReason"), "type": "DELETED"},
    }
    assert settled(lines)[0] == 70 + 55 + 75


@pytest.mark.parametrize("after", ["Never", "x"])
def test_what_is_no_time_is_not_waited_for(after: str) -> None:
    assert settled({0: pool(after), 1: pod("a", "n")})[0] == 1 + 25 + 75


def test_a_pod_that_the_scheduler_has_not_looked_at_is_waited_for_and_one_that_it_refused_is_not() -> None:
    assert settled({0: pod("a", None)}) == (
        300,
        Settled(0.0, 300.0, 300.0, ["1 pod not scheduled yet"]),
    )
    assert settled({0: pod("a", None, refused=True)})[0] == 25 + 75


def test_what_does_not_settle_is_given_up_and_says_so() -> None:
    lines = {float(second): pod(str(second), "n") for second in range(0, 500, 10)}
    when, found = settled(lines, patience=120)
    assert when == 121
    assert found.gave_up == "it had not settled after 120 s"
    assert (found.quiet, found.needed) == (1.0, 25.0)


def test_how_far_it_is_fits_a_line() -> None:
    replay, settling = Replay(), Settling(BEGIN, 600)
    lines = [pool("30s"), claim("n", "Initialized"), claim("m"), pod("a", "n"), pod("b", None)]
    replay.apply(told | {"received": at(1).isoformat()} for told in lines)
    assert settling.outcome(replay, at(1)) is None
    assert settling.outcome(replay, at(41)) is None
    assert settling.progress_line(replay, at(41)) == (
        "41 s of the cluster's time: 2 nodes, 1 of them starting or going; 2 pods, 1 of them without a node; nothing "
        "has moved for 40 s; settled after 390 s and one more evaluation by Karpenter"
    )


def test_what_karpenter_thinks_over_is_movement_also_where_nothing_comes_of_it() -> None:
    def thought(second: float, reason: str) -> Line:
        return line("Event", f"n.{second}", reason=reason, involvedObject={"kind": "Node", "name": "n", "uid": "n"})

    lines: dict[float, Line] = {
        0: pod("a", "n"),
        60: thought(60, "ConsolidationCandidate"),
        80: thought(80, "ConsolidationRejected"),
        100: thought(100, "Unconsolidatable"),  # is said again and again, and is no thought of doing anything
    }
    assert settled(lines)[0] == 80 + 75


def test_karpenter_is_asked_to_look_again_once_all_nodes_can_be_counted_on_and_anew_after_each_movement() -> None:
    lines: dict[float, Line] = {0: pool("30s"), 1: claim("n", "Initialized"), 2: pod("a", "n")}
    looks: list[float] = []
    assert settled(lines, looks=looks)[0] == 2 + 55 + 75
    assert looks == [2 + 55]
    found_a_way = {70: claim("n", "Initialized", "DisruptionReason"), 100: {**claim("n"), "type": "DELETED"}}
    looks.clear()
    assert settled(lines | found_a_way, looks=looks)[0] == 100 + 55 + 75
    assert looks == [2 + 55, 100 + 55]


def test_what_karpenter_thinks_after_it_was_asked_is_waited_for_without_asking_again() -> None:
    thought = line("Event", "e", reason="ConsolidationRejected", involvedObject={"kind": "Node", "name": "n"})
    looks: list[float] = []
    when, found = settled({0: pool("30s"), 2: pod("a", "n"), 110: thought}, looks=looks)
    assert (when, found.seconds, looks) == (110 + 75, 2.0, [2 + 55])


def metrics(looks: int, started: float = 1.0) -> Line:
    return {
        "type": "CONTROLLER",
        "memory_bytes": 1,
        "cpu_seconds": 1,
        "api_errors": 0,
        "started": started,
        "looks": looks,
    }


@pytest.mark.parametrize(
    ("reading", "when"),
    [
        # A look every ten seconds: the one that was under way, and one that began since.
        (lambda second: metrics(second // 10), 80),
        # In a large cluster each takes a minute.
        (lambda second: metrics(1 + second // 60), 180),
        # Another process begins to count again.
        (lambda second: metrics(50, 1.0) if second < 60 else metrics(second // 10 - 5, 2.0), 80),
        # The clock is ahead, so metrics come once in 70 s; and none of these looks is over before that.
        (lambda second: metrics(1 + second // 200) if second % 70 == 0 else pool("30s"), 420),
        # Nobody counts any more.
        (lambda second: metrics(second // 10) if second < 50 else pool("30s"), 226),
    ],
)
def test_where_karpenters_looks_are_counted_two_of_them_are_waited_for(
    reading: Callable[[int], Line], when: int
) -> None:
    lines: dict[float, Line] = {0: pool("30s"), 1: claim("n", "Initialized"), 2: pod("a", "n")}
    lines |= {second: reading(second) for second in range(5, 500, 5)}  # as the recorder asks
    assert settled(lines)[0] == when


def test_a_node_that_boots_for_minutes_is_waited_for() -> None:
    lines: dict[float, Line] = {
        0: pool("0s"),
        1: pod("a", "n"),
        2: claim("n", "Launched"),
        201: claim("n", "Initialized"),
    }
    lines |= {second: metrics(second // 10) for second in range(5, 300, 5)}
    when, found = settled(lines)
    assert (when > 200, found.left) == (True, [])


def test_looks_are_counted_from_the_last_thought_on() -> None:
    lines: dict[float, Line] = {0: pool("30s"), 2: pod("a", "n")}
    lines |= {second: metrics(second // 10) for second in range(5, 300, 5)}
    thought = {"reason": "ConsolidationRejected", "involvedObject": {"kind": "Node", "name": "n"}}
    lines |= {second + 0.5: line("Event", str(second), **thought) for second in range(60, 130, 15)}
    assert settled(lines)[0] > 130


HELD = line("Pod", "a", conditions=[{"type": "Ready", "status": "True"}], nodeName="n", doNotDisrupt="true")


def draining(name: str) -> Line:
    told = claim(name, "Initialized", "DisruptionReason")
    told["object"]["metadata"]["deletionTimestamp"] = at(60).isoformat()
    return told


@pytest.mark.parametrize(
    ("pod_on_it", "seconds"),
    [(HELD, 60 + 55 + 75), (pod("a", "n"), 60 + 3 * (55 + 75))],  # the second may leave at any moment
)
def test_a_node_that_waits_for_a_held_pod_is_at_rest(pod_on_it: Line, seconds: float) -> None:
    found = settled({0: pool("30s"), 1: claim("n", "Initialized"), 2: pod_on_it, 60: draining("n")})
    assert found[0] == seconds
    assert found[1].left == ([] if pod_on_it is HELD else ["NodeClaim n is on its way out"])
