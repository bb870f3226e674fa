"""A story on AKS: what the recorded run of nap-default shows, and which changes to it must fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.judging.replay import Replay
from karpstack.scale_test.judging.steps import StepRun, outcome, why_not_ready
from karpstack.scale_test.judging.story import clean
from karpstack.scale_test.recording.timeline import Line, excerpt, parse_time
from karpstack.scale_test.reports import report
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario

TAINT = "node.cilium.io/agent-not-ready"


@pytest.fixture
def timeline() -> list[Line]:
    """Recorded with the production controller; lines that no test needs are left out."""
    path = Path(__file__).with_name("aks-nap.timeline.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def story(shipped: dict[str, Scenario]) -> Scenario:
    return shipped["nap-default"]


def failures(timeline: list[Line], story: Scenario) -> list[str]:
    outputs: dict[str, Any] = {"cloud": "azure", "karpenterVersion": "managed"}
    return report.failures(report.make([story], timeline, Stack("aks-nap", outputs)))


def without(timeline: list[Line], unwanted: Callable[[Line], bool]) -> list[Line]:
    found = [line for line in timeline if not unwanted(line)]
    assert len(found) < len(timeline)
    return found


def node_lines(timeline: list[Line]) -> list[Line]:
    return [line for line in timeline if line.get("kind") == "Node" and line["type"] != "DELETED"]


def test_a_node_of_a_pool_that_was_there_before_is_not_the_storys_to_remove(
    timeline: list[Line], story: Scenario
) -> None:
    """A story that fails leaves it empty, and its NodePool takes it away when it is time."""
    there = without(timeline, lambda line: line["type"] == "DELETED" and line.get("kind") in ("Node", "NodeClaim"))
    for line in there:
        if line.get("kind") == "NodeClaim":
            line["object"]["metadata"].pop("deletionTimestamp", None)
    assert not [said for said in failures(there, story) if "clean-up: " in said]
    own = story.model_copy(
        update={
            "existing_node_pools": [],
            "node_pools": {"default": {"template": {"spec": {"nodeClassRef": {"name": "default"}}}}},
        }
    )
    assert [said for said in failures(there, own) if "clean-up: " in said]


def test_pods_that_run_before_their_node_is_known_as_the_storys_are_no_rest(
    timeline: list[Line], story: Scenario
) -> None:
    mark = next(line for line in timeline if line["type"] == "STEP" and line["step"] == 0)
    for named in (True, False):
        replay = Replay()
        replay.apply(
            line
            for line in timeline[: timeline.index(mark)]
            if named or line.get("kind") != "NodeClaim" or "nodeName" not in line["object"]
        )
        run = StepRun(replay, story, 0, parse_time(mark["requested"]), parse_time(mark["received"]))
        assert outcome(run) == ("rest" if named else None)


def test_scaling_to_nothing_waits_for_the_node(timeline: list[Line], story: Scenario) -> None:
    mark = next(line for line in timeline if line["type"] == "STEP" and line["step"] == 1)
    last = {
        kind: max(i for i, line in enumerate(timeline) if line.get("kind") == kind) for kind in ("Node", "NodeClaim")
    }
    assert all(timeline[index]["type"] == "DELETED" for index in last.values())
    for kept, expected in ((set(), None), ({"Node"}, None), ({"NodeClaim"}, None), ({"Node", "NodeClaim"}, "rest")):
        replay = Replay()
        replay.apply(
            line
            for index, line in enumerate(timeline[: timeline.index(mark)])
            if all(index != last[kind] or kind in kept for kind in last)
        )
        run = StepRun(replay, story, 1, parse_time(mark["requested"]), parse_time(mark["received"]))
        assert outcome(run) == expected, kept


def test_a_node_that_comes_again_is_there(timeline: list[Line]) -> None:
    replay = Replay()
    replay.apply(timeline)
    (claim,) = replay.claims.values()
    assert not replay.has_node(claim)
    replay.apply(node_lines(timeline)[:1])
    assert replay.has_node(claim)


def test_a_name_that_is_given_out_again_is_another_node(timeline: list[Line], story: Scenario) -> None:
    """The next story's machine gets the address, and so the name, of one that is gone."""
    replay = Replay()
    replay.apply(timeline)
    (first,) = replay.claims.values()
    kept = [line for line in timeline if line.get("kind") in ("Pod", "Node", "NodeClaim") and line["type"] != "DELETED"]
    text = json.dumps(kept).replace(first.name, "successor").replace("aks-successor", str(first.node))
    lines = json.loads(text.replace(f'"{story.name}"', '"next"'))
    for line in lines:
        if "allocatable" in line["object"]:
            line["object"]["allocatable"]["cpu"] = "48"
    replay.apply(lines)
    second = replay.claims["successor"]
    assert replay.allocatable(first)["cpu"] != "48"
    assert replay.allocatable(second)["cpu"] == "48"
    assert first.node == second.node
    assert (first.hosted, second.hosted) == ({story.name}, {"next"})
    assert replay.has_node(second)
    assert not replay.has_node(first)


def test_nodes_of_a_node_pool_that_was_there_may_stay_for_as_long_as_it_says(
    timeline: list[Line], story: Scenario
) -> None:
    kept = [line for line in timeline if line["type"] != "DELETED" or line["kind"] not in ("NodeClaim", "Node")]
    replay = Replay()
    replay.apply(kept)
    assert story.existing_node_pools == ["default"]
    assert clean(replay, story).passed
    its_own = story.model_copy(update={"existing_node_pools": [], "node_pools": {"default": {}}})
    assert "NodeClaim default-" in clean(replay, its_own).seen


def test_an_existing_node_pool_says_what_is_wrong_with_its_node_class(timeline: list[Line], story: Scenario) -> None:
    wrong = {"type": "ImagesReady", "status": "False", "reason": "NoImages", "message": "none for 1.99"}
    replay = Replay()
    for line in timeline:
        if line.get("kind") == "NodePool":
            line = line | {"object": line["object"] | {"conditions": [{"type": "Ready", "status": "False"}]}}
        elif line.get("kind") == "AKSNodeClass":
            line = line | {"object": line["object"] | {"conditions": [wrong]}}
        replay.apply([line])
    assert why_not_ready(replay, story, "default") == "AKSNodeClass default: ImagesReady NoImages: none for 1.99"


def test_an_excerpt_of_a_node_pool_has_its_node_class() -> None:
    reference = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"}
    found = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"nodeClassRef": reference}}}}
    assert excerpt("NodePool", found)["nodeClassRef"] == reference
