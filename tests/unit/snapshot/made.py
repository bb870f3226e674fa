"""A small snapshot, to take and to break."""

from __future__ import annotations

from typing import Any

from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.reading import checked


def workload(name: str = "web", **more: Any) -> dict[str, Any]:
    """A workload of a file."""
    return {
        "namespace": "shop",
        "name": name,
        "controller": {"apiVersion": "apps/v1", "kind": "Deployment"},
        "replicas": 3,
        "pod": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        **more,
    }


def data(**more: Any) -> dict[str, Any]:
    """A file."""
    return {
        "kind": "karpstack-snapshot",
        "version": 1,
        "taken": "2026-11-22T10:00:00Z",
        "source": "made",
        "cluster": {"cloud": "aws", "region": "us-east-1"},
        "workloads": [workload()],
        **more,
    }


def snapshot(**more: Any) -> Snapshot:
    """The same, read."""
    return checked(data(**more)).snapshot
