"""Nodes and dollars at a moment."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.whatif.answer import Inventory
from karpstack.whatif.phases import read
from tests.unit.whatif.made import FAMILY, NODE_CLASS, ON_DEMAND, Made
from tests.unit.whatif.told import judged


def before(made: Made) -> Inventory:
    return judged(read(made.lines())).before


def test_pods_of_daemon_sets_are_no_demand() -> None:
    made, alone = Made(), Made()
    for one in (made, alone):
        one.pool()
        one.node("one")
        one.pod("web-1", "one", cpu=1.9)
    made.pod("logs-1", "one", workload="logs", cpu=1.0, labels={"pod-template-generation": "1"})
    assert before(made).lower_bound_usd_per_hour == before(alone).lower_bound_usd_per_hour
    assert (before(made).pods, before(alone).pods) == (1, 1)
    found = before(made).daemon_sets
    assert found is not None
    assert (found.cpu_share, found.usd_per_hour) == (0.5, 0.048)


def test_the_lower_bound_is_of_pods_that_have_a_node() -> None:
    made, alone = Made(), Made()
    for one in (made, alone):
        one.pool()
        one.node("one")
        one.pod("web-1", "one")
    made.pod("web-2", unschedulable=6, cpu=50.0)
    assert before(made).lower_bound_usd_per_hour == before(alone).lower_bound_usd_per_hour
    assert before(made).waiting == 1


TAINT = {"key": "only", "value": "batch", "effect": "NoSchedule"}
IN_BATCH = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}]}


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        # The cheap nodes of `batch` count for a pod only where it tolerates their taint and may have their labels.
        ({"tolerations": [{"key": "only", "operator": "Exists"}]}, 0.0042 * 3),
        ({"tolerations": []}, 0.096 * 1.5),
        ({"tolerations": [{"key": "only", "operator": "Exists"}], "nodeSelector": {"pool": "other"}}, None),
        ({"tolerations": [{"key": "only", "operator": "Exists"}], **IN_BATCH}, 0.0042 * 3),
        ({"tolerations": [], **IN_BATCH}, None),
        ({"nodeSelector": {"karpenter.sh/nodepool": "default"}}, 0.096 * 1.5),
        ({}, 0.0042 * 3),  # a record that does not tell tolerations excludes nothing
    ],
)
def test_the_lower_bound_keeps_to_taints_selectors_and_affinity(asks: dict[str, Any], expected: float | None) -> None:
    made = Made()
    made.pool()
    family = {**FAMILY, "values": ["t4g"]}
    labels = {"labels": {"pool": "batch"}}
    spec = {"requirements": [family, ON_DEMAND], "nodeClassRef": NODE_CLASS, "taints": [TAINT]}
    made.pool("batch", template={"metadata": labels, "spec": spec})
    made.node("one")
    for index in range(6):
        made.pod(f"web-{index}", "one", cpu=0.5, memory=2**28, **asks)
    found = before(made).lower_bound_usd_per_hour
    assert found == (None if expected is None else pytest.approx(expected))
