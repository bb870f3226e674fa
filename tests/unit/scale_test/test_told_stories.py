"""Every story as it was run once with the production controller: it passed, and it fails with a false expectation.

The timelines in `told` were recorded in rehearsals, one a story and environment; `tell` took them from there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scale_test.recording.timeline import Line
from scale_test.reports import report
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import Scenario, parse

STACK = Stack("told", {"cloud": "aws", "karpenterVersion": "1.14.1"})
TOLD = Path(__file__).with_name("told")
RECORDED = sorted(path.name.removesuffix(".timeline.jsonl.gz") for path in TOLD.glob("*.gz"))


def told(recorded: str) -> list[Line]:
    text = gzip.decompress((TOLD / f"{recorded}.timeline.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def as_data(recorded: str, shipped: dict[str, Scenario]) -> dict[str, Any]:
    kind, name = recorded.split(".")
    return shipped[name].in_environment(kind).model_dump(by_alias=True, mode="json", exclude_none=True)


def failures(data: dict[str, Any], lines: list[Line]) -> list[str]:
    return report.failures(report.make([parse(data, "told")], lines, STACK))


@pytest.mark.parametrize("recorded", RECORDED)
def test_the_story_passed(recorded: str, shipped: dict[str, Scenario]) -> None:
    assert failures(as_data(recorded, shipped), told(recorded)) == []


def test_every_story_that_is_not_a_walk_through_was_told(shipped: dict[str, Scenario]) -> None:
    wanted = {name for name, scenario in shipped.items() if "walk-through" not in scenario.tags}
    assert {recorded.split(".")[1] for recorded in RECORDED} >= wanted


# Story, step from 0, what is expected instead, and what the failure says.
FALSE: list[tuple[str, int, dict[str, Any], str]] = [
    ("week", 1, {"nodes": 3}, "number of nodes: expected 3; seen "),
    ("eks-spot-default", 0, {"capacityType": "on-demand"}, "capacity type: expected on-demand; seen spot"),
    ("eks-spot-default", 0, {"nodes": 2}, "number of nodes: expected 2; seen 1"),
    ("eks-spot-default", 1, {"events": {"SpotInterrupted": ["Node"]}}, "event SpotInterrupted: expected on a Node"),
    ("eks-limit", 0, {"pending": {"pods": {"max": 5}}}, "waiting pods: expected 0 to 5; seen "),
    ("eks-limit", 0, {"pending": {"saying": "no such host"}}, "reason: expected FailedScheduling on a waiting pod"),
    ("eks-limit", 0, {"pending": None}, "pods: expected 80 there, each ready; seen 80 there, "),
    ("eks-limit", 0, {"nodePool": "default"}, "NodePool: expected default; seen limit"),
    ("eks-interruption", 1, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    ("eks-interruption", 1, {"nodes": 1}, "number of nodes: expected 1; seen 2"),
    ("eks-interruption", 1, {"events": {"SpotRebalanceRecommendation": ["Node"]}}, "seen "),
    ("eks-interruption", 1, {"replacement": {"smaller": True, "cheaper": False}}, "size: expected fewer CPUs"),
    ("eks-rebalance", 1, {"events": {"SpotInterrupted": ["Node"]}}, "event SpotInterrupted: expected on a Node; seen "),
    ("eks-rebalance", 1, {"undisturbed": False, "replacement": {"cheaper": False}}, "every node replaced by a new one"),
    ("drift", 0, {"nodeLabels": {"story-version": ["2"]}}, "node label story-version: expected 2; seen 1, 1, 1"),
    ("drift", 1, {"nodeLabels": {"story-version": ["1"]}}, "node label story-version: expected 1; seen 2, 2, 2"),
    ("drift", 1, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    (
        "expiry",
        0,
        {"replacement": {"cheaper": False}},
        "replacement: expected every node replaced by a new one; seen no",
    ),
    ("expiry", 1, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    ("expiry", 1, {"within": 20}, "time: expected at rest within 20 s; seen at rest after "),
    ("budget", 1, {"nodeLabels": {"story-version": ["2"]}}, "node label story-version: expected 2; seen 1"),
    ("budget", 1, {"events": {"DisruptionTerminating": ["Node"]}}, "event DisruptionTerminating: expected on a Node"),
    ("budget", 2, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    ("capacity-shortage", 2, {"nodes": 1}, "number of nodes: expected 1; seen 2"),
    ("burst-1000", 0, {"nodes": {"max": 99}}, "number of nodes: expected 0 to 99; seen 100"),
    ("burst-1000", 1, {"nodes": {"min": 1}}, "number of nodes: expected at least 1; seen 0"),
    ("churn", 0, {"undisturbed": True}, "nodes: expected none came, none went; seen "),
    ("churn", 0, {"nodes": 0}, "number of nodes: expected 0; seen "),
    ("controller-kill", 0, {"nodes": 9}, "number of nodes: expected 9; seen 10"),
    ("api-server-restart", 0, {"nodes": 9}, "number of nodes: expected 9; seen 10"),
    ("throttling", 1, {"within": 5}, "time: expected at rest within 5 s; seen at rest after "),
    (
        "priority-under-limit",
        0,
        {"scheduledBefore": {"priority-under-limit-low": "priority-under-limit-high"}},
        "priority-under-limit-low before priority-under-limit-high: expected priority-under-limit-low first",
    ),
    ("priority-under-limit", 0, {"workloads": {"low": {"ready": 3}}}, "ready pods of low: expected 3; seen 0"),
    ("priority-under-limit", 1, {"undisturbed": True}, "nodes: expected none came, none went; seen "),
    ("daemon-sets", 0, {"nodes": 2}, "number of nodes: expected 2; seen 3"),
    ("daemon-sets", 0, {"workloads": {"logs": {"ready": 2}}}, "ready pods of logs: expected 2; seen 3"),
    ("do-not-disrupt", 1, {"disrupted": "none"}, "disrupted pods: expected no pod; seen 1 of batch"),
    (
        "do-not-disrupt",
        1,
        {"events": {"SpotInterrupted": ["Node"]}},
        "event SpotInterrupted: expected on a Node; seen ",
    ),
    ("gpu-pool", 0, {"nodePools": {"gpu-pool": 1}}, "NodePool: expected gpu-pool: 1; seen "),
    ("gpu-pool", 1, {"disrupted": ["web"]}, "disrupted pods: expected pods of web and of no other workload; seen none"),
    ("gpu-pool", 1, {"workloads": {"train": {"nodePools": {"gpu-pool": 0}}}}, "pods of train by NodePool: expected "),
    ("zone-short", 1, {"pending": {"pods": 0}}, "waiting pods: expected 0; seen 4"),
    ("zone-short", 1, {"zones": {"us-east-1a": 1}}, "zone: expected us-east-1a: 1; seen us-east-1b: "),
    (
        "zonal-volumes",
        0,
        {"zoneCount": 2},
        "zones: expected in 2 different ones; seen us-east-1a, us-east-1b, us-east-1c",
    ),
    ("zonal-volumes", 1, {"disrupted": "none"}, "disrupted pods: expected no pod; seen 1 of db"),
    ("aks-zone-short", 1, {"pending": {"pods": 0}}, "waiting pods: expected 0; seen 4"),
    ("aks-zone-short", 1, {"zones": {"westus2-1": 1}}, "zone: expected westus2-1: 1; seen westus2-2: "),
    ("aks-zonal-volumes", 0, {"zoneCount": 2}, "zones: expected in 2 different ones; seen westus2-1, westus2-2, west"),
    ("aks-zonal-volumes", 1, {"disrupted": "none"}, "disrupted pods: expected no pod; seen 1 of db"),
    (
        "budget-by-reason",
        1,
        {"events": {"DisruptionTerminating": ["Node"]}},
        "event DisruptionTerminating: expected on a Node; seen ",
    ),
    ("budget-by-reason", 2, {"nodes": {"min": 2}}, "number of nodes: expected at least 2; seen 0"),
    ("spot-fallback", 1, {"capacityTypes": {"spot": 1}}, "capacity type: expected spot: 1; seen on-demand: 1"),
    ("spot-fallback", 3, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    ("aks-spot-fallback", 1, {"capacityTypes": {"spot": 1}}, "capacity type: expected spot: 1; seen on-demand: 1"),
    (
        "aks-spot-fallback",
        3,
        {"undisturbed": False, "replacement": {"cheaper": True}},
        "replacement: expected every node replaced by a new one; seen ",
    ),
    ("static-pool", 0, {"nodes": 0}, "number of nodes: expected 0; seen 2"),
    ("static-pool", 2, {"undisturbed": True, "replacement": None}, "nodes: expected none came, none went; seen "),
    (
        "pdb-holds-drift",
        1,
        {"nodeLabels": {"story-version": ["2"]}},
        "node label story-version: expected 2; seen 1, 1",
    ),
    ("pdb-holds-drift", 2, {"disrupted": "none"}, "disrupted pods: expected no pod; seen 2 of web"),
    (
        "consolidation-policies",
        1,
        {"disrupted": ["balanced"]},
        "disrupted pods: expected pods of balanced and of no other workload; seen 2 of underutilized",
    ),
    (
        "consolidation-policies",
        3,
        {"nodePools": {"policy-balanced": 2}},
        "NodePool: expected policy-balanced: 2; seen ",
    ),
    (
        "image-drift",
        1,
        {"disrupted": ["web"]},
        "disrupted pods: expected pods of web and of no other workload; seen none",
    ),
    ("image-drift", 2, {"disruptedAtOnce": 1}, "disrupted at once: expected at most 1; seen "),
]


@pytest.mark.parametrize(
    ("recorded", "step", "expect", "message"),
    [
        (recorded, step, expect, message)
        for recorded in RECORDED
        for name, step, expect, message in FALSE
        if recorded.split(".")[1] == name
    ],
)
def test_a_false_expectation_fails_the_story(
    shipped: dict[str, Scenario], recorded: str, step: int, expect: dict[str, Any], message: str
) -> None:
    data = as_data(recorded, shipped)
    wanted = data["steps"][step]["expect"] | expect
    data["steps"][step]["expect"] = {key: value for key, value in wanted.items() if value is not None}
    found = failures(data, told(recorded))
    assert any(message in failure for failure in found), found
    assert all(f"step {step + 1} (" in failure for failure in found), found


def test_each_story_is_falsified(shipped: dict[str, Scenario]) -> None:
    assert {name for name, _, _, _ in FALSE} == {recorded.split(".")[1] for recorded in RECORDED}


Change = Callable[[list[Line]], list[Line]]


def about(line: Line) -> str:
    """The kind of the object that a line is about, or the line's type."""
    return str(line["kind"] if "object" in line else line["type"])


