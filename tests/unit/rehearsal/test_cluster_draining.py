"""The drain of a managed node group that is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.cluster.draining import drain
from karpstack.rehearsal.cluster.objects import ApiError, Object
from tests.unit.rehearsal.cluster_world import World

NODE = "/api/v1/nodes/ip-1"
PODS = "/api/v1/pods?spec.nodeName=ip-1"


class Budgeted(World):
    """A cluster whose budget refuses the first eviction, and whose evicted pods end."""

    def __init__(self) -> None:
        super().__init__()
        self.present[NODE] = {"kind": "Node"}
        self.refusals = 1

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        if self.refusals:
            self.refusals -= 1
            raise ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        name = body["metadata"]["name"]
        self.listed[PODS] = [pod for pod in self.listed[PODS] if pod["metadata"]["name"] != name]
        return super().create(path, body)


def pod(name: str, owner: str = "ReplicaSet", **status: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "kube-system", "ownerReferences": [{"kind": owner}]},
        "status": status,
    }


def test_pods_are_evicted_when_their_budget_lets_them_go() -> None:
    world = Budgeted()
    world.listed[PODS] = [pod("coredns"), pod("cilium", "DaemonSet"), pod("done", phase="Succeeded")]
    drain(world.objects(), ["ip-1", "gone"], within=5)
    assert world.patched.get_nowait() == (NODE, {"spec": {"unschedulable": True}})
    assert world.patched.empty()
    evicted = world.created.get_nowait()
    assert evicted["path"] == "/api/v1/namespaces/kube-system/pods/coredns/eviction"
    assert world.created.empty()


def test_a_pod_that_stays_ends_with_its_machine() -> None:
    world = Budgeted()
    world.refusals = 1_000
    world.listed[PODS] = [pod("karpenter")]
    drain(world.objects(), ["ip-1"], within=0.1)
    assert world.created.empty()
