"""The Kubernetes objects of a scenario: one Namespace, one Deployment, its NodePools, and nothing else.

They are made as data, never as text: whatever a scenario says ends up inside of one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..recording.timeline import SCENARIO_LABEL, WORKLOAD_SELECTOR
from .scenario import Scenario


def objects(scenario: Scenario) -> list[dict[str, Any]]:
    """All that a story makes, in this order. NodePools come last: nothing of theirs is needed before.

    Args:
        scenario: The scenario as it is in one kind of environment.
    """
    namespace = scenario.workload.namespace
    # By these labels a scale test knows what is its own.
    part_of, scale_test = WORKLOAD_SELECTOR.split("=")
    labels = {part_of: scale_test, SCENARIO_LABEL: scenario.name}
    deployment = scenario.workload.deployment
    container = {"name": "pause", "image": deployment.image, "resources": {"requests": dict(deployment.requests)}}
    pod: dict[str, Any] = {
        # The container has nothing to finish, and a drained node should not wait for it.
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": dict(deployment.node_selector),
        "topologySpreadConstraints": [
            {**spread.model_dump(by_alias=True, exclude_none=True), "labelSelector": {"matchLabels": labels}}
            for spread in deployment.topology_spread
        ],
        "containers": [container],
    }
    replicated = {
        "replicas": deployment.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return [
        _object("v1", "Namespace", {"name": namespace, "labels": labels}),
        _object(
            "apps/v1",
            "Deployment",
            {"name": deployment.name, "namespace": namespace, "labels": labels},
            replicated,
        ),
        *(
            _object("karpenter.sh/v1", "NodePool", {"name": name, "labels": labels}, spec)
            for name, spec in scenario.node_pools.items()
        ),
    ]


def _object(
    api_version: str, kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata)}
    return manifest if spec is None else {**manifest, "spec": dict(spec)}
