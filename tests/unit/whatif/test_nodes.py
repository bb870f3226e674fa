"""Nodes and dollars at a moment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.whatif.made import FAMILY, NODE_CLASS, ON_DEMAND, Made
from tests.unit.whatif.told import judged, told
from whatif.answer import Group, Inventory
from whatif.phases import read


def before(made: Made) -> Inventory:
    return judged(read(made.lines())).before


def test_a_recorded_consolidation_before_and_after() -> None:
    found = judged(told("eks.consolidation-policies", 3))
    assert found.after is not None
    assert (found.before.nodes, found.after.nodes) == (6, 4)
    assert (found.before.usd_per_hour, found.after.usd_per_hour) == (0.4736, 0.3048)
    assert found.before.by_type == [
        Group(name="c6g.large", nodes=4, usd_per_hour=0.272),
        Group(name="r6g.large", nodes=2, usd_per_hour=0.2016),
    ]
    assert [(group.name, group.nodes) for group in found.after.by_pool] == [
        ("policy-empty", 2),
        ("policy-balanced", 1),
        ("policy-underutilized", 1),
    ]
    assert [(group.name, group.nodes) for group in found.after.by_zone] == [("us-east-1a", 4)]
    assert [(group.name, group.nodes) for group in found.after.by_capacity_type] == [("on-demand", 4)]
    bound = [found.before.lower_bound_usd_per_hour, found.after.lower_bound_usd_per_hour]
    assert bound == pytest.approx([0.2142, 0.204])  # pods name their NodePool, so at the end each has a c6g.large


def test_nodes_of_all_pools_count_also_without_pods_of_the_workload() -> None:
    made = Made()
    made.pool()
    made.pool("other")
    made.node("one")
    made.node("two", pool="other")
    assert [group.name for group in before(made).by_pool] == ["default", "other"]


def test_what_has_no_price_makes_the_sum_unknown() -> None:
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", type_="m5.xlarge", price=None)
    found = before(made)
    assert (found.usd_per_hour, found.known_usd_per_hour, found.unpriced) == (None, 0.096, ["m5.xlarge"])
    assert {group.name: group.usd_per_hour for group in found.by_type} == {"m5.large": 0.096, "m5.xlarge": None}
    assert any("m5.xlarge is not known" in text for text in judged(read(made.lines())).unknown)


def test_a_node_on_its_way_out_is_counted_apart() -> None:
    made = Made()
    made.pool()
    made.node("one", disrupted=50, deleting=60, gone=200)
    made.node("two")
    found = before(made)
    assert (found.nodes, found.usd_per_hour, found.leaving, found.leaving_usd_per_hour) == (1, 0.096, 1, 0.096)
    assert [group.nodes for group in found.by_pool] == [1]


def test_spot_of_a_rehearsal_is_marked() -> None:
    found = judged(told("eks.eks-spot-default", 0))
    assert found.after is not None
    assert (found.before.spot_simulated, found.after.spot_simulated) == (False, True)
    assert found.after.spot_usd_per_hour == found.after.usd_per_hour == 0.053132
    assert found.after.on_demand_usd_per_hour == 0
    assert any("no market's" in text for text in found.prices)


def test_what_daemon_sets_take() -> None:
    found = judged(told("eks.daemon-sets", 0)).after
    assert found is not None
    assert found.daemon_sets is not None
    # Two DaemonSets on each of three nodes of 2 CPUs, of which pods may have 1.93.
    assert (found.daemon_sets.cpu, found.nodes, found.usd_per_hour) == (1.8, 3, 0.204)
    assert found.daemon_sets.cpu_share == pytest.approx(1.8 / (3 * 1.93), abs=0.001)
    assert found.daemon_sets.usd_per_hour == pytest.approx(0.204 * found.daemon_sets.cpu_share, abs=0.0001)


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


def test_a_record_without_the_pools_has_no_bound() -> None:
    found = judged(told("eks.drift", 1)).before
    assert found.lower_bound_usd_per_hour is None
    assert found.no_lower_bound == "the record does not tell what the NodePools may launch"


def test_the_series_begins_with_the_base_and_ends_with_the_change() -> None:
    found = judged(told("eks.consolidation-policies", 3))
    assert (found.series[0].nodes, found.series[-1].nodes) == (6, 4)
    assert (found.series[0].usd_per_hour, found.series[-1].usd_per_hour) == (0.4736, 0.3048)
