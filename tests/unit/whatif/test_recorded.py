"""A what-if as it was rehearsed once: the NodePool's instance categories become m alone, with thirty-three pods on it.

The change was a stack file of which `pulumi up` made the difference; lines that no answer is made of are left out.
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

RECORDED = Path(__file__).with_name("recorded") / "eks.only-m.timeline.jsonl.gz"


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines()]


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
    assert bounds == pytest.approx([0.403, 0.454], abs=0.001)


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
    assert [(one.instance_type, one.why) for one in answer.surviving] == [
        ("m8i-flex.large", "price"),
        ("m8i.large", "spot to spot"),
    ]
    assert all(one.said is not None and one.said < 0 for one in answer.surviving)