def without(kind: str, what: Callable[[Line], bool]) -> Change:
    """Leaves out lines that a story must not do without."""

    def change(lines: list[Line]) -> list[Line]:
        kept = [line for line in lines if about(line) != kind or not what(line)]
        assert len(kept) < len(lines)
        return kept

    return change


def edited(kind: str, edit: Callable[[Line], None]) -> Change:
    """Changes lines in place."""

    def change(lines: list[Line]) -> list[Line]:
        for line in lines:
            if about(line) == kind:
                edit(line)
        return lines

    return change


def _more_than_the_limits(line: Line) -> None:
    if line["object"].get("resources"):
        line["object"]["resources"]["memory"] = "101Gi"


# Story, what is different in what was recorded, and what the failure says.
OTHERWISE: list[tuple[str, Change, str]] = [
    ("eks-limit", edited("NodePool", _more_than_the_limits), "limits of NodePool limit: expected cpu at most 100, "),
    (
        "eks-limit",
        without("Event", lambda line: line["object"]["reason"] == "FailedScheduling"),
        "reason: expected FailedScheduling on a waiting pod, saying: exceed limits; seen nothing of that kind",
    ),
    (
        "eks-interruption",
        without("Event", lambda line: line["object"]["reason"] == "TerminatingOnInterruption"),
        "event TerminatingOnInterruption: expected on a Node; seen",
    ),
    (
        "eks-interruption",
        without("FAULT", lambda line: True),
        "replacement: expected every node replaced by a new one; seen nothing -> ",
    ),
    (
        "budget",
        without("Event", lambda line: line["object"]["reason"] == "DisruptionBlocked"),
        "event DisruptionBlocked: expected on a NodePool; seen ",
    ),
    (
        "capacity-shortage",
        without("FAULT", lambda line: True),
        "other instance type: expected none of (no shortage was caused)",
    ),
    (
        "controller-kill",
        without("NodeClaim", lambda line: line["type"] == "DELETED"),
        "clean-up: expected no NodePool, NodeClaim, Node and pod of the story left; seen NodeClaim controller-kill-",
    ),
    (
        "api-server-restart",
        without("Pod", lambda line: line["type"] == "DELETED"),
        "clean-up: expected no NodePool, NodeClaim, Node and pod of the story left; seen Pod inflate-",
    ),
    (
        "throttling",
        without("Node", lambda line: line["type"] == "DELETED"),
        "clean-up: expected no NodePool, NodeClaim, Node and pod of the story left; seen Node ",
    ),
    (
        "churn",
        without("Pod", lambda line: line["type"] == "DELETED"),
        "clean-up: expected no NodePool, NodeClaim, Node and pod of the story left; seen Pod inflate-",
    ),
]


