"""Drains nodes of a managed node group before their machines end, as the cloud does when a group is deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from karpstack.karpenter import clock
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects

_PAUSE: Final = 0.2


def drain(objects: Objects, names: Iterable[str], within: float) -> None:
    """Cordon nodes and evict their pods within PodDisruptionBudgets; what stays after a time ends with its machine.

    Args:
        names: Of the nodes; one that does not exist is skipped.
        within: Seconds.
    """
    nodes = [name for name in names if objects.get(f"/api/v1/nodes/{name}") is not None]
    for name in nodes:
        objects.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    until = clock.monotonic() + within
    while (left := [pod for name in nodes for pod in _drained(objects, name)]) and clock.monotonic() < until:
        for pod in left:
            if "deletionTimestamp" not in pod["metadata"]:
                _evict(objects, pod)
        clock.sleep(_PAUSE)


def _drained(objects: Objects, node: str) -> list[Object]:
    """The pods of a node that a drain moves: not those of DaemonSets, nor what has ended."""
    return [
        pod
        for pod in objects.list("/api/v1/pods", fields=f"spec.nodeName={node}")
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        and all(owner["kind"] != "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
    ]


def _evict(objects: Objects, pod: Object) -> None:
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    try:
        objects.create(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    except ApiError as error:
        if error.status not in (404, 409, 429):  # gone meanwhile, or a budget holds it for now
            raise
