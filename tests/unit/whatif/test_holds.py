"""What holds nodes and pods when the record ends, and what becomes of them, against what Karpenter's source says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karpstack.whatif import markdown, page
from karpstack.whatif.answer import Answer, RemainingNode
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import read
from tests.unit.whatif.made import BEGINS, START, Made
from tests.unit.whatif.told import judged

DRIFTED = {"Drifted": "RequirementsDrifted"}
BLOCKED: dict[str, Any] = {"disruptionsAllowed": 0, "desiredHealthy": 2, "expectedPods": 3}
PDB = "Pdb prevents pod evictions (PodDisruptionBudget=[shop/search])"


def answer(made: Made) -> Answer:
    return judged(read(made.lines()))


def stayed(made: Made, name: str) -> RemainingNode:
    return next(one for one in answer(made).remaining if one.node_claim == name)


def seven(nodes: str = "20%", draining: int = 2, **asks: Any) -> Made:
    """Seven drifted nodes of a NodePool with a budget, so many of which drain and are held by do-not-disrupt."""
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": nodes}], "consolidateAfter": "30s"})
    for index in range(7):
        going: dict[str, Any] = {"disrupted": 140.0 + index, "deleting": 150.0 + index} if index < draining else {}
        made.node(f"n{index}", conditions=DRIFTED, terminationGracePeriod="2h", **going, **asks)
    for index in range(draining):
        made.pod(f"job-{index}", f"n{index}", workload="job", doNotDisrupt="true", terminationGracePeriodSeconds=60)
    return made


def test_nodes_that_wait_for_a_used_up_budget_wait_for_nothing_else() -> None:
    made = seven()
    made.pod("search-0", "n6", workload="search")
    made.budget("search", **BLOCKED)
    # Consolidation says this of a drifted node, too; with a terminationGracePeriod, drift does not ask for it.
    made.event(380, "Node", "ip-n6", "DisruptionBlocked", PDB)
    found = answer(made)
    (cause,) = next(one for one in found.remaining if one.node_claim == "n6").causes
    assert cause.why == "disruption budget"
    assert (
        cause.details
        == "the budget of NodePool default for Drifted (2 at once, of 7 nodes at the end) is used up by n0, n1"
    )
    assert cause.until == (START + timedelta(seconds=150, hours=2)).isoformat()
    assert {one.never for one in found.remaining} == {False}
    assert found.week.used_up == [cause.details]
    assert "are used up when the record ends" in markdown.render(found)
    assert "are used up when the record ends" in page.render(found)


def test_a_budget_of_the_moment_that_is_asked_about_opens_when_the_stacks_schedule_says() -> None:
    asked = [{"nodes": "0", "reasons": ["Drifted"], "schedule": "0 7 * * mon-fri", "duration": "11h"}, {"nodes": "1"}]
    rehearsed = [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "1"}]
    made = Made()
    made.pool(disruption={"budgets": rehearsed, "consolidateAfter": "30s"})
    made.node("waits", conditions=DRIFTED)
    settings = {"at": "2026-11-24T10:00:00+00:00", "pools": {"default": {"budgets": [asked, rehearsed]}}}
    (stays,) = judged(read(made.lines(settings=settings)), Limits()).remaining
    assert [cause.until for cause in stays.causes] == ["2026-11-24T18:00:00+00:00"]
    assert not stays.never


@pytest.mark.parametrize(
    ("budget", "never"),
    [
        ({}, True),
        ({"schedule": "@daily", "duration": "24h"}, True),
        ({"schedule": "0 0 * * *", "duration": "24h", "reasons": ["Drifted"]}, True),
        ({"schedule": "0 8 * * *", "duration": "10h"}, False),
        ({"schedule": "@monthly", "duration": "600h"}, False),
    ],
)
def test_a_schedule_that_never_ends_is_a_budget_that_never_opens(budget: dict[str, Any], never: bool) -> None:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "0", **budget}, {"nodes": "1"}]})
    made.node("waits", conditions=DRIFTED)
    found = answer(made)
    (stays,) = found.remaining
    assert ([cause.why for cause in stays.causes], stays.never) == (["disruption budget"], never)
    assert next(one.within_limit for one in found.limits if one.name == "maxNodesNeverReplaced") != never


def test_computed_moments_are_as_of_the_moment_that_is_asked_about() -> None:
    plain = answer(seven())
    asked = judged(read(seven().lines(settings={"at": "2026-11-29T03:00:00+00:00"})), Limits())
    later = datetime(2026, 11, 29, 3, tzinfo=UTC) - (START + timedelta(seconds=BEGINS))
    radii = [found.blast_radius for found in (plain, asked) if found.blast_radius]
    before, after = ([(one.deleted_at, one.deleted) for one in radius.blocked_evictions] for radius in radii)
    assert before
    assert after == [(moved(at, later), seconds) for at, seconds in before]
    before_end, after_end = (
        [cause.until for one in found.remaining for cause in one.causes] for found in (plain, asked)
    )
    assert set(before_end) == {(START + timedelta(seconds=150, hours=2)).isoformat()}
    assert after_end == [moved(until, later) for until in before_end]


def moved(moment: str | None, later: timedelta) -> str:
    assert moment
    return (datetime.fromisoformat(moment) + later).isoformat()


@pytest.mark.parametrize(
    ("nodes", "draining", "used_up"),
    [("20%", 1, False), ("20%", 2, True), ("15%", 2, True), ("2", 2, True), ("3", 2, False), ("100%", 2, False)],
)
def test_a_share_of_nodes_is_rounded_up_and_nodes_that_drain_count(nodes: str, draining: int, used_up: bool) -> None:
    kinds = [cause.why for cause in stayed(seven(nodes, draining), "n6").causes]
    assert kinds == (["disruption budget"] if used_up else ["not replaced yet"])


def test_a_node_whose_instance_ends_neither_counts_nor_uses_the_budget() -> None:
    made = seven(draining=1)
    made.node("ends", conditions={"InstanceTerminating": "InstanceTerminating"}, disrupted=140, deleting=150)
    assert [cause.why for cause in stayed(made, "n6").causes] == ["not replaced yet"]


def test_two_causes_are_both_said() -> None:
    made = seven(draining=2)
    made.node("own", conditions=DRIFTED)  # without a terminationGracePeriod
    made.pod("web", "own", doNotDisrupt="true")
    assert [cause.why for cause in stayed(made, "own").causes] == ["do-not-disrupt", "disruption budget"]


def test_pods_of_a_node_that_waits_are_deleted_at_the_earliest_when_it_was_drained() -> None:
    made = seven()
    made.pod("job-6", "n6", workload="late", doNotDisrupt="true", terminationGracePeriodSeconds=60)
    radius = answer(made).blast_radius
    assert radius is not None
    (late,) = (one for one in radius.blocked_evictions if one.workload == "late")
    assert (late.earliest, late.deleted) == (True, 50 + 7200 + 7200 - 60)
    assert radius.pods_killed == 3


def test_a_pod_that_is_evicted_before_the_patience_of_its_node_ends_is_named() -> None:
    made = seven(draining=1, nodes="1")
    made.pod("index-0", "n0", workload="index", doNotDisrupt="30m")
    plain = answer(made)
    assert plain.blast_radius is not None
    assert plain.blast_radius.pods_killed == 1
    ends = (START + timedelta(seconds=12, minutes=30)).isoformat()
    held = {one.workload: (one.until, one.deleted_at is None) for one in plain.blast_radius.blocked_evictions}
    assert held == {"job": (None, False), "index": (ends, True)}
    assert "held until 23 November 2026, 10:00 UTC" in markdown.render(plain)


def test_a_budget_is_free_when_the_last_hold_of_a_draining_node_ends() -> None:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "1"}]})
    made.node("goes", conditions=DRIFTED, terminationGracePeriod="2h", disrupted=140, deleting=150)
    made.node("waits", conditions=DRIFTED, terminationGracePeriod="2h")
    made.pod("index-0", "goes", workload="index", doNotDisrupt="30m")
    (cause,) = stayed(made, "waits").causes
    assert cause.until == (START + timedelta(seconds=12, minutes=30)).isoformat()


@pytest.mark.parametrize(("asks", "killed", "never"), [({"terminationGracePeriod": "2h"}, 1, False), ({}, 0, True)])
def test_a_budget_that_never_allows_holds_a_pod_when_its_do_not_disrupt_is_over(
    asks: dict[str, Any], killed: int, never: bool
) -> None:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "1"}]})
    made.node("kept", conditions=DRIFTED, **asks)
    made.pod("index-0", "kept", workload="index", doNotDisrupt="30m")
    made.budget("index", maxUnavailable=0)
    found = answer(made)
    assert found.blast_radius is not None
    assert found.blast_radius.pods_killed == killed
    assert [one.never for one in found.remaining] == [never]


@pytest.mark.parametrize(("lasting", "killed"), [("true", 1), ("72h", 1), ("20m", 0)])
def test_a_node_that_waits_for_its_budget_has_patience_with_its_pods(lasting: str, killed: int) -> None:
    made = Made()
    made.pool(
        disruption={"budgets": [{"nodes": "0", "schedule": "0 8 * * mon-fri", "duration": "10h"}, {"nodes": "1"}]}
    )
    made.node("waits", conditions=DRIFTED, terminationGracePeriod="30m")
    made.pod("trainer-0", "waits", workload="trainer", doNotDisrupt=lasting, terminationGracePeriodSeconds=30)
    radius = answer(made).blast_radius
    assert radius is not None
    assert radius.pods_killed == killed


@pytest.mark.parametrize(
    ("kept", "budget", "killed"),
    [
        ({"doNotDisrupt": "1.5h"}, None, 1),
        ({}, {"maxUnavailable": 0}, 1),
        ({}, {"maxUnavailable": 1}, 0),
        ({}, None, 0),
    ],
)
def test_a_pod_that_is_preempted_although_something_keeps_it_is_named(
    kept: dict[str, Any], budget: dict[str, Any] | None, killed: int
) -> None:
    made = Made()
    made.pool()
    made.node("full")
    made.pod("legacy-0", "full", workload="legacy", leaving=150, disruption="PreemptionByScheduler", **kept)
    if budget:
        made.budget("legacy", **budget)
    found = answer(made)
    radius = found.blast_radius
    assert radius is not None
    assert (radius.pods_preempted, radius.pods_killed) == (1, killed)
    assert ("by pods of a higher priority although" in markdown.render(found)) == bool(killed)
