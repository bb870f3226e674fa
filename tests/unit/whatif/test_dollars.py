"""Dollars are those of the end state, and a direction is stated only where it does not depend on when one looks."""

from __future__ import annotations

import pytest

from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged
from whatif.answer import Answer
from whatif.limits import Limits
from whatif.phases import read

BEGINS, DRIFTED = 100.0, {"Drifted": "NodePoolDrifted"}


def answer(
    old: float, new: float, *, draining: bool = True, launched: bool = True, waiting: bool = False, **limits: object
) -> Answer:
    """Of two nodes, one of which is replaced; `old` and `new` are the prices of that one and of its replacement."""
    made = Made()
    made.pool()
    made.node("keeps", price=0.1)
    made.node("old", type_="m5.xlarge", price=old, disrupted=150, deleting=160, gone=None if draining else 200)
    if launched:
        made.node("new", 155, type_="m5.2xlarge", price=new)
    if waiting:
        made.node("late", type_="m5.4xlarge", price=0.1, conditions=DRIFTED)
    return judged(read(made.lines()), Limits(**limits))


@pytest.mark.parametrize(
    ("old", "new", "more", "words"),
    [
        (0.1, 0.2, {"draining": False}, "$0.100 (50 %) an hour dearer, $0.200 before and $0.300 after"),
        (0.2, 0.1, {"draining": False}, "$0.100 (33 %) an hour cheaper, $0.300 before and $0.200 after"),
        (0.1, 0.1, {"draining": False}, "As dear as before, $0.200 an hour"),
        # Dearer beside its replacement, cheaper when it is gone: nothing is said of the direction.
        (
            0.2,
            0.1,
            {},
            "$0.300 an hour before with 2 nodes, $0.400 while 1 node drains (3 nodes), $0.200 when it is gone "
            "(2 nodes); ",
        ),
        (
            0.1,
            0.2,
            {},
            "$0.200 an hour before with 2 nodes, $0.400 while 1 node drains (3 nodes), $0.300 when it is gone "
            "(2 nodes), dearer in both cases; ",
        ),
        (
            0.1,
            0.2,
            {"draining": False, "waiting": True},
            "$0.100 (33 %) an hour dearer, $0.300 before and $0.400 after, 1 drifted node not replaced yet; ",
        ),
    ],
)
def test_the_sentence_says_which_nodes_a_sum_holds(old: float, new: float, more: dict[str, bool], words: str) -> None:
    assert answer(old, new, **more).sentence.startswith(words)


def test_a_limit_judges_the_end_state() -> None:
    found = answer(0.2, 0.1, max_hourly_increase=0.0, max_hourly=0.25, max_nodes=2)
    assert {
        one.name: one.kept
        for one in found.limits
        if one.name.startswith(("maxHourly", "maxNodes")) and "Never" not in one.name
    } == {
        "maxHourlyIncrease": True,
        "maxHourly": True,
        "maxNodes": True,
    }


def test_nodes_that_are_not_launched_yet_leave_the_direction_open() -> None:
    made = Made()
    made.pool()
    made.node("old", price=0.2, disrupted=150, deleting=160, gone=200)
    labels = {"karpenter.sh/nodepool": "default"}
    made.add(350, "ADDED", kind="NodeClaim", object={"metadata": {"name": "new", "labels": labels}, "conditions": []})
    found = judged(read(made.lines()))
    assert found.after is not None
    assert found.after.coming == 1
    assert "cheaper" not in found.sentence
