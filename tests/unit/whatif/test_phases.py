"""What is read of a timeline, and what cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest

from scale_test.recording.timeline import TimelineError
from tests.unit.whatif.made import ENDS, Made
from tests.unit.whatif.told import judged, lines, told
from whatif.phases import NotJudgedError, read


def test_what_comes_after_the_change_had_settled_does_not_count() -> None:
    found = judged(told("eks.drift", 1))
    assert found.after is not None
    assert (found.before.nodes, found.after.nodes, found.after.leaving) == (3, 3, 0)
    assert found.blast_radius is not None
    # The clean-up deletes those that came, too.
    assert [one.gone for one in found.blast_radius.made] == [None, None, None]


def test_a_price_that_comes_late_counts() -> None:
    made = Made()
    made.pool()
    made.node("one", price=None)
    made.add(
        ENDS + 10,
        "PRICE",
        instanceType="m5.large",
        capacityType="on-demand",
        zone="us-east-1a",
        pricePerHour=0.096,
    )
    assert judged(read(made.lines())).before.usd_per_hour == 0.096


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ({"base_settled": {"missing": True}}, "the record has no base-settled, so there is nothing to compare"),
        ({"change_begins": {"missing": True}}, "the record has no change-begins"),
        ({"change_settled": {"missing": True}}, "the record has no change-settled"),
    ],
)
def test_a_record_that_ends_before_is_not_judged(phases: dict[str, Any], message: str) -> None:
    with pytest.raises(NotJudgedError, match=message):
        read(Made().lines(**phases))


def test_why_it_ended_before_is_said() -> None:
    made = Made()
    made.add(200, "ERROR", scenario="whatif", task="Load the workload", message="no such namespace")
    with pytest.raises(NotJudgedError, match=r"no change-settled \(Load the workload: no such namespace\)"):
        read(made.lines(change_settled={"missing": True}))


def test_phases_out_of_order_are_not_judged() -> None:
    found = Made().lines()
    marks = {line["phase"]: line for line in found if line["type"] == "PHASE"}
    marks["base-settled"]["received"], marks["change-settled"]["received"] = (
        marks["change-settled"]["received"],
        marks["base-settled"]["received"],
    )
    with pytest.raises(NotJudgedError, match="not in their order"):
        read(found)


def test_without_a_stack_it_is_not_judged() -> None:
    found = Made().lines()
    del found[0]["stack"]
    with pytest.raises(NotJudgedError, match="names no stack"):
        read(found)


def test_a_change_that_was_refused_needs_no_end() -> None:
    found = read(Made().lines(change_applied={"refused": "policy node-pool-limits"}, change_settled={"missing": True}))
    answer = judged(found)
    assert (answer.verdict, answer.refused) == ("refused", "policy node-pool-limits")
    assert answer.after is None
    assert answer.blast_radius is None
    assert "policy node-pool-limits" in answer.sentence


@pytest.mark.parametrize(
    "content", [{"phase": "changed"}, {"phase": 5}, {}, {"phase": "settings", "pools": {"a": {"b": [1]}}}]
)
def test_a_phase_that_does_not_exist_is_refused(content: dict[str, Any]) -> None:
    found = lines("eks.drift", 1)
    found.insert(1, {"type": "PHASE", "received": found[0]["received"], **content})
    with pytest.raises(TimelineError, match=r"line 2: PHASE"):
        read(found)


def test_what_was_told_beside_is_said() -> None:
    found = judged(
        read(
            Made().lines(
                settings={"base": "main", "waitFactor": 2, "candidate": "arm", "snapshot": "pods.json"},
                loaded={"pods": 3, "leftOut": ["kube-system/coredns: the stack has its own", "Made as Deployments: a"]},
                base_settled={"gaveUp": "after 5 s", "left": ["1 pod waits"], "seconds": 5.0},
                change_begins={"candidate": "arm"},
            )
        )
    )
    assert (found.base, found.candidate) == ("main", "arm")
    assert "of the workload: kube-system/coredns: the stack has its own" in found.unknown
    assert "of the workload: made as Deployments: a" in found.unknown
    assert [(moment.gave_up, moment.left) for moment in found.moments if moment.gave_up] == [
        ("after 5 s", ["1 pod waits"])
    ]


def test_gaps_and_failures_are_said() -> None:
    made = Made()
    made.add(150, "GAP", kind="Pod", reason="too old")
    made.add(160, "ERROR", scenario="whatif", task="Wait", message="late")
    unknown = " ".join(judged(read(made.lines())).unknown)
    assert "the record has a gap (Pod: too old)" in unknown
    assert "Wait: late" in unknown
