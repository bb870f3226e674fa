"""Which NodePools a node could have been of, and what the record has against those that it is not of."""

from __future__ import annotations

from typing import Any

import pytest

from karpenter.instance_types import Facts
from scale_test.recording.timeline import Line
from scale_test.reports.report import make
from scale_test.scenarios.environments import Stack
from scale_test.scenarios.scenario import Scenario
from tests.unit.scale_test.told_choices import ARM, ON_DEMAND, STORY, TAKEN, Choices, types

GPU = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
EXISTS = {"key": "nvidia.com/gpu", "operator": "Exists"}
AMD_OR_ARM = [
    {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]}
    for arch in ("amd64", "arm64")
]


@pytest.fixture
def scenario(shipped: dict[str, Scenario]) -> Scenario:
    return shipped[STORY]


def pools(scenario: Scenario, lines: list[Line], claim: int = 0) -> dict[str, dict[str, Any]]:
    outputs = {"cloud": "aws", "region": "us-east-1"}
    made = make([scenario], lines, Stack("told", outputs), facts=Facts.load("aws"))
    return {pool["name"]: pool for pool in made["stories"][0]["nodeclaims"][claim]["why"]["pools"]}


def decided(told: Choices) -> list[Line]:
    """The pod gets a node of its NodePool, and the controller says so."""
    told.claim()
    told.nominated()
    return told.end()


def test_they_are_asked_by_weight_and_then_backwards_by_name(scenario: Scenario) -> None:
    told = Choices()
    for name, weight in (("a", 0), ("cheapest-fits", 0), ("heavy", 10)):
        told.pool(name, weight=weight)
    told.pool()
    told.pod()
    found = pools(scenario, decided(told))
    assert [(name, pool["verdict"]) for name, pool in found.items()] == [
        ("heavy", "unknown"),
        ("cheapest-fits", "unknown"),
        (TAKEN, "taken"),
        ("a", "later"),
    ]


@pytest.mark.parametrize(
    ("heavy", "pod", "verdict", "about"),
    [
        ({"taints": [GPU]}, {}, "taint", ["nvidia.com/gpu=true:NoSchedule"]),
        ({"taints": [GPU]}, {"tolerations": [EXISTS]}, "unknown", []),
        ({"taints": [GPU | {"effect": "PreferNoSchedule"}]}, {}, "unknown", []),
        ({"labels": {"team": "b"}}, {"selector": {"team": "a"}}, "requirements", ["team In [a]"]),
        ({}, {"selector": {"team": "a"}}, "requirements", ["team In [a]"]),
        ({"labels": {"team": "a"}}, {"selector": {"team": "a"}}, "unknown", []),
        ({}, {"selector": {"karpenter.sh/nodepool": TAKEN}}, "requirements", [f"karpenter.sh/nodepool In [{TAKEN}]"]),
        ({}, {"terms": AMD_OR_ARM[:1]}, "requirements", ["kubernetes.io/arch In [amd64]"]),
        # One term is enough.
        ({}, {"terms": AMD_OR_ARM}, "unknown", []),
        # Of a recorder of 0.1: taints cannot be judged, node selectors can.
        ({"taints": [GPU]}, {"old": True}, "not recorded", []),
        ({"taints": [GPU]}, {"old": True, "selector": {"team": "a"}}, "requirements", ["team In [a]"]),
        ({}, {"old": True}, "unknown", []),
        ({"ready": "False"}, {}, "not ready", []),
        ({"going": True}, {}, "going", []),
        ({"replicas": 3}, {}, "static", []),
    ],
)
def test_what_is_against_one_whose_turn_came_first(
    scenario: Scenario, heavy: dict[str, Any], pod: dict[str, Any], verdict: str, about: list[str]
) -> None:
    told = Choices()
    told.pool("heavy", ARM, weight=10, **heavy)
    told.pool()
    told.pod(**pod)
    found = pools(scenario, decided(told))["heavy"]
    assert (found["weight"], found["verdict"], found["about"]) == (10, verdict, about)


def test_one_that_is_gone_was_not_there_and_one_is_judged_as_it_was(scenario: Scenario) -> None:
    told = Choices()
    told.pool("gone", weight=10)
    told.pool("gone", weight=10, type_="DELETED")
    told.pool("mended", weight=20, taints=[GPU])
    told.pool()
    told.pod()
    lines = decided(told)
    told.pool("mended", weight=20, type_="MODIFIED")
    told.pool("late", weight=30)
    found = pools(scenario, lines)
    assert {name: pool["verdict"] for name, pool in found.items()} == {"mended": "taint", TAKEN: "taken"}


def test_what_keeps_only_some_of_the_pods_off_is_no_reason(scenario: Scenario) -> None:
    """It is not known for which of them the node was made."""
    told = Choices()
    told.pool("heavy", weight=10, taints=[GPU])
    told.pool()
    told.pod()
    told.pod("tolerant", tolerations=[EXISTS])
    told.claim()
    told.nominated()
    told.nominated("tolerant")
    assert pools(scenario, told.end())["heavy"]["verdict"] == "unknown"


def test_without_a_pod_nothing_is_judged(scenario: Scenario) -> None:
    told = Choices()
    told.pool("heavy", weight=10, taints=[GPU])
    told.pool()
    told.claim()
    assert pools(scenario, told.end())["heavy"]["verdict"] == "not recorded"