@pytest.mark.parametrize(
    ("recorded", "change", "message"),
    [
        pytest.param(recorded, change, message, id=f"{recorded}-{index}")
        for recorded in RECORDED
        for index, (name, change, message) in enumerate(OTHERWISE)
        if recorded.split(".")[1] == name
    ],
)
def test_a_story_that_went_otherwise_fails(
    shipped: dict[str, Scenario], recorded: str, change: Change, message: str
) -> None:
    found = failures(as_data(recorded, shipped), change(told(recorded)))
    assert any(message in failure for failure in found), found


def test_the_type_that_ran_short_must_not_come_again(shipped: dict[str, Scenario]) -> None:
    lines = told("eks.capacity-shortage")
    claims = [line for line in lines if about(line) == "NodeClaim"]
    newest = [line["object"]["metadata"]["name"] for line in claims if line["type"] == "ADDED"][-1]
    second = [line for line in claims if line["object"]["metadata"]["name"] == newest][-1]
    (fault,) = [line for line in lines if line["type"] == "FAULT"]
    fault["detail"]["instanceTypes"] = [second["object"]["metadata"]["labels"]["node.kubernetes.io/instance-type"]]
    (failure,) = failures(as_data("eks.capacity-shortage", shipped), lines)
    (short,) = fault["detail"]["instanceTypes"]
    assert f"step 3 (scale to 2), other instance type: expected none of {short}; seen {short}" in failure


