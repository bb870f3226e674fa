"""Pods of a snapshot come onto the nodes that they had, and those that have none to the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.scale_test.acting.cluster import ClusterError
from karpstack.scale_test.labels import SCENARIO_LABEL, WORKLOAD_LABEL
from karpstack.whatif import base_nodes, placing
from tests.unit.snapshot.made import snapshot, workload
from tests.unit.whatif.live import Clock, Live

LABELS = {"app.kubernetes.io/part-of": "karpstack-scale-test", SCENARIO_LABEL: "whatif"}


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod(name: str, number: int | None = None, scheduler: str = "karpstack-whatif", **spec: Any) -> dict[str, Any]:
    labels = {**LABELS, WORKLOAD_LABEL: "web"}
    if number is not None:
        labels["apps.kubernetes.io/pod-index"] = str(number)
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"schedulerName": scheduler, **spec},
    }


def web(**more: Any) -> dict[str, Any]:
    return {one.name: one for one in snapshot(workloads=[workload(**more)]).workloads}


def test_pods_are_bound_as_they_come() -> None:
    live = Live(node("ip-1"), node("ip-2"), pod("web-a"))

    def come() -> None:
        for name in ("web-b", "web-c"):
            live.create(pod(name))

    clock = Clock(come)
    placed = placing.place(live, web(nodes={"one": 2, "two": 1}), {"one": "ip-1", "two": "ip-2"}, clock, clock.sleep)
    assert placed == placing.PlacementResult(3, 0)
    assert sorted(node for _, node in live.bound) == ["ip-1", "ip-1", "ip-2"]


def test_pods_with_a_number_go_by_it() -> None:
    controller = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    volumes = [{"size": "1Gi", "places": [{"zones": ["a"], "pods": 1}, {"zones": ["b"], "pods": 1}]}]
    found = web(controller=controller, volumes=volumes, replicas=2, nodes={"one": 1, "two": 1})
    live = Live(node("ip-1"), pod("web-1", 1), pod("web-0", 0))
    assert placing.place(live, found, {"one": "ip-1"}) == placing.PlacementResult(1, 0)
    assert live.bound == [("web-0", "ip-1")]


def test_what_is_on_a_node_already_has_its_room() -> None:
    agent = pod("agent", nodeName="ip-1", containers=[{"resources": {"requests": {"cpu": "3500m"}}}])
    agent["metadata"]["labels"] = {"app": "agent"}
    live = Live(node("ip-1"), agent, *(pod(f"web-{name}") for name in "abc"))
    assert placing.place(live, web(nodes={"one": 3}), {"one": "ip-1"}) == placing.PlacementResult(1, 2)


def test_nodes_that_one_stands_for_have_its_room_together() -> None:
    live = Live(node("ip-1", cpu="1"), *(pod(f"web-{name}") for name in "abc"))
    standing = {"one": "ip-1", "two": "ip-1"}
    assert placing.place(live, web(nodes={"one": 2, "two": 1}), standing) == placing.PlacementResult(2, 1)


def test_pods_of_managed_nodes_are_put_on_rehearsed_nodes_of_no_node_pool() -> None:
    def live_node(name: str, played: bool, **labels: str) -> dict[str, Any]:
        annotations = {"kwok.x-k8s.io/node": "fake"} if played else {}
        return {"kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": annotations}}

    pool = {"karpenter.sh/nodepool": "general"}
    of = snapshot(
        nodes=[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d", "nodePool": "general"}, {"name": "e"}],
        nodeClaims=[{"name": "general-e", "node": "e"}],
    )
    system = [live_node("system-1", True), live_node("system-2", True)]
    rehearsed = Live(*system, live_node("ours", True, **pool))
    assert base_nodes.managed(rehearsed, of) == {"a": "system-1", "b": "system-2", "c": "system-1"}
    assert base_nodes.managed(Live(live_node("real", False)), of) == {}


def test_pods_that_never_come_are_not_waited_for_for_ever() -> None:
    live = Live(node("ip-1"), pod("web-a"))
    clock = Clock()
    assert placing.place(live, web(nodes={"one": 3}), {"one": "ip-1"}, clock, clock.sleep).pods == 1
    assert clock.now < 120


def test_nobody_schedules_while_pods_are_held_and_what_is_left_comes_again() -> None:
    live = Live()
    clock = Clock()
    with placing.hold_pods(live, clock, clock.sleep):
        kinds = {kind for kind, _ in live.objects}
        assert kinds == {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
        for one in (pod("bound", nodeName="ip-1"), pod("left"), pod("other", scheduler="default-scheduler")):
            live.create(one)
    assert {name for _, name in live.objects} == {"bound", "other"}


def test_the_policy_goes_when_loading_fails() -> None:
    live = Live()
    clock = Clock()
    with pytest.raises(ClusterError, match="no"), placing.hold_pods(live, clock, clock.sleep):
        raise ClusterError("no")
    assert live.objects == {}
