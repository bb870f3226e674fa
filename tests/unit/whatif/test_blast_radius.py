"""What a change sets in motion: nodes in their order, what holds them up, pods that move and pods without a home."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.whatif.made import ENDS, Made, at
from tests.unit.whatif.told import judged, told
from whatif import wording
from whatif.answer import BlastRadius
from whatif.phases import read


def radius(made: Made, **phases: dict[str, Any]) -> BlastRadius:
    found = judged(read(made.lines(**phases))).blast_radius
    assert found is not None
    return found


def recorded(story: str, step: int) -> BlastRadius:
    found = judged(told(story, step)).blast_radius
    assert found is not None
    return found


@pytest.fixture
def made() -> Made:
    """A cluster of three nodes with a pod each."""
    made = Made()
    made.pool()
    return made


def test_drift_takes_one_node_after_another() -> None:
    found = recorded("eks.drift", 1)
    assert [(one.order, one.node_claim, one.reason, one.words) for one in found.replaced] == [
        (1, "drift-2d877", "Drifted", "NodePoolDrifted"),
        (2, "drift-vwt6q", "Drifted", "NodePoolDrifted"),
        (3, "drift-db9ft", "Drifted", "NodePoolDrifted"),
    ]
    assert [(one.decided, one.gone) for one in found.replaced] == [
        (13.111, 32.204),
        (35.554, 53.305),
        (59.123, 77.869),
    ]
    assert all(one.drained and one.decided < one.drained < (one.gone or 0) for one in found.replaced)
    assert (found.first, found.last, found.at_once, found.pods_moved) == (13.111, 77.869, 1, 3)
    assert [one.reason for one in found.made] == ["Drifted"] * 3


def test_a_drift_of_the_image_says_so_and_keeps_to_the_budget() -> None:
    found = recorded("eks.image-drift", 2)
    assert {one.words for one in found.replaced} == {"AMIDrift"}
    assert (len(found.replaced), found.at_once) == (50, 4)


def test_consolidation_says_what_it_wanted() -> None:
    found = recorded("eks.consolidation-policies", 1)
    assert [one.reason for one in found.replaced] == ["Underutilized"]
    assert found.replaced[0].words == (
        "Consolidation candidate: replace: [ip-10-0-0-54.ec2.internal] -> [1 replacement] (savings: $0.03)"
    )
    assert found.pods_moved == 2


def test_an_interruption_is_no_work_of_the_change_but_is_told() -> None:
    assert [one.reason for one in recorded("eks.eks-interruption", 1).replaced] == ["Interrupted"]


def test_a_node_that_was_going_before_is_not_the_changes_work(made: Made) -> None:
    made.node("one", disrupted=80, deleting=90, gone=150)
    made.node("two", disrupted=150, deleting=160, gone=170)
    assert [one.node_claim for one in radius(made).replaced] == ["two"]


def test_a_node_that_is_not_gone_is_said(made: Made) -> None:
    made.node("one", disrupted=150, deleting=160, gone=ENDS + 50)
    made.node("two", disrupted=150, deleting=160, gone=180)
    answer = judged(read(made.lines()))
    found = answer.blast_radius
    assert found is not None
    assert (found.replaced[0].gone, found.last) == (None, None)
    assert "2 of 2 nodes go, 1 of them not gone when the record ends" in answer.sentence


def test_a_node_of_a_pool_that_was_deleted_says_so(made: Made) -> None:
    made.pool("old")
    made.node("one", pool="old", deleting=150, gone=160)
    made.add(140, "DELETED", kind="NodePool", object={"metadata": {"name": "old"}, "conditions": []})
    found = radius(made).replaced[0]
    assert (found.reason, found.words) == (None, "its NodePool old was deleted")


def test_how_many_go_at_once(made: Made) -> None:
    for index, (disrupted, gone) in enumerate(((110, 200), (150, 210), (205, 260), (300, 350))):
        made.node(f"n{index}", disrupted=disrupted, deleting=disrupted + 1, gone=gone)
    assert radius(made).at_once == 2


def test_a_node_whose_instance_is_ending_is_not_on_its_way_out_for_budgets(made: Made) -> None:
    made.node("first", disrupted=110, deleting=111, terminating=150, gone=200)
    made.node("second", disrupted=160, deleting=161, gone=210)
    assert radius(made).at_once == 1


def test_a_pod_disruption_budget_that_blocked_before_is_named(made: Made) -> None:
    made.node("one", disrupted=250, deleting=255, gone=300)
    made.event(
        120, "NodeClaim", "one", "DisruptionBlocked", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"
    )
    made.event(
        121, "Node", "ip-one", "DisruptionBlocked", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"
    )
    held = radius(made).replaced[0].held_up
    assert [(one.pod_disruption_budgets, one.first, one.until) for one in held] == [(["shop/web"], 20.0, 21.0)]


def test_what_was_said_before_the_decision_has_its_times_and_no_duration(made: Made) -> None:
    words = "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])"
    made.node("one", disrupted=250, deleting=255, gone=300)
    made.event(120, "Node", "ip-one", "DisruptionBlocked", words)
    assert wording.held(radius(made).replaced[0].held_up[0]) == f"{words}, said after 20.0 s"
    made.event(240, "Node", "ip-one", "DisruptionBlocked", words)
    assert wording.held(radius(made).replaced[0].held_up[0]) == f"{words}, said after 20.0 s and last after 2 min 20 s"


def test_pods_that_wait_to_be_evicted_hold_their_node_up(made: Made) -> None:
    made.node("one", disrupted=150, deleting=160, gone=300)
    made.pod("web-1", "one", leaving=161)
    made.pod("db-0", "one", workload="db", leaving=280)
    made.pod("db-1", "one", workload="db", leaving=200)
    made.event(162, "Node", "ip-one", "FailedDraining", "Failed to drain node, 2 pods are waiting to be evicted")
    made.event(
        180, "Node", "ip-one", "FailedDraining", "Failed to drain node, evicting pod violates a PDB (Pod=shop/db-0)"
    )
    held = radius(made).replaced[0].held_up
    assert [(one.workload, one.pods, one.first, one.until) for one in held] == [("shop/db", 2, 60.0, 180.0)]
    assert held[0].words == "Failed to drain node, evicting pod violates a PDB (Pod=shop/db-0)"


def test_a_recorded_pod_that_must_not_be_disrupted_holds_its_node_up() -> None:
    held = recorded("eks.do-not-disrupt", 1).replaced[0].held_up
    assert [(one.workload, one.words) for one in held] == [
        ("do-not-disrupt/batch", "Failed to drain node, 1 pods are waiting to be evicted")
    ]


def test_pods_of_daemon_sets_do_not_move(made: Made) -> None:
    made.node("one", disrupted=150, deleting=160, gone=200)
    made.pod("web-1", "one", leaving=161)
    made.pod("logs-1", "one", workload="logs", leaving=190, labels={"pod-template-generation": "1"})
    made.pod("web-2", "two", leaving=161)  # its node stays, so somebody else took it away
    made.node("two")
    found = radius(made)
    assert (found.pods_moved, found.replaced[0].pods, found.replaced[0].held_up) == (1, 1, [])


EVICTED, PREEMPTED = "EvictionByEvictionAPI", "PreemptionByScheduler"


def test_every_departure_counts_also_the_second_of_a_pod_and_from_a_new_node(made: Made) -> None:
    made.node("old", disrupted=150, deleting=160, gone=200)
    made.node("new", 170, disrupted=250, deleting=260, gone=300)
    made.pod("web-1", "old", leaving=161, disruption=EVICTED)
    made.pod("web-2", "new", 162, scheduled=175, leaving=261, disruption=EVICTED)
    made.pod("web-3", "new", 262, scheduled=265, leaving=290)  # no condition, but its node goes
    found = radius(made)
    assert (found.pods_moved, found.pods_preempted, found.replaced[0].pods) == (3, 0, 1)


def test_preempted_pods_move_too_and_are_said_apart(made: Made) -> None:
    made.node("one")
    made.pod("web-1", "one", leaving=150, disruption=PREEMPTED)
    made.pod("web-2", "one", leaving=150, disruption=EVICTED)
    found = radius(made)
    assert (found.pods_moved, found.pods_preempted, found.replaced) == (2, 1, [])
    assert wording.moved(found) == "2, of which 1 preempted"


def test_what_left_before_the_change_or_after_it_or_was_scaled_did_not_move(made: Made) -> None:
    made.node("one")
    made.pod("web-1", "one", leaving=80, disruption=EVICTED)
    made.pod("web-2", "one", leaving=ENDS + 5, disruption=EVICTED)
    made.pod("web-3", "one", leaving=150)
    made.pod("web-4", None, leaving=150, disruption=PREEMPTED)
    made.pod("logs-1", "one", leaving=150, disruption=EVICTED, labels={"pod-template-generation": "1"})
    assert radius(made).pods_moved == 0


def test_of_nodes_with_the_same_name_each_has_its_own_pods(made: Made) -> None:
    made.node("one", disrupted=150, deleting=160, gone=200)
    made.add(
        210,
        "ADDED",
        kind="NodeClaim",
        object={
            "metadata": {"name": "two", "labels": {"karpenter.sh/nodepool": "default"}, "creationTimestamp": at(210)},
            "conditions": [],
            "nodeName": "ip-one",
        },
    )
    made.pod("web-1", "one", leaving=161)
    made.pod("web-2", "one", 205, scheduled=220, leaving=250)  # its node stays
    assert (radius(made).pods_moved, radius(made).replaced[0].pods) == (1, 1)


def test_what_pulumi_changed_is_listed(made: Made) -> None:
    changes = [{"op": "update", "type": "kubernetes:karpenter.sh/v1:NodePool", "name": "default", "more": 1}]
    applied = radius(made, change_applied={"changes": changes}).applied
    assert applied is not None
    assert [(one.op, one.name) for one in applied] == [("update", "default")]
    assert radius(made).applied is None


def test_pods_for_which_there_was_no_node() -> None:
    found = recorded("eks.eks-limit", 0)
    assert (found.without_home, found.unschedulable, found.without_home_at_once) == (80, 29, 80)
    assert found.longest_without_home == pytest.approx(30.5, abs=0.1)
    assert [(one.namespace, one.workload, one.pods, one.at_the_end) for one in found.homeless] == [
        ("limit", "inflate", 80, 29)
    ]
    assert (found.homeless[0].words or "").startswith(
        "Failed to schedule pod, all available instance types exceed limits"
    )


def test_a_pod_that_only_waited_for_the_scheduler_had_a_home(made: Made) -> None:
    made.node("one")
    made.pod("web-1", "one", 150, scheduled=170)
    assert radius(made).without_home == 0


def test_for_how_long_pods_had_no_home(made: Made) -> None:
    made.node("one")
    made.pod("web-1", "one", 150, unschedulable=151, scheduled=170)
    made.pod("web-2", "one", 160, unschedulable=161, scheduled=165)
    made.pod("db-0", None, 200, workload="db", unschedulable=201, leaving=230)
    made.pod("db-1", None, 380, workload="db", unschedulable=381)
    found = radius(made)
    assert [(one.workload, one.pods, one.longest, one.pod_seconds, one.at_the_end) for one in found.homeless] == [
        ("db", 2, 30.0, 50.0, 1),
        ("web", 2, 20.0, 25.0, 0),
    ]
    assert (found.without_home, found.without_home_at_once, found.longest_without_home) == (4, 2, 30.0)


def test_pods_that_had_no_node_before_are_not_the_changes_fault(made: Made) -> None:
    made.pod("web-1", None, 5, unschedulable=6)
    made.pod("web-2", None, 150, unschedulable=151)
    found = radius(made)
    assert (found.homeless[0].before, found.homeless[0].at_the_end, found.unschedulable) == (1, 2, 1)
    # The one that had none before is not counted, also not its time.
    assert (found.without_home, found.homeless[0].pods, found.homeless[0].longest) == (1, 1, ENDS - 150)


def test_a_change_that_makes_old_pods_schedulable_is_no_increase(made: Made) -> None:
    made.node("one")
    made.pod("web-1", "one", 5, unschedulable=6, scheduled=200)
    found = radius(made)
    assert (found.unschedulable, found.without_home) == (0, 0)
    assert [(one.before, one.at_the_end) for one in found.homeless] == [(1, 0)]


def test_a_node_of_a_pool_that_is_being_deleted_says_so(made: Made) -> None:
    made.node("held", deleting=120)
    made.pod("web-0", "held")
    made.budget("web")
    made.pool(seconds=120, deleted=True)
    answer = judged(read(made.lines()))
    assert answer.blast_radius is not None
    assert [one.words for one in answer.blast_radius.replaced] == ["its NodePool default was deleted"]
    said = "NodePool default cannot be deleted before the last node is gone, and `pulumi up` waits for that"
    assert said in answer.sentence


@pytest.mark.parametrize("asks", [{"terminationGracePeriod": "1h"}, {}])
def test_what_only_consolidation_waits_for_held_up_no_drift(made: Made, asks: dict[str, Any]) -> None:
    made.node("one", disrupted=150, gone=200, **asks)
    words = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web-0)'
    made.event(120, "Node", "ip-one", "DisruptionBlocked", words)
    (one,) = radius(made).replaced
    assert [held.words for held in one.held_up] == ([] if asks else [words])


def test_budgets_that_select_a_pod_that_waited_are_named(made: Made) -> None:
    made.node("one", disrupted=150, deleting=160, gone=300)
    made.pod("db-0", "one", workload="shop.db", leaving=280, labels={"app": "db"})
    for namespace, name in (("shop", "db"), ("shop", "web"), ("other", "db")):
        made.budget(name, namespace, selector={"matchLabels": {"app": name}}, disruptionsAllowed=1)
    (held,) = radius(made).replaced[0].held_up
    assert (held.workload, held.selecting) == ("shop/db", ["shop/db"])
    assert wording.held(held) == "1 pod of shop/db, selected by PodDisruptionBudget shop/db, for 2 min 00 s"
