"""What a cluster runs by itself is read from the cluster, and only in the namespaces of charts and clouds."""

from __future__ import annotations

from typing import Any

from karpstack.whatif import existing
from karpstack.whatif.labels import LABELS
from tests.unit.whatif.live import Live


def one(kind: str, name: str, namespace: str = "kube-system", **labels: str) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": "25m"}}}
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def pod(name: str, node: str, **labels: str) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"nodeName": node, "containers": [container]},
    }


def test_what_a_what_if_made_and_a_users_own_do_not_count() -> None:
    live = Live(
        one("DaemonSet", "cilium"),
        one("DaemonSet", "aws-node", **LABELS),
        one("Deployment", "web", "shop"),
        one("PodDisruptionBudget", "coredns"),
        {"kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"kind": "Namespace", "metadata": {"name": "shop"}},
    )
    found = existing.existing(live)
    assert found.requests == {("DaemonSet", "kube-system", "cilium"): {"cpu": "25m"}}
    assert found.budgets == {("kube-system", "coredns")}
    assert found.namespaces == {"kube-system"}


def test_the_load_of_the_clusters_own_pods_is_that_on_nodes_of_node_pools() -> None:
    own = pod("cilium-a", "ours")
    live = Live(
        {"kind": "Node", "metadata": {"name": "ours", "labels": {"karpenter.sh/nodepool": "general"}}},
        {"kind": "Node", "metadata": {"name": "managed", "labels": {}}},
        {**own, "metadata": {**own["metadata"], "ownerReferences": [{"kind": "DaemonSet", "name": "cilium"}]}},
        pod("cilium-b", "managed"),
        pod("web", "ours", **LABELS),
    )
    assert existing.existing(live).on_pools == {("kube-system", "cilium")}
    live.objects["Node", "ours"]["metadata"]["labels"] = {}  # before Karpenter has made any
    assert existing.existing(live).on_pools == {("kube-system", "cilium")}
    live.objects["Node", "ours"]["metadata"]["labels"] = {"karpenter.sh/nodepool": "general"}
    assert existing.load(live) == {"nodes": 1, "pods": 1, "cpu": 0.1, "memory": 2**30}


def test_what_a_what_if_made_in_the_clusters_own_namespaces_is_removed() -> None:
    live = Live(one("DaemonSet", "cilium"), one("DaemonSet", "aws-node", **LABELS))
    existing.remove(live)
    assert [name for _, name in live.objects] == ["cilium"]
