"""Whether workloads are available, and if not, why: in the words of the scheduler and the kubelet.

The judgements are pure functions over objects; the waits put them on a watch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from karpstack.rehearsal.cluster.feed import Feed
from karpstack.rehearsal.cluster.objects import Object, Objects, has_condition

#: Kinds that `missing_for_available` can judge, with their API version.
KINDS = {
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
}

_SECONDS_BETWEEN_LOOKS = 0.3
_MOST_PODS = 5


def missing_for_available(workload: Mapping[str, Any], *, all_replicas: bool) -> str:
    """Return what a workload lacks to be available; empty if nothing.

    Args:
        workload: A live object of one of `KINDS`.
        all_replicas: Whether every replica must be there. Otherwise, as for Helm, those may lack that the update
            strategy lets be unavailable.
    """
    kind, status = workload["kind"], workload.get("status", {})
    if kind == "CustomResourceDefinition":
        return "" if has_condition(workload, "Established") else "it is not established"
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0):
        return "its controller has not seen the last change"
    if kind == "DaemonSet":
        wanted, updated = status.get("desiredNumberScheduled", 0), status.get("updatedNumberScheduled", 0)
        ready = status.get("numberReady", 0)
    else:
        wanted, updated = workload["spec"].get("replicas", 1), status.get("updatedReplicas", 0)
        ready = status.get("readyReplicas", 0) if kind == "StatefulSet" else status.get("availableReplicas", 0)
    if updated < wanted:
        return f"{updated} of {wanted} pods are up to date"
    if kind == "Deployment" and status.get("replicas", 0) > updated:
        return f"{status['replicas'] - updated} old pods are still there"
    enough = wanted if all_replicas else wanted - _may_lack(workload, wanted)
    return "" if ready >= enough else f"{ready} of {wanted} pods are ready"


def pod_problem(pod: Mapping[str, Any]) -> str:
    """Why a pod is not ready, in one line; empty when it is."""
    status = pod.get("status", {})
    if has_condition(pod, "Ready") or status.get("phase") == "Succeeded":
        return ""
    for scheduled in status.get("conditions") or []:
        if (scheduled["type"], scheduled["status"]) != ("PodScheduled", "False"):
            continue
        return f"{scheduled.get('reason', 'Unschedulable')}: {scheduled.get('message', '')}"
    for container in status.get("containerStatuses", []):
        if waiting := container.get("state", {}).get("waiting"):
            why = f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
            return f"container {container['name']} is waiting: {why}"
    if not pod["spec"].get("nodeName"):
        return "the scheduler has not looked at it yet"
    return f"it is {status.get('phase', 'Pending')} on node {pod['spec']['nodeName']}"


def explain(objects: Objects, workload: Mapping[str, Any], lacks: str) -> str:
    """A shortfall with the reasons of the pods concerned."""
    metadata = workload["metadata"]
    text = f"{workload['kind']} {metadata.get('namespace', '')}/{metadata['name']}: {lacks}".replace(" /", " ")
    selector = workload["spec"].get("selector", {}).get("matchLabels")
    if not selector:
        return text
    pods = objects.list(objects.path("v1", "Pod", metadata["namespace"]), labels=labels_selector(selector))
    reasons = [f"pod {pod['metadata']['name']}: {problem}" for pod in pods if (problem := pod_problem(pod))]
    more = [f"and {len(reasons) - _MOST_PODS} more pods"] if len(reasons) > _MOST_PODS else []
    return "; ".join([text, *reasons[:_MOST_PODS], *more])


def wait_available(
    objects: Objects,
    workloads: Sequence[tuple[str, str, str]],
    timeout: float,
    *,
    all_replicas: bool,
    problem: Callable[[], str] = str,
) -> str:
    """Wait until workloads are available.

    Args:
        workloads: (kind, namespace, name) of each.
        timeout: Seconds.
        all_replicas: See `missing_for_available`.
        problem: Looked at from time to time: a text that is not empty ends the wait at once.

    Returns:
        Empty, or why they are not available.
    """
    lacking: dict[str, str] = {}
    seen: dict[str, Object] = {}
    with closing(Feed(objects)) as feed:
        feed.after(0, "look")
        for kind, namespace, name in workloads:
            source = f"{kind} {namespace}/{name}".replace(" /", " ")
            lacking[source] = "it does not exist"
            feed.watch(source, objects.path(KINDS[kind], kind, namespace), fields=f"metadata.name={name}")
        for event in feed.until(timeout) if lacking else ():
            if event.source == "look":
                if reason := problem():
                    return reason
                feed.after(_SECONDS_BETWEEN_LOOKS, "look")
                continue
            lacks = (
                "it was deleted"
                if event.type == "DELETED"
                else missing_for_available(event.object, all_replicas=all_replicas)
            )
            seen[event.source] = event.object
            if lacks:
                lacking[event.source] = lacks
            else:
                lacking.pop(event.source, None)
            if not lacking:
                break
    return "; ".join(
        explain(objects, seen[source], lacks) if source in seen else f"{source}: {lacks}"
        for source, lacks in lacking.items()
    )


def wait_gone(
    objects: Objects, path: str, timeout: float, *, labels: str = "", names: Iterable[str] | None = None
) -> list[str]:
    """Wait until the objects of a collection are gone; the names of those that are not.

    Args:
        timeout: Seconds.
        labels: Only objects with these labels.
        names: Only objects with these names.
    """
    only = None if names is None else set(names)
    left = {
        item["metadata"]["name"]
        for item in objects.list(path, labels=labels)
        if only is None or item["metadata"]["name"] in only
    }
    if not left:
        return []
    with closing(Feed(objects)) as feed:
        # What goes between the listing above and the watch is missing in the watch's own beginning.
        feed.after(_SECONDS_BETWEEN_LOOKS, "look")
        feed.watch("objects", path, labels=labels)
        for event in feed.until(timeout):
            if event.source == "look":
                left &= {item["metadata"]["name"] for item in objects.list(path, labels=labels)}
            elif event.type == "DELETED":
                left.discard(event.object["metadata"]["name"])
            if not left:
                break
    return sorted(left)


def labels_selector(labels: Mapping[str, str]) -> str:
    """A label selector that matches exactly these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _may_lack(workload: Mapping[str, Any], wanted: int) -> int:
    """How many pods the update strategy lets be unavailable."""
    spec, kind = workload["spec"], workload["kind"]
    if kind == "StatefulSet":
        return 0
    strategy = spec.get("strategy" if kind == "Deployment" else "updateStrategy", {})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    value = strategy.get("rollingUpdate", {}).get("maxUnavailable", 0)
    if not isinstance(value, str):
        return int(value)
    share = int(value.removesuffix("%")) * wanted / 100
    return math.floor(share) if kind == "Deployment" else math.ceil(share)
