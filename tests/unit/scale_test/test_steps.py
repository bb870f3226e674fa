"""When a step has come to its end: replays of the recorded timeline, cut off at each moment that matters."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from karpstack.scale_test.judging.assertions import judge
from karpstack.scale_test.judging.replay import Pod, Replay
from karpstack.scale_test.judging.steps import Rest, StepRun, outcome, why_not_ready
from karpstack.scale_test.recording.timeline import Line, parse_time
from karpstack.scale_test.scenarios.scenario import Scenario, parse

SPOT = "eks-spot-consolidation"


def requested(timeline: list[Line], scenario: Scenario, index: int) -> Line:
    return next(
        line
        for line in timeline
        if line["type"] == "STEP" and (line["scenario"], line["step"]) == (scenario.name, index)
    )


def first_end(timeline: list[Line], scenario: Scenario, index: int) -> Line:
    """The line after which a step is found to be at its end."""
    mark = requested(timeline, scenario, index)
    replay = Replay()
    for line in replay.steps(timeline):
        run = StepRun(replay, scenario, index, parse_time(mark["requested"]), replay.time)
        if replay.time >= run.requested and outcome(run) == "rest":
            return line
    raise AssertionError("never at rest")


def cut(timeline: list[Line], scenario: Scenario, index: int, seconds: float) -> StepRun:
    """A step so many seconds after it was asked for."""
    asked = parse_time(requested(timeline, scenario, index)["requested"])
    until = asked + timedelta(seconds=seconds)
    replay = Replay()
    replay.apply(line for line in timeline if parse_time(line["received"]) <= until)
    return StepRun(replay, scenario, index, asked, until)


def test_scaling_up_ends_when_the_last_pod_is_ready(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    """And the node initialized, which may come before or after it."""
    line = first_end(timeline, scenarios["eks-cheapest-fit"], 0)
    assert line["type"] == "MODIFIED"
    new = {condition["type"] for condition in line["object"]["conditions"] if condition["status"] == "True"}
    assert {"Pod": "Ready", "NodeClaim": "Initialized"}[line["kind"]] in new


def test_consolidation_ends_when_the_old_node_is_gone(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    line = first_end(timeline, scenarios[SPOT], 1)
    assert (line["kind"], line["type"]) == ("NodeClaim", "DELETED")


def test_consolidation_waits_for_prices_that_can_come(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    gone = first_end(timeline, scenarios[SPOT], 1)
    prices = [line | {"received": gone["received"]} for line in timeline if line["type"] == "PRICE"]
    late = [line for line in timeline if line["type"] != "PRICE"]
    late[late.index(gone) + 1 : late.index(gone) + 1] = prices
    assert first_end(late, scenarios[SPOT], 1)["type"] == "PRICE"


def test_a_step_under_way_has_no_end(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    assert outcome(cut(timeline, scenarios["eks-cheapest-fit"], 0, 3)) is None


def test_a_step_that_takes_too_long_is_late(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    run = cut(timeline, scenarios["eks-cheapest-fit"], 0, 3)
    after = StepRun(run.replay, run.scenario, 0, run.requested, run.requested + timedelta(seconds=181))
    assert outcome(after) == "late"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("LaunchFailed", " (Launched LaunchFailed: ERROR CODE: AuthorizationFailed over scope '/x')"),
        ("AwaitingReconciliation", "; "),
    ],
)
def test_a_node_that_does_not_come_says_why(
    timeline: list[Line], scenarios: dict[str, Scenario], reason: str, told: str
) -> None:
    run = next(
        run
        for run in (cut(timeline, scenarios["eks-cheapest-fit"], 0, tenths / 10) for tenths in range(1, 300))
        if run.live()
    )
    (claim,) = run.live()
    claim.reached.clear()
    message = "ERROR CODE: AuthorizationFailed\n--------\nover scope '/x'\n"
    claim.conditions["Launched"] = {"type": "Launched", "status": "Unknown", "reason": reason, "message": message}
    late = StepRun(run.replay, run.scenario, 0, run.requested, run.requested + timedelta(seconds=181), "late")
    (time,) = [assertion for assertion in judge(late) if assertion.name.endswith(", time")]
    assert f"{claim.name} not initialized{told}" in f"{time.seen}; "


def test_a_node_class_that_is_not_ready_leaves_no_hope(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    lines = []
    for line in timeline:
        if line.get("kind") == "NodePool" and line["object"]["metadata"]["name"] == "cheapest-fit":
            conditions = [{"type": "Ready", "status": "False"}]
            lines.append(line | {"object": line["object"] | {"conditions": conditions}})
        elif line.get("kind") == "EC2NodeClass" and line["object"]["metadata"]["name"] == "default":
            conditions = [
                {
                    "type": "SubnetsReady",
                    "status": "False",
                    "reason": "SubnetsNotFound",
                    "message": "none match",
                }
            ]
            lines.append(line | {"object": line["object"] | {"conditions": conditions}})
        else:
            lines.append(line)
    run, rest = cut(lines, scenario, 0, 3), Rest()
    assert rest.outcome(run) is None
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=30))) is None
    patient = replace(run, ended=run.ended + timedelta(seconds=31))
    assert rest.outcome(patient) == "hopeless"
    names = [assertion.name for assertion in judge(replace(patient, outcome="hopeless"))]
    assert names == [f"{run.title}, {what}" for what in ("NodePool cheapest-fit", "time")]
    assert why_not_ready(run.replay, scenario, "cheapest-fit") == (
        "EC2NodeClass default: SubnetsReady SubnetsNotFound: none match"
    )


def unjudged(timeline: list[Line], pool: str) -> list[Line]:
    """A timeline of a controller that is starting: nobody says anything of the NodePool."""
    return [
        line | {"object": line["object"] | {"conditions": []}}
        if line.get("kind") == "NodePool" and line["object"]["metadata"]["name"] == pool
        else line
        for line in timeline
    ]


def test_a_controller_that_is_starting_is_given_the_time_of_the_step(
    timeline: list[Line], scenarios: dict[str, Scenario]
) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    run, rest = cut(unjudged(timeline, "cheapest-fit"), scenario, 0, 1), Rest()
    assert rest.outcome(run) is None
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=179))) is None
    late = replace(run, ended=run.requested + timedelta(seconds=181))
    assert rest.outcome(late) == "late"
    node_pool, time = judge(replace(late, outcome="late"))
    assert "the controller has not judged it yet" in node_pool.seen
    assert "follows from its NodePools" in time.seen


def test_patience_with_a_node_pool_counts_from_the_controllers_first_word(
    timeline: list[Line], scenarios: dict[str, Scenario]
) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    run, rest = cut(unjudged(timeline, "cheapest-fit"), scenario, 0, 1), Rest()
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=100))) is None
    pool = next(line for line in reversed(timeline) if line.get("kind") == "NodePool" and "spec" in line["object"])
    refused = {"type": "NodeClassReady", "status": "False", "reason": "SubnetsNotFound", "message": "none match"}
    name = {"metadata": pool["object"]["metadata"] | {"name": "cheapest-fit"}}
    run.replay.apply([pool | {"type": "MODIFIED", "object": pool["object"] | name | {"conditions": [refused]}}])
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=101))) is None
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=131))) is None
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=132))) == "hopeless"


def test_a_node_that_is_going_is_no_rest(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    run = cut(timeline, scenario, 0, requested_seconds(timeline, scenario))
    assert outcome(run) == "rest"
    (claim,) = run.live()
    claim.deleting = run.ended
    assert outcome(run) is None


def test_a_pod_that_is_being_deleted_does_not_serve(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    run = cut(timeline, scenario, 0, requested_seconds(timeline, scenario))
    last = next(
        line for line in reversed(timeline) if line.get("kind") == "Pod" and parse_time(line["received"]) <= run.ended
    )
    going = last["object"]["metadata"] | {"deletionTimestamp": "2026-11-21T10:00:00Z"}
    run.replay.apply([last | {"object": last["object"] | {"metadata": going}}])
    assert run.replay.ready_now(scenario) == 4
    assert outcome(run) is None


def requested_seconds(timeline: list[Line], scenario: Scenario) -> float:
    """Seconds from the request of the first step to its end."""
    mark = requested(timeline, scenario, 0)
    return (parse_time(mark["received"]) - parse_time(mark["requested"])).total_seconds()


def held(timeline: list[Line], scenario: Scenario, hold: float) -> tuple[StepRun, Rest]:
    """The first step, which is at rest now and must stay so, and who tells its end."""
    data = scenario.model_dump(by_alias=True, mode="json", exclude_none=True)
    data["steps"][0]["expect"]["hold"] = hold
    run = cut(timeline, scenario, 0, requested_seconds(timeline, scenario))
    return replace(run, scenario=parse(data, "held")), Rest()


def test_rest_must_last_as_long_as_the_scenario_says(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    run, rest = held(timeline, scenarios["eks-cheapest-fit"], hold=10)
    assert rest.outcome(run) is None
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=9.9))) is None
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=10))) == "rest"
    assert Rest().outcome(replace(run, scenario=scenarios["eks-cheapest-fit"])) == "rest"


def test_what_moves_meanwhile_lets_it_begin_anew(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    run, rest = held(timeline, scenarios["eks-cheapest-fit"], hold=10)
    assert rest.outcome(run) is None
    (claim,) = run.live()
    claim.deleting = run.ended
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=9))) is None
    claim.deleting = None
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=11))) is None
    assert rest.outcome(replace(run, ended=run.ended + timedelta(seconds=21))) == "rest"


def test_rest_that_does_not_last_is_late(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    run, rest = held(timeline, scenarios["eks-cheapest-fit"], hold=175)
    assert rest.outcome(run) is None
    assert rest.outcome(replace(run, ended=run.requested + timedelta(seconds=180.1))) == "late"


def test_a_pod_that_is_left_over_is_no_rest(timeline: list[Line], scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["eks-cheapest-fit"]
    run = cut(timeline, scenario, 0, requested_seconds(timeline, scenario))
    run.replay.pods["lost"] = Pod("lost", scenario.workload.namespace, scenario.name, run.ended, node="gone")
    assert outcome(run) is None
