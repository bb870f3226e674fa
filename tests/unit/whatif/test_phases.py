"""What is read of a timeline, and what cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.scale_test.recording.timeline import TimelineError
from karpstack.whatif.phases import NotJudgedError, read
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import lines


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


@pytest.mark.parametrize(
    "content", [{"phase": "changed"}, {"phase": 5}, {}, {"phase": "settings", "pools": {"a": {"b": [1]}}}]
)
def test_a_phase_that_does_not_exist_is_refused(content: dict[str, Any]) -> None:
    found = lines("eks.drift", 1)
    found.insert(1, {"type": "PHASE", "received": found[0]["received"], **content})
    with pytest.raises(TimelineError, match=r"line 2: PHASE"):
        read(found)
