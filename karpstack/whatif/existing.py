"""Reads what a cluster runs by itself in the namespaces of charts and clouds: its own DaemonSets, CoreDNS, Karpenter.

What a what-if made there does not count, and no namespace of a user's own is read.
"""

from __future__ import annotations

from typing import Any, Final

from karpstack.scale_test.acting.cluster import Cluster
from karpstack.scale_test.judging.replay import NODE_POOL_LABEL
from karpstack.scale_test.market.quantities import RESOURCES, pod_requests
from karpstack.snapshot import system_workloads
from karpstack.snapshot.effective_requests import requests
from karpstack.snapshot.system_workloads import Existing

from .labels import LABELS, SELECTOR

_CONTROLLERS: Final = ("Deployment", "StatefulSet", "DaemonSet")
#: What a what-if makes in namespaces that it did not make.
_MADE: Final = (
    *((kind, "apps/v1") for kind in _CONTROLLERS),
    ("PodDisruptionBudget", "policy/v1"),
    ("PersistentVolumeClaim", "v1"),
)


def existing(cluster: Cluster) -> Existing:
    """Return what the cluster runs by itself.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """

    def own(api_version: str, kind: str) -> list[dict[str, Any]]:
        return [
            one
            for one in cluster.labelled(api_version, kind, "")
            if system_workloads.is_system_namespace(one["metadata"]["namespace"])
            and not LABELS.items() <= (one["metadata"].get("labels") or {}).items()
        ]

    return Existing(
        {
            (kind, one["metadata"]["namespace"], one["metadata"]["name"]): requests(one["spec"]["template"]["spec"])
            for kind in _CONTROLLERS
            for one in own("apps/v1", kind)
        },
        frozenset(
            (one["metadata"]["namespace"], one["metadata"]["name"]) for one in own("policy/v1", "PodDisruptionBudget")
        ),
        frozenset(
            name
            for one in cluster.labelled("v1", "Namespace", "")
            if system_workloads.is_system_namespace(name := one["metadata"]["name"])
        ),
        frozenset(
            (pod["metadata"]["namespace"], owner["name"])
            for pod in _pods(cluster) or _pods(cluster, "")
            for owner in pod["metadata"].get("ownerReferences") or ()
            if owner["kind"] == "DaemonSet"
        ),
    )


def load(cluster: Cluster) -> dict[str, float]:
    """Return the load of pods that no what-if made on nodes of NodePools: `nodes`, and of all of them `pods`, `cpu`,
    `memory`. The recorder does not see these pods.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    asked = [pod_requests(pod["spec"]) for pod in _pods(cluster)]
    return {
        "nodes": len(cluster.labelled("v1", "Node", NODE_POOL_LABEL)),
        "pods": len(asked),
        **{resource: sum(one.get(resource, 0.0) for one in asked) for resource in RESOURCES},
    }


def _pods(cluster: Cluster, selector: str = NODE_POOL_LABEL) -> list[dict[str, Any]]:
    """Pods that no what-if made, on nodes that have a label: by default, those of NodePools."""
    nodes = {node["metadata"]["name"] for node in cluster.labelled("v1", "Node", selector)}
    return [
        pod
        for pod in cluster.labelled("v1", "Pod", "")
        if pod["spec"].get("nodeName") in nodes
        and not LABELS.items() <= (pod["metadata"].get("labels") or {}).items()
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]


def remove(cluster: Cluster) -> None:
    """Ask for the end of what an earlier what-if made in the cluster's own namespaces, which stay.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    for kind, api_version in _MADE:
        for one in cluster.labelled(api_version, kind, SELECTOR):
            cluster.delete({"apiVersion": api_version, "kind": kind, **one}, one["metadata"]["uid"])
