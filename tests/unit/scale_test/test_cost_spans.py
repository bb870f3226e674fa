"""The lower bound of the cost over time: by the NodePools in force, the nodes that stand, and the pods to be held."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.karpenter.instance_types import Facts
from karpstack.scale_test.labels import SCENARIO_LABEL
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports.report import make
from karpstack.scale_test.scenarios.environments import Stack
from karpstack.scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.told_choices import ON_DEMAND, SPOT, STORY, TAKEN, Choices, types

LAUNCHED = [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-11-22T20:00:00Z"}]
M5 = types("m5.large")
CHEAP, DEAR = 0.035, 0.096  # USD an hour of an m5.large, spot and on demand


@pytest.fixture
def scenario(shipped: dict[str, Scenario]) -> Scenario:
    return shipped[STORY]


def told() -> Choices:
    """What the controller sells."""
    found = Choices()
    for kind, price in (("spot", CHEAP), ("on-demand", DEAR)):
        found.add("PRICE", instanceType="m5.large", capacityType=kind, zone="us-east-1a", pricePerHour=price)
    found.add("PRICES", cheapest={"spot": {"m5.large": CHEAP}, "on-demand": {"m5.large": DEAR}})
    return found


def node(lines: Choices, name: str, kind: str) -> Line:
    """A node, launched at once."""
    lines.claim(M5, name=name, bought=("m5.large", kind, "us-east-1a"), conditions=LAUNCHED)
    return lines.lines[-1]


def gone(lines: Choices, claim: Line) -> None:
    lines.add("DELETED", kind="NodeClaim", object=claim["object"])


def story(scenario: Scenario, lines: list[Line]) -> dict[str, Any]:
    stack = Stack("told", {"cloud": "aws", "region": "us-east-1"})
    found: dict[str, Any] = make([scenario], lines, stack, facts=Facts.load("aws"))["stories"][0]
    return found


def bounds(scenario: Scenario, lines: list[Line]) -> list[float]:
    """The bound at each of its changes."""
    values = [row[2] for row in story(scenario, lines)["series"]["cost"]]
    return [value for index, value in enumerate(values) if index == 0 or value != values[index - 1]]


def patching(scenario: Scenario, cost_within: float, spec: Line | None = None) -> Scenario:
    """The story with a step that changes its NodePool, after which the cost is held against the bound."""
    data = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    expect = {"within": 60, "costWithin": cost_within}
    data["steps"].append({"patchNodePool": {"name": TAKEN, "spec": spec or {"template": {}}}, "expect": expect})
    return parse(data, "told")


@pytest.mark.parametrize(("factor", "passed"), [(1, False), (1.2, True)])
def test_after_a_patch_the_bound_is_what_the_node_pool_allows_then(
    scenario: Scenario, factor: float, passed: bool
) -> None:
    """A node on spot costs a third of the bound of the NodePool as it was made, and more than that of its own."""
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pod()
    first = node(lines, "first", "on-demand")
    lines.pool(TAKEN, M5, SPOT, type_="MODIFIED")
    lines.add("PRICE", instanceType="m5.large", capacityType="spot", zone="us-east-1b", pricePerHour=CHEAP * 1.1)
    lines.claim(M5, name="second", bought=("m5.large", "spot", "us-east-1b"), conditions=LAUNCHED)
    gone(lines, first)
    lines.add("STEP", scenario=STORY, step=1, requested=lines.clock(), outcome="rest")
    patched, found = patching(scenario, factor), lines.end()
    assert bounds(patched, found) == [0, DEAR, CHEAP]
    (cost,) = [one for one in story(patched, found)["assertions"] if one["name"].endswith(", cost")]
    assert (cost["passed"], cost["seen"]) == (passed, "0.0385 USD an hour, of which 0.0350 is the bound")


def test_a_node_that_stands_from_before_a_patch_costs_no_less_than_the_bound(scenario: Scenario) -> None:
    lines = told()
    lines.pool(TAKEN, M5, SPOT)
    lines.pod()
    first = node(lines, "first", "spot")
    lines.pool(TAKEN, M5, ON_DEMAND, type_="MODIFIED")
    lines.wait(10)
    node(lines, "second", "on-demand")
    gone(lines, first)
    assert bounds(scenario, lines.end()) == [0, CHEAP, DEAR]


def test_a_node_of_a_node_pool_that_is_not_the_storys_costs_no_less_than_the_bound(scenario: Scenario) -> None:
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pool("default", M5, SPOT)
    lines.pod()
    lines.claim(M5, pool="default", bought=("m5.large", "spot", "us-east-1a"), nodeName="n", conditions=LAUNCHED)
    pod = next(line for line in lines.lines if line.get("kind") == "Pod")
    lines.add("MODIFIED", kind="Pod", object=pod["object"] | {"nodeName": "n"})
    assert bounds(scenario, lines.end()) == [0, DEAR, CHEAP]


def test_a_status_that_changes_changes_no_bound(scenario: Scenario) -> None:
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pod()
    lines.pool(TAKEN, M5, ON_DEMAND, type_="MODIFIED", ready="False")
    assert bounds(scenario, lines.end()) == [0, DEAR]


def test_where_a_timeline_does_not_tell_what_a_patch_made_there_is_no_bound(scenario: Scenario) -> None:
    lines = told()
    lines.pod()
    found = lines.end()
    assert story(scenario, found)["cost"]["bound_usd"] > 0  # by the NodePool as the file has it
    # What it may launch stayed.
    assert story(patching(scenario, 1, {"weight": 1}), found)["cost"]["bound_usd"] > 0
    patched = story(patching(scenario, 1), found)["cost"]
    assert (patched["bound_usd"], patched["ratio"]) == (None, None)
    assert patched["no_bound"] == f"the record does not tell what NodePool {TAKEN} may launch after it was changed"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_finished_asks_for_no_room_and_waits_for_nothing(scenario: Scenario, phase: str) -> None:
    """No scheduler takes account of it, while its Job keeps it."""
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pod(cpu=2.0)
    pod = lines.lines[-1]
    lines.wait(9)
    lines.add("MODIFIED", kind="Pod", object=pod["object"] | {"phase": phase})
    lines.wait(1000)
    found = story(scenario, lines.end())
    assert [row[2] for row in found["series"]["cost"]] == [0, DEAR, 0]
    assert found["pending_pod_seconds"] == 10
    assert [row[3] for row in found["series"]["pods"]] == [0, 1, 0]


def test_a_pod_that_has_finished_packs_no_node(scenario: Scenario) -> None:
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pod(cpu=1.0)
    pod = lines.lines[-1]["object"]
    initialized = [*LAUNCHED, {**LAUNCHED[0], "type": "Initialized"}]
    has = {"cpu": "2", "memory": "8Gi"}
    lines.claim(M5, nodeName="n", conditions=initialized, allocatable=has)
    placed = pod | {"nodeName": "n", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    lines.add("MODIFIED", kind="Pod", object=placed)
    lines.wait(9)
    lines.add("MODIFIED", kind="Pod", object=placed | {"phase": "Succeeded"})
    lines.wait(9)
    # Half of the node for half of the time.
    assert story(scenario, lines.end())["packing"]["cpu"] == pytest.approx(0.25, abs=0.02)


def test_pods_of_daemon_sets_are_no_demand(scenario: Scenario) -> None:
    lines = told()
    lines.pool(TAKEN, M5, ON_DEMAND)
    lines.pod(cpu=1.0)
    for number in range(3):
        lines.pod(f"daemon-{number}", cpu=1.9)
        labels = {SCENARIO_LABEL: STORY, "pod-template-generation": "1"}
        lines.lines[-1]["object"]["metadata"]["labels"] = labels
    assert bounds(scenario, lines.end()) == [0, DEAR]
