"""Why a node is still there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.whatif.made import NODE_CLASS, ON_DEMAND, Made
from tests.unit.whatif.told import judged
from whatif.answer import Surviving
from whatif.phases import read


def only(made: Made) -> Surviving:
    (found,) = judged(read(made.lines())).surviving
    return found


@pytest.fixture
def made() -> Made:
    made = Made()
    made.pool()
    return made


# As Karpenter 1.15 writes them.
WORDS = [
    ("Unconsolidatable", "Can't replace with a cheaper node", "price"),
    ("Unconsolidatable", "Filtering by price: no instance type is cheaper", "price"),
    ("Unconsolidatable", "Can't remove without creating 2 candidates", "pods"),
    ("Unconsolidatable", "Not all pods would schedule, shop/web-1 => incompatible requirements", "pods"),
    (
        "Unconsolidatable",
        "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
        "spot to spot",
    ),
    (
        "Unconsolidatable",
        "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate, "
        "got 3",
        "spot to spot",
    ),
    ("DisruptionBlocked", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/web])", "pod disruption budget"),
    (
        "DisruptionBlocked",
        "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/web shop/all])",
        "pod disruption budget",
    ),
    ("DisruptionBlocked", 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/web-1)', "do-not-disrupt"),
    (
        "DisruptionBlocked",
        'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        "do-not-disrupt",
    ),
    ("Unconsolidatable", 'Instance Type "m5.huge" not found', "other"),
    (
        "Unconsolidatable",
        "Not all pods would schedule, pdb/do-not-disrupt-1 => did not tolerate taint (taint=a.b/do-not-disrupt)",
        "pods",
    ),
]


@pytest.mark.parametrize(("reason", "words", "why"), WORDS)
def test_the_controllers_words_have_a_kind(made: Made, reason: str, words: str, why: str) -> None:
    made.node("one")
    made.event(300, "Node", "ip-one", reason, words)
    found = only(made)
    assert (found.why, found.words, found.said, found.looked_at) == (why, words, 200.0, True)


@pytest.mark.parametrize(
    "words",
    [
        "Nodeclaim does not have an associated node",
        "Node isn't initialized",
        "Node is nominated for a pending pod",
        "Node is deleting or marked for deletion",
        "Not all pods would schedule, a/b => would schedule against uninitialized nodeclaim/default-x",
    ],
)
def test_what_passes_is_no_cause(made: Made, words: str) -> None:
    made.node("one", conditions={"Consolidatable": "Consolidatable"})
    made.event(150, "Node", "ip-one", "Unconsolidatable", "Can't replace with a cheaper node")
    made.event(160, "NodeClaim", "one", "DisruptionBlocked", words)
    assert only(made).words == "Can't replace with a cheaper node"


@pytest.mark.parametrize(
    ("disruption", "why"),
    [
        ({"consolidateAfter": "Never", "consolidationPolicy": "WhenEmptyOrUnderutilized"}, "policy"),
        ({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}, "policy"),
        ({"consolidateAfter": "0s", "budgets": [{"nodes": "0", "reasons": ["Underutilized"]}]}, "disruption budget"),
        ({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}, "not said"),
    ],
)
@pytest.mark.parametrize("seconds", [50, 105, 135])  # before the change, and of what was before it
def test_the_node_pool_says_whether_consolidation_is_off_not_what_was_said_of_it(
    seconds: float, disruption: dict[str, object], why: str
) -> None:
    made = Made()
    made.pool(disruption={"consolidateAfter": "Never"})
    made.pool(seconds=110, disruption=disruption)
    made.node("one", conditions={"Consolidatable": "Consolidatable"})
    made.pod("web", "one")
    made.event(seconds, "Node", "ip-one", "Unconsolidatable", 'NodePool "default" has consolidation disabled')
    found = only(made)
    assert (found.why, "disabled" in (found.words or "")) == (why, False)


SMALL = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
BLOCKED = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/job-0)'


def drifted_without_room(**asks: Any) -> Made:
    """A drifted node with a pod that fits on no m5.large, which is all that its NodePool may launch by now.

    Beside it is a pod with do-not-disrupt. Of that alone Karpenter tells, since consolidation looks at it first.
    """
    made = Made()
    made.pool(template={"spec": {"requirements": [SMALL, ON_DEMAND], "nodeClassRef": NODE_CLASS}})
    made.node("one", type_="m5.4xlarge", conditions={"Drifted": "RequirementsDrifted"}, terminationGracePeriod="1h")
    made.pod("big-0", "one", workload="big", cpu=5.0, **asks)
    made.pod("job-0", "one", workload="job", doNotDisrupt="true")
    made.event(390, "Node", "ip-one", "DisruptionBlocked", BLOCKED)
    return made


def test_a_drifted_node_whose_pods_have_no_other_place_stays_for_ever() -> None:
    answer = judged(read(drifted_without_room().lines()))
    (found,) = answer.surviving
    assert (found.why, found.never) == ("replacement", True)
    assert found.words == "no NodePool could have a node for the pods of shop/big, and no other node has room for them"
    assert answer.blast_radius is not None
    assert not answer.blast_radius.held  # drift never begins, so no pod is deleted in the end


def test_room_on_another_node_is_a_place() -> None:
    made = drifted_without_room()
    made.add(
        10, "ADDED", kind="Node", object={"metadata": {"name": "large"}, "allocatable": {"cpu": "8", "memory": "9Gi"}}
    )
    assert [one.why for one in judged(read(made.lines())).surviving] == ["not said"]
    made.add(11, "ADDED", kind="Pod", object=_on("large", cpu=4.0))
    assert [one.why for one in judged(read(made.lines())).surviving] == ["replacement"]


@pytest.mark.parametrize("annotated", [True, False])
def test_pods_for_which_karpenter_plans_no_room_need_no_place(annotated: bool) -> None:
    made = drifted_without_room(**({"doNotDisrupt": "true"} if annotated else {}))
    assert only(made).why == ("not said" if annotated else "replacement")


def _on(node: str, cpu: float) -> dict[str, Any]:
    """A pod of nobody's on a node."""
    return {
        "metadata": {"name": "other", "namespace": "shop", "uid": "other", "labels": {}},
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "nodeName": node,
        "requests": {"cpu": cpu, "memory": 0},
    }