@pytest.mark.parametrize(
    ("limits", "there", "expected"),
    [
        ({"cpu": "8"}, 4, ("cpu", 8, 8, False)),
        # A node of the smallest instance type of this NodePool has 4 CPUs.
        ({"cpu": "10"}, 4, ("cpu", 10, 8, False)),
        ({"cpu": "12"}, 4, None),
        ({"memory": "32Gi"}, 4, ("memory", 32 * 2**30, 32 * 2**30, False)),
        ({"nodes": "4"}, 4, ("nodes", 4, 4, False)),
        ({"nodes": "5"}, 4, None),
        (None, 4, None),
    ],
)
def test_a_limit_that_leaves_no_room(
    scenario: Scenario, limits: dict[str, str] | None, there: int, expected: tuple[Any, ...] | None
) -> None:
    told = Choices()
    large = {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}
    more: dict[str, Any] = {"limits": limits} if limits else {}
    told.pool("heavy", large, weight=10, **more)
    told.pool()
    told.pod()
    for number in range(there):
        told.claim(name=f"heavy-{number}", pool="heavy")
    found = pools(scenario, decided(told))["heavy"]
    if expected is None:
        assert (found["verdict"], found["limit"]) == ("unknown", None)
    else:
        limit = found["limit"]
        assert found["verdict"] == "limit"
        assert (limit["resource"], limit["limit"], limit["used"], limit["at_once"]) == expected


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


def test_bare_metal_was_not_asked_for_where_there_were_others(scenario: Scenario) -> None:
    """AWS's provider leaves it out, so that a refusal says nothing of it."""
    for names, verdict in ((("m5.large", "m5.metal"), "unknown"), (("m5.metal",), "short")):
        told = Choices()
        told.node_class("us-east-1a")
        told.pool("heavy", types(*names), ON_DEMAND, weight=10)
        told.pool(TAKEN, types("m6g.large"))
        told.pod()
        told.claim(types(*names), ON_DEMAND, name="refused", pool="heavy", bought=None)
        told.event("NodeClaim", "refused", "InsufficientCapacityError", "no capacity")
        told.claim(types("m6g.large"))
        told.nominated()
        assert pools(scenario, told.end())["heavy"]["verdict"] == verdict


def chosen(told: Choices, name: str, *, back: bool = False) -> None:
    """The controller chooses a node for a disruption, or takes that back."""
    claim = next(line["object"] for line in told.lines if _is(line, name))
    condition = {"type": "DisruptionReason", "status": "True", "lastTransitionTime": told.clock(), "reason": "Drifted"}
    told.add("MODIFIED", kind="NodeClaim", object=claim | {"conditions": [] if back else [condition]})


@pytest.mark.parametrize(("turns", "verdict"), [(1, "unknown"), (2, "limit"), (3, "unknown")])
def test_a_node_that_is_chosen_for_a_disruption_takes_no_room(scenario: Scenario, turns: int, verdict: str) -> None:
    """Karpenter reckons limits without it, until it takes the disruption back."""
    told = Choices()
    told.pool("heavy", weight=10, limits={"cpu": "2"})
    told.pool()
    told.pod()
    told.claim(name="heavy-1", pool="heavy")
    for turn in range(turns):
        chosen(told, "heavy-1", back=bool(turn % 2))
    told.claim()
    told.nominated()
    chosen(told, "heavy-1", back=not turns % 2)  # what comes later changes nothing
    assert pools(scenario, told.end())["heavy"]["verdict"] == verdict


M5, M6 = types("m5.large"), types("m6g.large")


@pytest.mark.parametrize(
    ("zones", "verdict", "about"),
    [(("us-east-1a", "us-east-1b"), "short", ["m5.large"]), (("us-east-1a",), "unknown", [])],
)
def test_a_pool_of_which_all_is_unavailable_by_the_metrics_is_short(
    scenario: Scenario, zones: tuple[str, ...], verdict: str, about: list[str]
) -> None:
    told = Choices()
    told.node_class("us-east-1a", "us-east-1b")
    told.pool("heavy", M5, ON_DEMAND, weight=10)
    told.pool(TAKEN, M6)
    told.pod()
    for zone in zones:
        told.unavailable("m5.large", zone=zone)
    found = pools(scenario, decided(told))["heavy"]
    assert (found["verdict"], found["about"]) == (verdict, about)


@pytest.mark.parametrize(
    ("wanted", "seconds", "verdict"),
    [
        # What it asked for is all that the NodePool allows.
        ((M5, ON_DEMAND), 5, "short"),
        # It was refused, so its limit had room.
        ((M5, {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}), 5, "unknown"),
        # It may have asked for spot alone, so that nothing is known of the other.
        ((M5,), 5, "unknown"),
        # The controller has forgotten it.
        ((M5, ON_DEMAND), 200, "unknown"),
    ],
)
def test_a_pool_whose_nodeclaim_was_refused_was_not_at_its_limit(
    scenario: Scenario, wanted: tuple[Line, ...], seconds: float, verdict: str
) -> None:
    told = Choices()
    told.node_class("us-east-1a", "us-east-1b")
    told.pool("heavy", M5, ON_DEMAND, weight=10, limits={"nodes": "1"})
    told.pool(TAKEN, M6)
    told.pod()
    told.claim(*wanted, name="refused", pool="heavy", bought=None)
    told.event("NodeClaim", "refused", "InsufficientCapacityError", "no m5.large")
    told.wait(seconds)
    told.claim(M6)
    told.nominated()
    assert pools(scenario, told.end())["heavy"]["verdict"] == verdict


def _is(line: Line, name: str) -> bool:
    return line.get("kind") == "NodeClaim" and line["object"]["metadata"]["name"] == name
