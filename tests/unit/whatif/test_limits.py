"""Limits: what they allow, and files that are wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.numbers.thresholds import Thresholds, ThresholdsError
from karpstack.scale_test.scenarios.scenario import names
from karpstack.whatif.answer import Answer
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import WhatifTimeline, read
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged, told

SHIPPED = Path(__file__).resolve().parents[3] / "playbooks" / "thresholds.yml"


#: Switches off what is limited by default.
OFF = dict.fromkeys(("maxPodsUnschedulable", "maxWorkloadsWithoutNodePool", "maxNodesNeverReplaced", "maxPodsKilled"))


def answer(limits: dict[str, Any], found: WhatifTimeline | None = None) -> Answer:
    """Of a consolidation from six nodes to four, two of which go, with two pods."""
    return judged(found or told("eks.consolidation-policies", 3), Limits.parse(limits, "thresholds.yml"))


def dearer() -> WhatifTimeline:
    """Two nodes at 0.096 become three; one pod has no home for 20 s, another at the end."""
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", disrupted=150, deleting=151, gone=200)
    made.node("three", 160)
    made.node("four", 161)
    made.pod("web-1", "three", 155, unschedulable=156, scheduled=175)
    made.pod("web-2", None, 300, unschedulable=301)
    made.pod("web-3", "two", leaving=155)
    return read(made.lines())


@pytest.mark.parametrize(
    ("name", "broken", "kept", "seen"),
    [
        ("maxHourlyIncrease", 0.095, 0.096, "+0.096 USD an hour"),
        ("maxHourlyIncrease", "49%", "50%", "+0.096 USD an hour"),
        ("maxHourly", 0.28, 0.29, "0.288 USD an hour"),
        ("maxNodes", 2, 3, "3 nodes"),
        ("maxNodesReplaced", 0, 1, "1 node"),
        ("maxNodesReplaced", "49%", "50%", "1 node"),
        ("maxNodesAtOnce", 0, 1, "1 node"),
        ("maxPodsMoved", 0, 1, "1 pod"),
        ("maxPodsWithoutNode", 1, 2, "2 pods"),
        ("maxSecondsWithoutNode", 99, 100, "100 s"),
        ("maxPodsUnschedulable", 0, 1, "1 pod"),
        ("maxTimesLowerBound", 2.9, 3.1, "3 times the lower bound"),
    ],
)
def test_each_limit(name: str, broken: Any, kept: Any, seen: str) -> None:
    for limit, verdict in ((broken, "limits exceeded"), (kept, "within limits")):
        found = answer({**OFF, name: limit}, dearer())
        assert found.verdict == verdict
        (judgement,) = [one for one in found.limits if one.name == name]
        assert (judgement.measured, judgement.within_limit) == (seen, verdict == "within limits")


def test_what_is_not_limited_is_not_judged() -> None:
    assert [one.name for one in answer(OFF).limits] == ["mustSettle"]


def test_cheaper_is_no_increase() -> None:
    assert answer({"maxHourlyIncrease": 0}).verdict == "within limits"


def test_what_is_not_known_keeps_no_limit() -> None:
    found = answer({**OFF, "maxHourly": 100, "maxDifferenceFromCluster": "50%"}, told("eks.eks-limit", 0))
    assert [(one.name, one.measured, one.within_limit) for one in found.limits[1:]] == [
        ("maxHourly", "not known", False),
        ("maxDifferenceFromCluster", "not known", False),
    ]


def test_what_did_not_settle_breaks_a_limit_that_can_be_lifted() -> None:
    made = Made()
    made.pool()
    made.node("one")
    moving = read(made.lines(base_settled={"gaveUp": "still moving after 10 min"}))
    found = answer({}, moving)
    assert found.verdict == "limits exceeded"
    assert found.limits[0].measured == "base-settled: still moving after 10 min"
    assert answer({"mustSettle": False}, moving).verdict == "within limits"


@pytest.mark.parametrize(
    ("base", "seen"),
    [
        (
            {"gaveUp": "it had not settled after 600 s", "quiet": 41.2, "needed": 315},
            "base-settled: it had not settled after 600 s; no change for 41 s, 315 s are needed",
        ),
        (
            {"quiet": 105.7, "needed": 105},
            "settled; base-settled: no change for 106 s, 105 s are needed",
        ),
        ({}, "settled"),  # of a record without it
    ],
)
def test_how_much_quiet_there_was_of_that_which_is_needed_is_said(base: dict[str, Any], seen: str) -> None:
    made = Made()
    made.pool()
    made.node("one")
    assert answer({}, read(made.lines(base_settled=base))).limits[0].measured == seen


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"maxPodsWithoutNodes": 1},
            "whatif.maxPodsWithoutNodes: 1: unknown key, so it would limit nothing; did you mean maxPodsWithoutNode?",
        ),
        ({"maxHourlyIncrease": "a lot"}, "write a number, or a share such as 10%"),
        ({"maxPodsKilled": True}, "whatif.maxPodsKilled: input should be a valid integer"),
        ({"maxHourlyIncrease": True}, "whatif.maxHourlyIncrease"),
        ({"maxNodes": -1}, "whatif.maxNodes: input should be greater than or equal to 0"),
        ([1], "whatif: [1] limits nothing"),
    ],
)
def test_a_wrong_limit_fails_with_the_fix(section: object, message: str) -> None:
    with pytest.raises(ThresholdsError) as error:
        Limits.parse(section, "thresholds.yml")
    assert message in str(error.value)


def test_the_shipped_limits(tmp_path: Path) -> None:
    shipped = names(SHIPPED.parent / "scenarios")
    assert Limits.load(SHIPPED, shipped).max_pods_unschedulable == 0
    with pytest.raises(ThresholdsError, match="cannot be read"):
        Limits.load(tmp_path / "none.yml", shipped)


def test_each_limit_that_does_not_ship_is_suggested(tmp_path: Path) -> None:
    head, section = SHIPPED.read_text().split("\nwhatif:\n")
    path = tmp_path / "all.yml"
    path.write_text(f"{head}\nwhatif:\n{re.sub(r'^  # (?=max)', '  ', section, flags=re.MULTILINE)}")
    found = Limits.load(path, names(SHIPPED.parent / "scenarios"))
    assert found.model_fields_set == set(Limits.model_fields)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "limits.yml: whatif: there is no such section"),
        ("whatif:", "limits.yml: whatif: there is no such section, or nothing in it"),
        ("default: {nodes: 3}", "limits.yml: whatif: there is no such section"),
        ("what-if: {maxNodes: 0}", "no such section, so it would limit nothing; did you mean whatif?"),
        (
            "maxNodes: 0",
            "limits.yml: maxNodes: 0: no such section, so it would limit nothing; write it under `whatif:`",
        ),
        ("whatif: {maxNodes: 1}\nmaxPodsMoved: 0", "maxPodsMoved: 0: no such section"),
        ("whatif: {maxNodes: 1}\nzz: 0", "use of whatif, default and the names of scenarios that ship"),
        ("[1]", "whatif: [1] limits nothing"),
    ],
)
def test_a_file_that_would_limit_nothing_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "limits.yml"
    path.write_text(content)
    with pytest.raises(ThresholdsError) as error:
        Limits.load(path, ["burst"])
    assert message in str(error.value)


def test_a_file_that_limits_nothing_on_purpose(tmp_path: Path) -> None:
    path = tmp_path / "limits.yml"
    path.write_text("whatif: {}\nburst: {nodes: 3}\ndefault: {nodes: 3}")
    assert Limits.load(path, ["burst"]) == Limits()


def test_the_scale_test_passes_over_limits_of_what_ifs() -> None:
    found = Thresholds.parse({"whatif": {"maxNodes": 1}, "default": {"nodes": 3}}, "thresholds.yml", [])
    assert found.data() == {"default": {"nodes": 3}}
