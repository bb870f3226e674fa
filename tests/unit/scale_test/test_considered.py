"""Which NodePools a node could have been of, and what the record has against the others: rows of `considered.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports.report import make
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.told_choices import ON_DEMAND, STORY, Choices, called, types

ROWS = yaml.safe_load(Path(__file__).with_name("considered.yaml").read_text(encoding="utf-8"))
LARGE = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}
DECIDED = [["claim"], ["nominated"]]
M5, M6 = types("m5.large"), types("m6g.large")


def _term(arch: str) -> Line:
    return {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]}


#: What rows name: a value, or several calls.
NAMES: dict[str, Any] = {
    "GPU": {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
    "EXISTS": {"key": "nvidia.com/gpu", "operator": "Exists"},
    "AMD": _term("amd64"),
    "ARM64": _term("arm64"),
    "M5": M5,
    "M6": M6,
    "REFUSED": {"name": "refused", "pool": "heavy", "bought": None},
}
CALLS: dict[str, list[Any]] = {
    "DECIDED": DECIDED,
    "NO_CAPACITY": [["event", "NodeClaim", "refused", "InsufficientCapacityError", "no capacity"]],
    "FULL_POOL": [
        ["pool", "heavy", {"weight": 10, "limits": {"cpu": "2"}}],
        ["pool"],
        ["pod"],
        ["claim", {"name": "heavy-1", "pool": "heavy"}],
    ],
    **{
        name: [
            ["node_class", "us-east-1a", "us-east-1b"],
            ["pool", "heavy", M5, ON_DEMAND, {"weight": 10, **limits}],
            ["pool", "cheapest-fit", M6],
            ["pod"],
        ]
        for name, limits in (("TWO_ZONES", {}), ("AT_LIMIT", {"limits": {"nodes": "1"}}))
    },
}


@pytest.fixture
def scenario(shipped: dict[str, Scenario]) -> Scenario:
    return shipped[STORY]


def pools(scenario: Scenario, lines: list[Line], claim: str = "claim") -> dict[str, dict[str, Any]]:
    outputs = {"cloud": "aws", "region": "us-east-1"}
    made = make([scenario], lines, Stack("told", outputs), facts=Facts.load("aws"))
    found = next(one for one in made["stories"][0]["nodeclaims"] if one["name"] == claim)
    return {pool["name"]: pool for pool in found["why"]["pools"]}


def calls(row: dict[str, Any]) -> list[Any]:
    """The calls of a row: its own, or those of a NodePool that was asked first."""
    if "limits" in row:
        more = {"limits": row["limits"]} if row["limits"] else {}
        there = [["claim", {"name": f"heavy-{number}", "pool": "heavy"}] for number in range(4)]
        return [["pool", "heavy", LARGE, {"weight": 10, **more}], ["pool"], ["pod"], *there, *DECIDED]
    if "heavy" in row:
        heavy = ["pool", "heavy", "ARM", {"weight": 10, **row["heavy"]}]
        return [heavy, ["pool"], ["pod", row.get("pod", {})], *DECIDED]
    return [call for one in row["do"] for call in (CALLS[one] if isinstance(one, str) else [one])]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_the_record_has_against_a_node_pool(scenario: Scenario, row: dict[str, Any]) -> None:
    told = Choices()
    called(told, calls(row), NAMES)
    found = pools(scenario, told.end())
    if row.get("all"):
        assert list(found) == list(row["pools"])
    for name, expected in row["pools"].items():
        verdict, *more = expected if isinstance(expected, list) else [expected]
        assert found[name]["verdict"] == verdict
        if len(more) == 1:
            assert found[name]["about"] == more[0]
        if len(more) > 1:
            limit = found[name]["limit"]
            assert [limit[key] for key in ("resource", "limit", "used", "at_once")] == more
    if len(row["pools"]) > 1:
        assert [name for name in found if name in row["pools"]] == list(row["pools"])


def test_nodes_that_go_take_no_room_and_those_of_the_same_moment_do(scenario: Scenario) -> None:
    told = Choices()
    told.pool("heavy", weight=10, limits={"cpu": "2"})
    told.pool()
    told.pod()
    told.claim(name="heavy-1", pool="heavy")
    lines = told.lines
    going = lines[-1]["object"] | {"metadata": lines[-1]["object"]["metadata"] | {"deletionTimestamp": told.clock()}}
    told.add("MODIFIED", kind="NodeClaim", object=going)
    told.claim()
    told.nominated()
    assert pools(scenario, [*lines, {**lines[-1], "type": "END", "scenario": STORY}])["heavy"]["verdict"] == "unknown"
    created = next(line["object"]["metadata"]["creationTimestamp"] for line in lines if _is(line, "claim"))
    told.claim(name="heavy-2", pool="heavy")
    lines[-1]["object"]["metadata"]["creationTimestamp"] = created
    limit = pools(scenario, told.end())["heavy"]["limit"]
    assert (limit["used"], limit["at_once"]) == (2, True)


def _is(line: Line, name: str) -> bool:
    return line.get("kind") == "NodeClaim" and line["object"]["metadata"]["name"] == name
