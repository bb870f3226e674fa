"""What holds nodes and pods when the record ends, and what becomes of them, against what Karpenter's source says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.whatif.made import BEGINS, START, Made
from tests.unit.whatif.told import judged
from whatif import markdown, page, wording
from whatif.answer import Answer, Surviving
from whatif.limits import Limits
from whatif.phases import read

DRIFTED = {"Drifted": "RequirementsDrifted"}
BLOCKED: dict[str, Any] = {"disruptionsAllowed": 0, "desiredHealthy": 2, "expectedPods": 3}
PDB = "Pdb prevents pod evictions (PodDisruptionBudget=[shop/search])"
NO_PLACE = "Not all pods would schedule, shop/web => incompatible with nodepool"


def answer(made: Made, **limits: Any) -> Answer:
    return judged(read(made.lines()), Limits(**limits))


def stayed(made: Made, name: str) -> Surviving:
    return next(one for one in answer(made).surviving if one.node_claim == name)


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
    (cause,) = next(one for one in found.surviving if one.node_claim == "n6").causes
    assert cause.why == "disruption budget"
    assert cause.words == "the budget of NodePool default for Drifted (2 of 7 nodes at once) is used up by n0, n1"
    assert cause.until == (START + timedelta(seconds=150, hours=2)).isoformat()
    assert {one.never for one in found.surviving} == {False}
    assert found.week.used_up == [cause.words]
    assert "are used up when the record ends" in markdown.render(found)
    assert "are used up when the record ends" in page.render(found)


def test_a_budget_of_the_moment_that_is_asked_about_opens_when_the_stacks_schedule_says() -> None:
    asked = [{"nodes": "0", "reasons": ["Drifted"], "schedule": "0 7 * * mon-fri", "duration": "11h"}, {"nodes": "1"}]
    rehearsed = [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "1"}]
    made = Made()
    made.pool(disruption={"budgets": rehearsed, "consolidateAfter": "30s"})
    made.node("waits", conditions=DRIFTED)
    settings = {"at": "2026-11-24T10:00:00+00:00", "pools": {"default": {"budgets": [asked, rehearsed]}}}
    (stays,) = judged(read(made.lines(settings=settings)), Limits()).surviving
    assert [cause.until for cause in stays.causes] == ["2026-11-24T18:00:00+00:00"]
    assert not stays.never


def test_computed_moments_are_as_of_the_moment_that_is_asked_about() -> None:
    plain = answer(seven())
    asked = judged(read(seven().lines(settings={"at": "2026-11-29T03:00:00+00:00"})), Limits())
    later = datetime(2026, 11, 29, 3, tzinfo=UTC) - (START + timedelta(seconds=BEGINS))
    radii = [found.blast_radius for found in (plain, asked) if found.blast_radius]
    before, after = ([(one.deleted_at, one.deleted) for one in radius.held] for radius in radii)
    assert before
    assert after == [(moved(at, later), seconds) for at, seconds in before]
    before_end, after_end = (
        [cause.until for one in found.surviving for cause in one.causes] for found in (plain, asked)
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
    assert kinds == (["disruption budget"] if used_up else ["pace"])


def test_a_node_whose_instance_ends_neither_counts_nor_uses_the_budget() -> None:
    made = seven(draining=1)
    made.node("ends", conditions={"InstanceTerminating": "InstanceTerminating"}, disrupted=140, deleting=150)
    assert [cause.why for cause in stayed(made, "n6").causes] == ["pace"]


def patience(grace: str | None) -> dict[str, Any]:
    return {"terminationGracePeriod": grace} if grace else {}


def one_drifted(grace: str | None = None) -> Made:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "1"}], "consolidateAfter": "30s"})
    made.node("one", conditions=DRIFTED, **patience(grace))
    made.pod("web", "one", doNotDisrupt="true")
    return made


@pytest.mark.parametrize(
    ("grace", "kinds", "never"), [(None, ["do-not-disrupt"], True), ("2h", [], False), ("1h30m0s", [], False)]
)
def test_what_holds_pods_blocks_drift_only_without_a_termination_grace_period(
    grace: str | None, kinds: list[str], never: bool
) -> None:
    found = stayed(one_drifted(grace), "one")
    assert ([cause.why for cause in found.causes], found.never) == (kinds, never)


@pytest.mark.parametrize(
    ("budgets", "why", "never"),
    [
        ([{"disruptionsAllowed": 1, "desiredHealthy": 1, "expectedPods": 2}], None, False),
        ([{"disruptionsAllowed": 0, "desiredHealthy": 1, "expectedPods": 2}], "pod disruption budget", False),
        ([{"disruptionsAllowed": 0, "desiredHealthy": 2, "expectedPods": 2}], "pod disruption budget", True),
        ([{"disruptionsAllowed": 0, "maxUnavailable": 0}], "pod disruption budget", True),
        ([{"disruptionsAllowed": 0, "maxUnavailable": "0%"}], "pod disruption budget", True),
        ([{"disruptionsAllowed": 0, "minAvailable": "100%"}], "pod disruption budget", True),
        ([{"disruptionsAllowed": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"}], None, False),
        ([{"disruptionsAllowed": 1}, {"disruptionsAllowed": 1}], "pod disruption budget", True),
    ],
)
def test_budgets_of_pods(budgets: list[dict[str, Any]], why: str | None, never: bool) -> None:
    made = Made()
    made.pool()
    made.node("one", conditions=DRIFTED)
    made.pod("web", "one")
    for index, budget in enumerate(budgets):
        made.budget(f"budget-{index}", **budget)
    found = stayed(made, "one")
    assert ([cause.why for cause in found.causes], found.never) == ([why] if why else [], never)


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        ({"doNotDisrupt": "true"}, True),
        ({"doNotDisrupt": "10m"}, True),
        ({"doNotDisrupt": "1m"}, False),  # it was scheduled longer ago
        ({"doNotDisrupt": "soon"}, False),  # Karpenter takes no notice of it
        ({}, False),
        ({"doNotDisrupt": "true", "tolerations": [{"operator": "Exists"}]}, False),
        ({"doNotDisrupt": "true", "tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}, False),
        ({"doNotDisrupt": "true", "tolerations": [{"key": "team", "operator": "Exists"}]}, True),
    ],
)
def test_do_not_disrupt(pod: dict[str, Any], held: bool) -> None:
    made = Made()
    made.pool()
    made.node("one", conditions=DRIFTED)
    made.pod("web", "one", **pod)
    assert bool(stayed(made, "one").causes) == held


def test_two_causes_are_both_said() -> None:
    made = seven(draining=2)
    made.node("own", conditions=DRIFTED)  # without a terminationGracePeriod
    made.pod("web", "own", doNotDisrupt="true")
    assert [cause.why for cause in stayed(made, "own").causes] == ["do-not-disrupt", "disruption budget"]


@pytest.mark.parametrize(
    ("seconds", "words", "kinds"),
    [
        (300, NO_PLACE, ["replacement"]),
        (150, NO_PLACE, []),  # Karpenter would have said it again
        (50, NO_PLACE, []),  # older than the change
        (300, f"{NO_PLACE}; all available instance types exceed limits for nodepool (NodePool=default)", ["limits"]),
        (300, f"{NO_PLACE}; node limits have been exhausted for nodepool (NodePool=default)", ["limits"]),
        (300, f"{NO_PLACE}; all available instance types exceed limits for nodepool (NodePool=other)", ["replacement"]),
        (300, NO_PLACE.replace("shop/", "do-not-disrupt-pdb/"), ["replacement"]),  # a name is not what is said
        (300, PDB, ["pod disruption budget"]),  # of a budget that is not recorded
        (50, PDB, []),
    ],
)
def test_events_decide_what_objects_do_not_and_only_since_the_change(
    seconds: float, words: str, kinds: list[str]
) -> None:
    made = Made()
    made.pool()
    made.node("one", conditions=DRIFTED)
    made.event(seconds, "Node", "ip-one", "DisruptionBlocked", words)
    found = stayed(made, "one")
    assert [cause.why for cause in found.causes] == kinds
    assert found.never == (kinds in (["replacement"], ["limits"]))


@pytest.mark.parametrize(
    ("moved", "why"), [({}, "price"), ({"scheduled": 80}, "waiting"), ({"leaving": 80}, "waiting")]
)
def test_what_was_said_of_consolidation_counts_until_a_pod_comes_or_goes(moved: dict[str, Any], why: str) -> None:
    made = Made()
    made.pool()
    made.node("one")
    made.event(50, "Node", "ip-one", "Unconsolidatable", "Can't replace with a cheaper node")
    made.pod("web", "one", **moved)
    assert stayed(made, "one").why == why


@pytest.mark.parametrize(
    ("grace", "pod_grace", "seconds"),
    [("2h", 60, 150 + 7200 - 60), ("2h", None, 150 + 7200 - 30), ("1m", 10, 400), (None, 60, None)],
)
def test_when_a_held_pod_is_deleted_is_computed(
    grace: str | None, pod_grace: int | None, seconds: float | None
) -> None:
    made = Made()
    made.pool()
    made.node("one", disrupted=140, deleting=150, **patience(grace))
    asks: dict[str, Any] = {"terminationGracePeriodSeconds": pod_grace} if pod_grace else {}
    made.pod("job-0", "one", workload="job", doNotDisrupt="true", **asks)
    made.pod("free", "one")
    found = answer(made)
    assert found.blast_radius is not None
    (held,) = found.blast_radius.held
    assert (held.workload, held.pods, held.node_claim, held.earliest) == ("job", 1, "one", False)
    assert held.deleted == (None if seconds is None else seconds - 100)
    assert found.blast_radius.pods_killed == (0 if seconds is None else 1)
    broken = [one.name for one in found.limits if not one.kept]
    assert broken == ["maxNodesNeverReplaced" if seconds is None else "maxPodsKilled"]
    assert answer(made, max_pods_killed=1, max_nodes_never_replaced=1).verdict == "within limits"
    if seconds is None:
        words = "held for as long as karpenter.sh/do-not-disrupt on pod shop/job-0 forbids it"
    else:
        words = "then deleted although karpenter.sh/do-not-disrupt on pod shop/job-0 forbids it"
        assert "1 pod is deleted although a PodDisruptionBudget or do-not-disrupt forbids it, at " in found.sentence
    assert words in markdown.render(found)
    assert words in page.render(found)


def test_pods_of_a_node_that_waits_are_deleted_at_the_earliest_when_it_was_drained() -> None:
    made = seven()
    made.pod("job-6", "n6", workload="late", doNotDisrupt="true", terminationGracePeriodSeconds=60)
    radius = answer(made).blast_radius
    assert radius is not None
    (late,) = (one for one in radius.held if one.workload == "late")
    assert (late.earliest, late.deleted) == (True, 50 + 7200 + 7200 - 60)
    assert radius.pods_killed == 3


def test_drifted_nodes_that_nothing_replaces_break_a_limit_by_default() -> None:
    found = answer(one_drifted())
    assert [one.name for one in found.limits if not one.kept] == ["maxNodesNeverReplaced"]
    assert "1 drifted node not replaced until somebody changes something" in found.sentence
    assert "not replaced yet" not in found.sentence
    assert answer(one_drifted(), max_nodes_never_replaced=1).verdict == "within limits"


@pytest.mark.parametrize(
    ("pod", "node", "kept"),
    [
        ({"doNotDisrupt": "true"}, {}, False),
        ({"doNotDisrupt": "4h"}, {}, True),  # ends by itself
        ({"doNotDisrupt": "true"}, {"terminationGracePeriod": "2h"}, True),
        ({"doNotDisrupt": "true"}, {"gone": 300}, True),
    ],
)
def test_a_deleted_node_that_drains_for_ever_breaks_a_limit(
    pod: dict[str, Any], node: dict[str, Any], kept: bool
) -> None:
    made = Made()
    made.pool()
    made.node("one", deleting=150, **node)
    made.pod("web", "one", **pod)
    found = answer(made)
    assert [one.kept for one in found.limits if one.name == "maxNodesNeverReplaced"] == [kept]
    assert ("1 of them never unless somebody changes something" in found.sentence) != kept


@pytest.mark.parametrize(("drifted", "changed", "kept"), [(50, False, True), (50, True, False), (110, False, False)])
def test_what_was_so_before_the_change_breaks_no_limit(drifted: float, changed: bool, kept: bool) -> None:
    made = Made()
    made.pool()
    if changed:
        made.pool(seconds=110, weight=5)
    made.node("one", conditions=DRIFTED, drifted=drifted)
    made.pod("web", "one", doNotDisrupt="true")
    found = answer(made)
    assert [one.kept for one in found.limits if one.name == "maxNodesNeverReplaced"] == [kept]
    assert ("1 node had drifted before the change and stays" in found.sentence) == kept


def unchanged(*, at_rest: bool) -> Answer:
    """Nothing is changed in a cluster, which is at rest, or drains a node and replaces another all the time."""
    made = Made()
    made.pool()
    made.node("one")
    if not at_rest:
        made.node("drains", disrupted=50, deleting=60, terminationGracePeriod="1h")
        made.pod("job-0", "drains", doNotDisrupt="true")
        made.node("late", conditions=DRIFTED, drifted=40)
        made.pod("job-1", "late", doNotDisrupt="true")
        made.node("goes", disrupted=150, deleting=160, gone=200)
        made.node("comes", 155)
    restless = {} if at_rest else {"gaveUp": "it had not settled after 1800 s"}
    return judged(read(made.lines(base_settled=restless, change_applied={"changes": []})))


@pytest.mark.parametrize("at_rest", [True, False])
def test_a_change_of_nothing_says_nothing(at_rest: bool) -> None:
    found = unchanged(at_rest=at_rest)
    assert found.sentence.startswith("Nothing: the change updates no resource, and ")
    assert ("1 node on the way out, with or without the change" in found.sentence) != at_rest
    assert "only the base was rehearsed, as both sides are the same" in found.sentence
    assert found.verdict == "within limits"
    radius = found.blast_radius
    assert radius is not None
    assert (radius.replaced, radius.made, radius.pods_moved, radius.pods_killed) == ([], [], 0, 0)
    assert found.after == found.before
    assert "cheaper" not in found.sentence
    assert "dearer" not in found.sentence


@pytest.mark.parametrize("disrupted", [140.0, None])
@pytest.mark.parametrize(
    ("pod", "budget", "told"),
    [
        ({"doNotDisrupt": "true"}, None, True),
        ({}, {"maxUnavailable": 0}, True),
        ({}, {"minAvailable": "100%"}, True),
        ({}, {"minAvailable": 1}, False),  # Karpenter plans room for its pods
    ],
)
def test_held_pods_may_need_nodes_that_are_not_in_the_dollars(
    disrupted: float | None, pod: dict[str, Any], budget: dict[str, Any] | None, told: bool
) -> None:
    made = Made()
    made.pool()
    made.node("one", disrupted=disrupted, deleting=150, terminationGracePeriod="2h")
    made.pod("job-0", "one", **pod)
    if budget:
        made.budget("web", **budget)
    said = "1 pod on nodes that are to go may need further nodes later"
    assert any(text.startswith(said) for text in answer(made).unknown) == told


@pytest.mark.parametrize(
    ("pods", "budget", "never", "fate"),
    [
        (
            {"doNotDisrupt": "true"},
            None,
            True,
            "held for as long as karpenter.sh/do-not-disrupt on pod shop/web forbids it",
        ),
        (
            {"doNotDisrupt": "2h"},
            None,
            False,
            "held until 23 November 2026, 11:30 UTC by karpenter.sh/do-not-disrupt on pod shop/web (2h), then evicted",
        ),
        (
            {},
            {"homeless": False},
            False,
            "held for as long as PodDisruptionBudget shop/web forbids it, until more of its pods are ready",
        ),
        # In a cluster at rest, nothing gives the pod a node for which the budget waits.
        (
            {},
            {"homeless": True},
            True,
            "held for as long as PodDisruptionBudget shop/web (1 of its pods has no node) forbids it",
        ),
    ],
)
def test_a_node_drains_for_ever_if_nothing_lets_its_pods_go(
    pods: dict[str, Any], budget: dict[str, bool] | None, never: bool, fate: str
) -> None:
    made = Made()
    made.pool()
    made.node("one", disrupted=140, deleting=150)
    made.pod("web", "one", **pods)
    if budget:
        made.budget("web", **BLOCKED)
    if budget and budget["homeless"]:
        made.pod("web-2", unschedulable=160)
    radius = answer(made).blast_radius
    assert radius is not None
    assert ([one.never for one in radius.replaced], [wording.fate(one) for one in radius.held]) == ([never], [fate])
