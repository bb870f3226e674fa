"""What a story does to its nodes through Kubernetes: to those that a step names, and of its own NodePools alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karpstack.scale_test.acting.faults import FaultError
from karpstack.scale_test.acting.nodes import cordon, delete
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.judging.steps import StepRun
from karpstack.scale_test.recording.timeline import Line, Writer, now, parse_time
from karpstack.scale_test.scenarios.actions import Nodes
from karpstack.scale_test.scenarios.scenario import Scenario, parse

FIT = "eks-cheapest-fit"


class Cluster:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def change(self, manifest: dict[str, Any], patch: object) -> None:
        self.done.append((manifest["kind"], manifest["metadata"]["name"], patch))

    def delete(self, manifest: dict[str, Any], uid: str) -> None:
        self.done.append((manifest["kind"], manifest["metadata"]["name"], uid))


@pytest.fixture
def live(timeline: list[Line], tmp_path: Path) -> Live:
    """The recorded timeline up to the moment when the first step of a story has ended."""
    path = tmp_path / "timeline.jsonl"
    with Writer(path):
        pass
    lines = []
    for line in timeline:
        lines.append(json.dumps(line))
        if line["type"] == "STEP" and line["scenario"] == FIT:
            break
    path.write_text("\n".join(lines) + "\n")
    return Live(path)


def faults(live: Live) -> list[tuple[str, dict[str, Any]]]:
    live.read()
    return [(line["kind"], line["detail"]) for _, line in live.replay.faults]


def test_a_node_is_cordoned(live: Live, shipped: dict[str, Scenario]) -> None:
    cluster = Cluster()
    cordon(cluster, live, shipped[FIT], 0, Nodes(nodes=1))  # type: ignore[arg-type]
    ((kind, node, patch),) = cluster.done
    assert (kind, patch) == ("Node", {"spec": {"unschedulable": True}})
    ((fault, detail),) = faults(live)
    assert (fault, detail["node"]) == ("cordon", node)


def test_a_node_is_deleted_by_its_uid_and_is_what_must_be_replaced(live: Live, shipped: dict[str, Scenario]) -> None:
    cluster = Cluster()
    data = shipped[FIT].model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"] = [{"deleteNode": {}, "expect": {"within": 60}}]
    scenario = parse(data, "told")
    delete(cluster, live, scenario, 0, Nodes())  # type: ignore[arg-type]
    ((kind, node, uid),) = cluster.done
    assert (kind, uid) == ("Node", live.replay.nodes[node]["metadata"]["uid"])
    ((fault, detail),) = faults(live)
    assert fault == "delete-node"
    run = StepRun(live.replay, scenario, 0, parse_time(now()), parse_time(now()))
    assert [claim.name for claim in run.leaving()] == [detail["nodeClaim"]]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"capacityType": "spot"}, "has 0 such nodes"),
        ({"zone": "mars-1a"}, "has 0 such nodes"),
        ({"nodePool": "other"}, "has 0 such nodes"),
        ({"nodes": 2}, "has 1 such nodes"),
    ],
)
def test_nodes_that_are_not_there_are_an_error(
    live: Live, shipped: dict[str, Scenario], chosen: dict[str, Any], said: str
) -> None:
    with pytest.raises(FaultError, match=said):
        cordon(Cluster(), live, shipped[FIT], 0, Nodes.model_validate(chosen))  # type: ignore[arg-type]


def test_nodes_of_another_pool_are_left_alone(live: Live, shipped: dict[str, Scenario]) -> None:
    cluster = Cluster()
    theirs = shipped[FIT].model_copy(update={"node_pools": {}, "existing_node_pools": ["cheapest-fit"]})
    with pytest.raises(FaultError, match="of a NodePool that is none of the scenario's own"):
        delete(cluster, live, theirs, 0, Nodes())  # type: ignore[arg-type]
    assert cluster.done == []
