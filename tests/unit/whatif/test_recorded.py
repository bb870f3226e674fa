"""What-ifs as they were rehearsed once; lines that no answer is made of are left out.

- only-m: the NodePool's instance categories become m alone, with thirty-three pods on it.
- held: a cluster with VPC CNI gets a label on nodes of the NodePool `general`: 7 nodes, a budget of 20 %, on each a pod
  with do-not-disrupt, and a terminationGracePeriod of 2 hours. By hand: all 7 drift, 2 of them drain, and their held
  pods are deleted 2 hours less their own minute later; 5 wait for the NodePool's budget and for nothing else.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scale_test.recording.timeline import Line
from tests.unit.whatif.told import judged
from whatif.answer import Answer
from whatif.phases import read

RECORDED = Path(__file__).with_name("recorded")


def recorded(name: str) -> list[Line]:
    text = gzip.decompress((RECORDED / f"eks.{name}.timeline.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return recorded("only-m")


@pytest.fixture(scope="module")
def held() -> Answer:
    return judged(read(recorded("held")))


@pytest.fixture(scope="module")
def answer(lines: list[Line]) -> Answer:
    return judged(read(lines))


def test_what_it_costs(answer: Answer) -> None:
    assert answer.after is not None
    assert (answer.before.nodes, answer.after.nodes) == (4, 4)
    assert (answer.before.pods, answer.after.pods, answer.after.waiting) == (33, 33, 0)
    assert [answer.before.usd_per_hour, answer.after.usd_per_hour] == pytest.approx([1.3114, 1.4705], abs=0.0001)
    assert (answer.before.spot_simulated, answer.after.spot_simulated) == (True, True)
    # What is possible at the least is dearer too, for the pods are the same and the choice is smaller.
    bounds = [answer.before.lower_bound_usd_per_hour, answer.after.lower_bound_usd_per_hour]
    assert bounds == pytest.approx([0.831, 0.935], abs=0.001)


def test_whom_it_replaces(answer: Answer) -> None:
    radius = answer.blast_radius
    assert radius is not None
    assert [(one.instance_type, one.reason, one.words, one.pods) for one in radius.replaced] == [
        ("c6a.large", "Drifted", "RequirementsDrifted", 2),
        ("c6a.8xlarge", "Drifted", "RequirementsDrifted", 28),
    ]
    assert [(one.instance_type, one.reason) for one in radius.made] == [
        ("m5.large", "Drifted"),
        ("m5a.8xlarge", "Drifted"),
    ]
    assert (radius.at_once, radius.pods_moved, radius.without_home) == (1, 30, 0)
    assert answer.week.possible_now is True


def test_why_the_others_stay(answer: Answer) -> None:
    # What was said of them is older than the change of their NodePool, so it decides nothing.
    found = {one.instance_type: (one.why, one.words) for one in answer.surviving}
    assert {why for why, _ in found.values()} == {"not said"}
    assert (found["m8i.large"][1] or "").startswith("SpotToSpotConsolidation")
    assert all(one.said is not None and one.said < 0 for one in answer.surviving)


def test_held_nodes_end_with_an_answer(held: Answer) -> None:
    assert {one.name for one in held.limits if not one.kept} == {"maxPodsKilled"}
    assert held.blast_radius is not None
    draining = [one.node_claim for one in held.blast_radius.replaced]
    assert draining == ["general-aaaaa", "general-fffff"]
    drained = {one.node_claim: one for one in held.blast_radius.held if not one.earliest}
    assert list(drained) == draining
    for one in drained.values():
        assert (one.workload, one.pods, one.why) == ("job", 1, "do-not-disrupt")
        assert one.deleted == pytest.approx(15 + 2 * 3600 - 60, abs=10)
    assert held.blast_radius.pods_killed == 7


def test_nodes_that_wait_have_the_cause_that_holds_them_now(held: Answer) -> None:
    waiting = [one for one in held.surviving if one.drifted]
    words = (
        "the budget of NodePool general for Drifted (2 of 7 nodes at once) is used up by general-aaaaa, general-fffff"
    )
    assert len(waiting) == 5
    assert {tuple((cause.why, cause.words) for cause in one.causes) for one in waiting} == {
        (("disruption budget", words),)
    }
    assert held.week.used_up == [words]


def test_dollars_hold_no_node_that_drains(held: Answer) -> None:
    assert held.after is not None
    sums = held.before.usd_per_hour, held.after.usd_per_hour, held.after.leaving_usd_per_hour
    assert sums == pytest.approx((0.864, 0.672, 0.192))
    assert "$0.864 while 2 nodes drain (9 nodes), $0.672 when they are gone (7 nodes)" in held.sentence
    assert "cheaper" not in held.sentence
    assert held.sentence.count("at prices of us-east-1") == 1
