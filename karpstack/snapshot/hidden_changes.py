"""Changes that make nodes drift in the cluster, and not in its rehearsal.

A stack file says more than manifests do. What a node class leaves out is that of the cluster's nodes, and what a
NodePool leaves out of what nodes with Cilium need, the program adds. If a change adds the same, or removes it, nothing
changes in the rehearsal. In the cluster, Karpenter's hash of the object becomes another, so all of its nodes drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter import crds

from .api_nodes import OF_THE_IMAGE
from .model import Snapshot
from .stack_file import StackFile

_POOL: Final = "NodePool"


def hidden(before: Snapshot, after: Snapshot, first: StackFile, second: StackFile) -> list[str]:
    """Say which node classes and NodePools change for the cluster and not for its rehearsal: a sentence each.

    Args:
        before, after: The snapshots.
        first, second: Their stack files.
    """
    return [*_node_classes(before, after, first, second), *_node_pools(before, after, first, second)]


def _node_classes(before: Snapshot, after: Snapshot, first: StackFile, second: StackFile) -> Iterator[str]:
    old, new = first.node_classes, second.node_classes
    known = {one.name: one for one in before.node_classes}
    for one in after.node_classes:
        if one.name not in known or old[one.name] != new[one.name]:
            continue
        specs = [crds.completed(str(after.cluster.cloud), one.kind, had.spec) for had in (known[one.name], one)]
        # A changed image is refused, or told, where manifests are applied.
        keys = sorted({*specs[0], *specs[1]} - set(OF_THE_IMAGE))
        if keys := [key for key in keys if specs[0].get(key) != specs[1].get(key)]:
            yield _sentence(f"{one.kind} {one.name}", keys)


def _node_pools(before: Snapshot, after: Snapshot, first: StackFile, second: StackFile) -> Iterator[str]:
    cloud = str(after.cluster.cloud)
    known = {one.name: one.spec for one in before.node_pools}
    for one in after.node_pools:
        if one.name not in known:
            continue
        old, new, *made = (
            _hashed(crds.completed(cloud, _POOL, spec))
            for spec in (known[one.name], one.spec, first.node_pools[one.name], second.node_pools[one.name])
        )
        keys = [f"template.{key}" for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        if keys and made[0] == made[1]:
            yield _sentence(f"{_POOL} {one.name}", keys)


def _hashed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a template that Karpenter's hash of a NodePool is of: all but requirements."""
    template = spec.get("template") or {}
    metadata = {f"metadata.{key}": value for key, value in (template.get("metadata") or {}).items()}
    node = {f"spec.{key}": value for key, value in (template.get("spec") or {}).items() if key != "requirements"}
    return {key: value for key, value in {**metadata, **node}.items() if value}


def _sentence(subject: str, keys: list[str]) -> str:
    return (
        f"{subject}: {', '.join(keys)} changes, but rehearsed nodes are the same before and after; "
        "in the cluster, all of its nodes drift"
    )
