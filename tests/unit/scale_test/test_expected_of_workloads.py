"""What a step expects of each workload and of where things are: judged over timelines that are made up."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scale_test.judging import disrupted
from scale_test.judging.assertion import Assertion
from scale_test.judging.assertions import judge
from scale_test.judging.steps import StepRun, outcome
from scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.full_scenario import FULL
from tests.unit.scale_test.told_pods import Told

OLD, NEW = "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.10"
NODE_POOL: dict[str, Any] = {"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass", "name": "full"}}}}


def scenario(**expect: Any) -> Scenario:
    """Two workloads with a PodDisruptionBudget of one of them, and a step in which nothing is done."""
    data = copy.deepcopy(FULL)
    data["workloads"] = {
        "web": {"replicas": 2, "priorityClassName": "low"},
        "batch": {"kind": "Job", "replicas": 1, "priorityClassName": "high"},
    }
    data["manifests"] = data["manifests"][:2]
    data["steps"] = [{"observe": "what happens", "expect": {"within": 60, **expect}}]
    return parse(data, "full.yml").in_environment("eks")


def rolled_out() -> Scenario:
    data = scenario().model_dump(by_alias=True, mode="json", exclude_none=True)
    data["workloads"]["web"]["image"] = OLD
    data["steps"] = [{"rollOut": {"workload": "web", "image": NEW}, "expect": {"within": 60}}]
    return parse(data, "full.yml")


def settled(told: Told) -> Told:
    told.node_pool("full", 0, NODE_POOL)
    told.node("a", 1, zone="us-east-1a", capacity="spot")
    told.node("b", 1, zone="us-east-1b", capacity="on-demand")
    told.pod("web-1", "web", 2, node="a", image=NEW)
    told.pod("web-2", "web", 2, node="b", image=NEW)
    told.pod("batch-1", "batch", 2, node="b", image=NEW, priorityClassName="high")
    return told


def by_name(assertions: list[Assertion]) -> dict[str, tuple[str, bool]]:
    return {one.name.partition(", ")[2]: (one.seen, one.passed) for one in assertions}


def of_disruptions(run: StepRun) -> dict[str, tuple[str, bool]]:
    return by_name(list(disrupted.judge(run)))


def test_a_step_is_at_rest_when_each_workload_is() -> None:
    told = settled(Told(scenario()))
    assert outcome(told.run(0, 5, 6)) == "rest"
    told.pod("web-2", "web", 7, node="b", ready=False, image=NEW)
    assert outcome(told.run(0, 5, 8)) is None
    found = by_name(judge(told.run(0, 5, 8)))
    assert found["pods of web"] == ("2 there, 1 ready, 0 waiting for a node", False)
    assert found["pods of batch"] == ("1 there, 1 ready, 0 waiting for a node", True)


def test_a_pod_too_many_of_one_workload_is_not_made_up_for_by_another_one() -> None:
    told = settled(Told(scenario()))
    told.pod("web-3", "web", 3, node="b", image=NEW)
    told.pod("batch-1", "batch", 3, ready=False)
    assert outcome(told.run(0, 5, 6)) is None


def test_pods_that_have_done_their_work_are_at_rest_also_when_they_are_gone() -> None:
    told = settled(Told(scenario()))
    told.pod("batch-1", "batch", 3, node="b", ready=False, phase="Succeeded")
    assert outcome(told.run(0, 5, 6)) == "rest"
    run = told.run(0, 5, 6)
    del run.replay.pods["batch-1"]
    assert outcome(run) == "rest"


def test_a_roll_out_is_at_rest_when_no_pod_has_the_old_image() -> None:
    told = settled(Told(rolled_out()))
    told.pod("web-3", "web", 3, node="b", image=OLD)
    assert outcome(told.run(0, 5, 6)) is None
    run = told.run(0, 5, 6)
    del run.replay.pods["web-3"]
    assert outcome(run) == "rest"
    run.replay.pods["web-2"].image = OLD
    assert outcome(run) is None
    assert "not all with the image that is wanted" in by_name(judge(run))["pods of web"][0]


def moved(told: Told, pod: str, workload: str, seconds: float) -> None:
    """A pod leaves its node, and another one takes its place a second later."""
    told.pod(pod, workload, seconds, node="a", going=True, image=NEW)
    told.pod(f"{pod}-new", workload, seconds + 1, node="b", image=NEW)


@pytest.mark.parametrize(
    ("expected", "pods", "passed"),
    [
        ("none", [], True),
        ("none", ["web-1"], False),
        (["web"], ["web-1"], True),
        (["web"], ["batch-1"], False),
        (["web"], ["web-1", "batch-1"], False),
        (["web", "batch"], ["web-1", "batch-1"], True),
        (["web"], [], False),
    ],
)
def test_whose_pods_had_to_leave(expected: Any, pods: list[str], passed: bool) -> None:
    told = settled(Told(scenario(disrupted=expected)))
    for pod in pods:
        moved(told, pod, pod.partition("-")[0], 6)
    assert of_disruptions(told.run(0, 5, 9))["disrupted pods"][1] is passed


@pytest.mark.parametrize(
    ("expected", "seen"), [(["web"], ("1 of web", True)), ("none", ("1 of web", False)), (["web", "agent"], None)]
)
def test_a_daemon_set_goes_with_its_nodes_and_counts_only_where_it_is_named(
    expected: Any, seen: tuple[str, bool] | None
) -> None:
    data = scenario(disrupted="none").model_dump(by_alias=True, mode="json", exclude_none=True)
    data["workloads"]["agent"] = {"kind": "DaemonSet"}
    data["steps"][0]["expect"]["disrupted"] = expected
    told = settled(Told(parse(data, "full.yml")))
    told.pod("agent-1", "agent", 2, node="a")
    moved(told, "web-1", "web", 6)
    told.pod("agent-1", "agent", 7, node="a", going=True)
    assert of_disruptions(told.run(0, 5, 9))["disrupted pods"] == (seen or ("1 of web, 1 of agent", True))


def test_pods_that_the_step_itself_takes_away_are_not_disrupted() -> None:
    data = scenario(disrupted="none").model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0] = {"scale": {"web": 1}, "expect": {"within": 60, "disrupted": "none"}}
    told = settled(Told(parse(data, "full.yml")))
    told.pod("web-1", "web", 6, node="a", going=True)
    assert of_disruptions(told.run(0, 5, 9)) == {"disrupted pods": ("none", True)}


def test_pods_that_came_in_the_step_are_disrupted_like_others() -> None:
    told = settled(Told(scenario(disrupted="none")))
    told.pod("web-9", "web", 6, node="a")
    told.pod("web-9", "web", 7, node="a", going=True)
    assert of_disruptions(told.run(0, 5, 9))["disrupted pods"] == ("1 of web", False)


@pytest.mark.parametrize(("web", "batch", "passed"), [(6, 8, True), (8, 6, False), (6, None, False)])
def test_the_order_of_disruptions(web: float, batch: float | None, passed: bool) -> None:
    told = settled(Told(scenario(disruptedInOrder=["web", "batch"])))
    moved(told, "web-1", "web", web)
    if batch is not None:
        moved(told, "batch-1", "batch", batch)
    assert of_disruptions(told.run(0, 5, 12))["order of disruption"][1] is passed


@pytest.mark.parametrize(("both", "passed"), [(False, True), (True, False)])
def test_a_budget_of_pods_is_kept_while_enough_are_ready(both: bool, passed: bool) -> None:
    told = settled(Told(scenario(podDisruptionBudgetsKept=True)))
    moved(told, "web-1", "web", 6)
    if both:
        moved(told, "web-2", "web", 6.5)
    found = of_disruptions(told.run(0, 5, 12))
    assert found == {"PodDisruptionBudget web": (f"{1 - both} at least", passed)}


def test_pods_that_cease_to_serve_break_a_budget_although_they_stay() -> None:
    told = settled(Told(scenario(podDisruptionBudgetsKept=True)))
    for name in ("web-1", "web-2"):
        told.pod(name, "web", 6, node="a", ready=False)
        told.pod(name, "web", 8, node="a")
    found = of_disruptions(told.run(0, 5, 12))
    assert found == {"PodDisruptionBudget web": ("0 at least", False)}


def test_pods_that_are_still_coming_break_no_budget() -> None:
    told = Told(scenario(podDisruptionBudgetsKept=True))
    told.pod("web-1", "web", 6, node="a", ready=False)
    assert of_disruptions(told.run(0, 5, 7)) == {"PodDisruptionBudget web": ("never as many", False)}
    told.pod("web-1", "web", 8, node="a")
    assert of_disruptions(told.run(0, 5, 9)) == {"PodDisruptionBudget web": ("1 at least", True)}


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minAvailable": "100%"}, 2),
        ({"minAvailable": "30%"}, 1),
        ({"maxUnavailable": 0}, 2),
        ({"maxUnavailable": "50%"}, 1),
    ],
)
def test_shares_in_a_budget_of_pods_are_of_the_replicas(spec: dict[str, Any], least: int) -> None:
    data = scenario(podDisruptionBudgetsKept=True).model_dump(by_alias=True, mode="json", exclude_none=True)
    data["manifests"][1]["spec"] = {**spec, "selector": data["manifests"][1]["spec"]["selector"]}
    told = settled(Told(parse(data, "full.yml")))
    (assertion,) = disrupted.judge(told.run(0, 5, 6))
    assert assertion.expected == f"never fewer than {least} of 2 pods ready"


def budgeted(told: Told, *budgets: dict[str, Any]) -> Told:
    told.node_pool("full", 0, NODE_POOL | {"disruption": {"budgets": list(budgets)}})
    for node in ("a", "b", "c"):
        told.node(node, 1)
    return told


@pytest.mark.parametrize(
    ("budget", "passed"),
    [
        ({"nodes": "0"}, False),
        ({"nodes": "1"}, False),
        ({"nodes": "2"}, True),
        ({"nodes": "0", "reasons": ["Empty"]}, True),
        ({"nodes": "0", "reasons": ["Drifted"]}, False),
        ({"nodes": "0", "schedule": "0 10 * * *", "duration": "1h"}, False),
        ({"nodes": "0", "schedule": "0 12 * * *", "duration": "1h"}, True),
    ],
)
def test_budgets_of_nodes_are_kept_by_reason_and_by_schedule(budget: dict[str, Any], passed: bool) -> None:
    told = budgeted(Told(scenario(disruptionBudgetsKept=True)), budget)
    told.node("a", 6, reason="Drifted")
    told.node("b", 7, reason="Drifted")
    assert of_disruptions(told.run(0, 5, 9))["budgets of NodePool full"][1] is passed


def test_the_budget_counts_that_there_was_when_a_node_was_disrupted() -> None:
    told = budgeted(Told(scenario(disruptionBudgetsKept=True)), {"nodes": "1"})
    told.node("a", 6, reason="Drifted")
    told.node_pool("full", 7, NODE_POOL | {"disruption": {"budgets": [{"nodes": "0"}]}})
    assert of_disruptions(told.run(0, 5, 9)) == {"budgets of NodePool full": ("so it was", True)}
    told.node("b", 8, reason="Empty")
    assert of_disruptions(told.run(0, 5, 9)) == {
        "budgets of NodePool full": ("b (Empty): 2 at once of 3, 0 allowed", False)
    }


@pytest.mark.parametrize(
    ("terminating", "shown"),
    [(False, ("b (Drifted): 2 at once of 3, 1 allowed", False)), (True, ("so it was", True))],
)
def test_the_budget_does_not_count_nodes_whose_instance_is_going(terminating: bool, shown: tuple[str, bool]) -> None:
    told = budgeted(Told(scenario(disruptionBudgetsKept=True)), {"nodes": "1"})
    told.node("a", 6, reason="Drifted")
    told.node("a", 7, reason="Drifted", terminating=terminating)
    told.node("b", 8, reason="Drifted")
    assert of_disruptions(told.run(0, 5, 9)) == {"budgets of NodePool full": shown}


@pytest.mark.parametrize(
    ("high", "low", "passed"), [(6, 7, True), (7, 6, False), (6.2, 6, True), (6, None, True), (None, 6, False)]
)
def test_pods_of_one_class_get_their_nodes_before_those_of_another(
    high: float | None, low: float | None, passed: bool
) -> None:
    told = Told(scenario(scheduledBefore={"high": "low"}))
    for name, seconds in (("high", high), ("low", low)):
        told.pod(name, "web", 5, priorityClassName=name)
        if seconds is not None:
            told.pod(name, "web", seconds, node="a", priorityClassName=name)
    assert of_disruptions(told.run(0, 4, 9))["high before low"][1] is passed


def test_who_is_to_be_disrupted_must_have_left_before_rest() -> None:
    told = settled(Told(scenario(disrupted=["web"])))
    assert outcome(told.run(0, 5, 6)) is None
    moved(told, "web-1", "web", 7)
    run = told.run(0, 5, 9)
    del run.replay.pods["web-1"]
    assert outcome(run) == "rest"


def test_whom_the_step_takes_away_itself_is_not_waited_for() -> None:
    data = rolled_out().model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0]["expect"]["disrupted"] = ["web"]
    run = settled(Told(parse(data, "full.yml").in_environment("eks"))).run(0, 5, 6)
    assert (run.changed(), outcome(run)) == (["web"], "rest")


def test_nodes_too_many_of_a_replacement_are_waited_for() -> None:
    """Karpenter may make one for the pods that it evicts beside the one that it made for them before."""
    told = settled(Told(scenario(replacement={"cheaper": False}, nodes=1)))
    run = told.run(0, 5, 6)
    assert outcome(run) is None
    for old in ("a", "b"):
        run.replay.claims[old].gone = run.ended
    assert outcome(run) is None  # nobody is there yet
    for new in ("c", "d"):
        told.node(new, 7)
    run = told.run(0, 5, 8)
    for old in ("a", "b"):
        run.replay.claims[old].gone = run.ended
    assert outcome(run) is None
    run.replay.claims["d"].gone = run.ended
    assert outcome(run) == "rest"
