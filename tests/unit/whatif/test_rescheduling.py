"""Workloads that run on, and for which no NodePool could make a node any more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.html_page import Page
from tests.unit.whatif.made import FAMILY, NODE_CLASS, ON_DEMAND, Made
from tests.unit.whatif.told import judged, told
from whatif import markdown, page
from whatif.answer import Answer, NotAnew
from whatif.limits import Limits
from whatif.phases import read

C5: dict[str, Any] = {"nodeSelector": {"karpenter.k8s.aws/instance-family": "c5"}}
NEWER = {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["6"]}
GPU = {"key": "team", "value": "ml", "effect": "NoSchedule"}


def spec(*requirements: dict[str, Any], **template: Any) -> dict[str, Any]:
    return {"template": {"spec": {"requirements": list(requirements), "nodeClassRef": NODE_CLASS, **template}}}


def changed(asks: dict[str, Any], before: dict[str, Any], after: dict[str, Any] | None, **pod: Any) -> Made:
    """A pod on a node that stays; the NodePool is changed, or removed."""
    made = Made()
    made.pool(**before)
    made.node("one")
    made.pod("api-0", "one", workload="api", tolerations=asks.pop("tolerations", []), **asks, **pod)
    if after is None:
        metadata = {"name": "default"}
        made.add(110, "DELETED", kind="NodePool", object={"metadata": metadata, "conditions": [], "spec": before})
    else:
        made.pool(seconds=110, **after)
    return made


def found(made: Made, limits: Limits | None = None) -> Answer:
    return judged(read(made.lines()), limits)


def not_anew(made: Made) -> list[NotAnew]:
    radius = found(made).blast_radius
    assert radius is not None
    return radius.not_anew


@pytest.mark.parametrize(
    ("asks", "before", "after", "why"),
    [
        (
            C5,
            spec(ON_DEMAND),
            spec(ON_DEMAND, NEWER),
            "may launch no instance type with karpenter.k8s.aws/instance-family In [c5]",
        ),
        ({}, spec(), spec(taints=[GPU]), "has the taint team=ml:NoSchedule, which they do not tolerate"),
        (
            {"nodeSelector": {"karpenter.sh/capacity-type": "spot"}},
            spec(),
            spec(ON_DEMAND),
            "gives no node karpenter.sh/capacity-type In [spot]",
        ),
        (
            {"requests": {"cpu": 90.0, "memory": 2**30}},
            spec(FAMILY),
            spec({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}),
            "may launch no instance type that has 90 CPUs and 1 GiB",
        ),
    ],
)
def test_what_no_node_pool_could_hold_any_more(
    asks: dict[str, Any], before: dict[str, Any], after: dict[str, Any], why: str
) -> None:
    assert not_anew(changed(dict(asks), before, after)) == [
        NotAnew(namespace="shop", workload="api", pods=1, nodes=1, why=f"NodePool default {why}")
    ]


def test_a_node_pool_that_is_gone() -> None:
    (one,) = not_anew(changed({}, spec(), None))
    assert one.why == "there is no NodePool any more"


TERMS = [
    {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family]}]}
    for family in ("c5", "c7g")
]


@pytest.mark.parametrize(
    ("asks", "before", "after"),
    [
        # One of the terms of an affinity is enough.
        ({"nodeSelectorTerms": TERMS}, spec(), spec(NEWER)),
        ({"tolerations": [{"key": "team", "operator": "Exists"}]}, spec(), spec(taints=[GPU])),
        # What could not be before is no work of the change.
        (C5, spec(NEWER), spec(NEWER, ON_DEMAND)),
        ({}, spec(), spec(NEWER)),
    ],
)
def test_what_a_node_pool_may_hold_still(asks: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> None:
    assert not_anew(changed(dict(asks), before, after)) == []


def test_pods_that_wait_already_are_told_as_such() -> None:
    made = changed(C5, spec(), spec(NEWER), leaving=150)
    made.pod("api-1", None, 151, workload="api", unschedulable=152, **C5)
    assert not_anew(made) == []


@pytest.mark.parametrize(
    ("node", "counts"),
    [
        ({"arch": "amd64"}, False),
        ({"arch": "arm64"}, True),
        ({"arch": "amd64", "taints": [{"key": "system", "effect": "NoSchedule"}]}, True),
        ({"arch": "amd64", "cpu": "100m"}, True),
    ],
)
def test_pods_on_a_managed_node_count_only_if_such_a_node_could_not_take_them(
    node: dict[str, Any], counts: bool
) -> None:
    made = changed({}, spec(), spec(taints=[{"key": "new", "effect": "NoSchedule"}]))
    made.add(
        3,
        "ADDED",
        kind="Node",
        object={
            "metadata": {"name": "ip-managed", "labels": {"kubernetes.io/arch": node["arch"]}},
            "conditions": [],
            "taints": node.get("taints", []),
            "allocatable": {"cpu": node.get("cpu", "2"), "memory": "8Gi"},
        },
    )
    made.pod("own-0", "managed", workload="own", tolerations=[], nodeSelector={"kubernetes.io/arch": "amd64"})
    assert [one.workload for one in not_anew(made)] == (["api", "own"] if counts else ["api"])
    nodes = {"of": 1, "made": 1, "podsPlaced": 1, "leftOut": []}
    as_is = judged(read(made.lines(loaded={"pods": 1, "leftOut": [], "nodes": nodes}))).blast_radius
    assert as_is is not None
    assert [one.workload for one in as_is.not_anew] == ["api"]


def test_another_node_pool_is_enough() -> None:
    made = changed(C5, spec(), spec(NEWER))
    made.pool("second", 2, **spec())
    assert not_anew(made) == []


def test_recorded_changes_leave_nobody_without() -> None:
    for story, step in (("eks.drift", 1), ("eks.consolidation-policies", 3), ("eks.daemon-sets", 0)):
        radius = judged(told(story, step)).blast_radius
        assert radius is not None
        assert radius.not_anew == []


def test_it_is_said_and_limited() -> None:
    made = changed(C5, spec(), spec(NEWER))
    answer = found(made, Limits(max_workloads_without_node_pool=0))
    assert answer.verdict == "limits broken"
    assert [(one.name, one.limit, one.seen) for one in answer.limits if not one.kept] == [
        ("maxWorkloadsWithoutNodePool", "at most 0 workloads", "1 workloads")
    ]
    assert "1 workload could not be scheduled again, because no NodePool fits any more." in answer.sentence
    text = markdown.render(answer)
    assert "No NodePool any more for 1 workload" in text
    for said in (text.replace("\\", ""), Page(page.render(answer)).text):
        assert "shop/api" in said
        assert "karpenter.k8s.aws/instance-family" in said
    assert found(made, Limits(max_workloads_without_node_pool=1)).verdict == "within limits"