@pytest.mark.parametrize("terminating", [False, True])
def test_more_nodes_at_once_than_the_budget_allows_fail(shipped: dict[str, Scenario], *, terminating: bool) -> None:
    """As if the first node had gone only with the last one: its instance too, or its NodeClaim alone."""
    lines = told("eks.drift")
    gone = next(line for line in lines if (line["type"], line.get("kind")) == ("DELETED", "NodeClaim"))
    end = next(line for line in lines if line["type"] == "STEP" and line["step"] == 1)
    lines.remove(gone)
    lines.insert(lines.index(end), gone | {"received": end["received"]})
    for line in lines:
        if (
            not terminating
            and line.get("object", {}).get("metadata", {}).get("uid") == gone["object"]["metadata"]["uid"]
        ):
            conditions = line["object"].get("conditions", ())
            line["object"]["conditions"] = [one for one in conditions if one["type"] != "InstanceTerminating"]
    found = failures(as_data("eks.drift", shipped), lines)
    # Karpenter's budget counts it no longer once its instance is going.
    said = any("disrupted at once: expected at most 1; seen 2" in failure for failure in found)
    assert said is not terminating, found


def test_what_was_said_of_a_node_is_not_said_of_the_next_one_with_its_name(shipped: dict[str, Scenario]) -> None:
    # Machines that are gone leave their addresses, and so their names, to later ones.
    made = report.make([shipped["drift"]], told("eks.drift"), STACK)
    claims = made["stories"][0]["nodeclaims"]
    assert len({claim["node"] for claim in claims}) < len(claims)
    assert [claim["disruption"] for claim in claims] == ["Drifted"] * 3 + [None] * 3


def test_a_pod_that_moves_is_not_nominated_late(shipped: dict[str, Scenario]) -> None:
    # Consolidation nominates pods that have had a node for minutes.
    churn = shipped["churn"].in_environment("eks")
    made = report.make([churn], told("eks.churn"), STACK)
    phase = made["stories"][0]["durations"][0]
    assert phase["phase"] == "pod_pending_to_nominated"
    assert phase["n"] > 50
    assert phase["max"] < 5
