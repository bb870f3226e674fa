"""Timelines and watch data of stories larger than one would record: made up, but in the recorder's own form."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from karpstack.scale_test.recording.timeline import Line, api_time, excerpt

STORY = "eks-cheapest-fit"
_START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
_LABELS = {
    "app.kubernetes.io/instance": STORY,
    "app.kubernetes.io/part-of": "karpstack-scale-test",
    "pod-template-hash": "7d4d5f56bf",
}
_PODS_PER_NODE = 50


def time(seconds: float) -> str:
    return (_START + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def pod(number: int, stage: str, version: int = 1) -> dict[str, Any]:
    """A pod as the API server gives it, with what no story asks for: pending, scheduled, running or leaving."""
    conditions: list[dict[str, Any]] = [
        {
            "type": "PodScheduled",
            "status": "False" if stage == "pending" else "True",
            "lastTransitionTime": "2026-11-21T10:00:01Z",
            "observedGeneration": 1,
            **({"reason": "Unschedulable", "message": "0/2 nodes are available: " * 6} if stage == "pending" else {}),
        }
    ]
    if stage in ("running", "leaving"):
        conditions += [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T10:01:00Z", "lastProbeTime": None}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        ]
    leaving = {"deletionTimestamp": "2026-11-21T10:05:00Z"} if stage == "leaving" else {}
    return {
        "metadata": {
            "name": f"inflate-7d4d5f56bf-{number:05}",
            "namespace": "other",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(version),
            "labels": _LABELS,
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "ownerReferences": [{"kind": "ReplicaSet", "name": "inflate-7d4d5f56bf", "controller": True}],
            "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:{key}": {} for key in range(40)}}],
            **leaving,
        },
        "spec": {
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                }
            ],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
            **({} if stage == "pending" else {"nodeName": f"node-{number // _PODS_PER_NODE}"}),
        },
        "status": {"phase": "Running" if stage in ("running", "leaving") else "Pending", "conditions": conditions},
    }


def timeline(pods: int) -> Iterator[Line]:
    """A story of so many pods that come, run and go one by one, on a node for each fifty of them."""
    yield {"type": "START", "received": time(0), "pid": 1, "prices": True, "kubernetes": "v1.36.3"}
    yield {"type": "SYNCED", "received": time(0.1)}
    yield {"type": "STORY", "received": time(1), "scenario": STORY}
    lines: list[tuple[float, Line]] = []

    def add(at: float, type_: str, kind: str, found: dict[str, Any]) -> None:
        kept = excerpt(kind, found)
        lines.append((at, {"type": type_, "kind": kind, "apiTime": api_time(kept), "object": kept}))

    for number in range(pods):
        after = number * 0.004
        nominated = {
            "metadata": {"name": f"event-{number}", "namespace": "other", "uid": f"event-{number}"},
            "involvedObject": {"kind": "Pod", **_named(pod(number, "pending"))},
            "reason": "Nominated",
            "message": f"Pod should schedule on: nodeclaim/claim-{number // _PODS_PER_NODE}",
        }
        add(2 + after, "ADDED", "Pod", pod(number, "pending"))
        add(5 + after, "ADDED", "Event", nominated)
        add(60 + after, "MODIFIED", "Pod", pod(number, "scheduled"))
        add(62 + after, "MODIFIED", "Pod", pod(number, "running"))
        add(300 + after, "MODIFIED", "Pod", pod(number, "leaving"))
        add(301 + after, "DELETED", "Pod", pod(number, "leaving"))
    for number in range((pods + _PODS_PER_NODE - 1) // _PODS_PER_NODE):
        for at, conditions in (
            (6, ()),
            (8, ("Launched",)),
            (50, ("Launched", "Registered")),
            (55, ("Launched", "Registered", "Initialized")),
        ):
            add(at + number * 0.01, "MODIFIED" if conditions else "ADDED", "NodeClaim", _claim(number, conditions))
        add(50 + number * 0.01, "ADDED", "Node", _node(number))
        add(400 + number * 0.01, "DELETED", "NodeClaim", _claim(number, ("Launched", "Registered", "Initialized")))
    price = {"instanceType": "m5.4xlarge", "capacityType": "on-demand", "zone": "us-east-1a", "pricePerHour": 0.768}
    lines.append((9, {"type": "PRICE", **price}))
    lines.append((250, {"type": "STEP", "scenario": STORY, "step": 0, "requested": time(1.5), "outcome": "rest"}))
    for moment, line in sorted(lines, key=lambda found: found[0]):
        yield {"type": line["type"], "received": time(moment), **line}
    yield {"type": "END", "received": time(500), "scenario": STORY}
    yield {"type": "STOP", "received": time(501), "reason": "stopped by the playbook"}


def _named(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found["metadata"][key] for key in ("name", "namespace", "uid")}


def _claim(number: int, conditions: tuple[str, ...]) -> dict[str, Any]:
    bought = {
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    return {
        "metadata": {
            "name": f"claim-{number}",
            "uid": f"claim-{number}",
            "labels": {"karpenter.sh/nodepool": "cheapest-fit", **(bought if conditions else {})},
            "creationTimestamp": "2026-11-21T10:00:06Z",
        },
        "spec": {"expireAfter": "720h"},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi"},
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T10:00:55Z"} for kind in conditions
            ],
            **({"nodeName": f"node-{number}"} if "Registered" in conditions else {}),
        },
    }


def _node(number: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"node-{number}",
            "uid": f"node-{number}",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "creationTimestamp": "2026-11-21T10:00:50Z",
        },
        "spec": {},
        "status": {"allocatable": {"cpu": "15890m", "memory": "60Gi", "pods": "110"}},
    }
