"""The Kubernetes objects of a scenario: one Namespace, what is deployed in it and beside it, and its NodePools.

They are made as data, never as text: whatever a scenario says ends up inside of one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .environments import ENVIRONMENTS
from .manifests import COPY_OF
from .scenario import Scenario


def objects(scenario: Scenario) -> list[dict[str, Any]]:
    """All that a story makes, in this order. NodePools come last: nothing of theirs is needed before.

    A node class says of which it is a copy, `COPY_OF`, for only the cluster knows what that one is.

    Args:
        scenario: The scenario as it is in one kind of environment.
    """
    labels = scenario.labels
    (environment,) = (known for known in ENVIRONMENTS if known.kind in scenario.stacks[:1])
    return [
        _object("v1", "Namespace", {"name": scenario.workload.namespace, "labels": labels}),
        *scenario.deployed,
        *(
            _object(
                environment.node_class_api, environment.node_class_kind, {"name": name, "labels": labels}, copy.spec
            )
            | {COPY_OF: copy.copy_of}
            for name, copy in scenario.node_classes.items()
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
