"""Changes that make nodes drift in the cluster, and not in its rehearsal.

A stack file says more than manifests do. What a node class leaves out is that of the cluster's nodes, and what a
NodePool leaves out of what nodes with Cilium need, the program adds. If a change adds the same, or removes it, nothing
changes in the rehearsal. In the cluster, Karpenter's hash of the object becomes another, so all of its nodes drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .drift import NODE_POOL, SELECTING, differing
from .model import Snapshot
from .stack_file import StackFile


def hidden(before: Snapshot, after: Snapshot, first: StackFile, second: StackFile) -> list[str]:
    """Say which node classes and NodePools change for the cluster and not for its rehearsal: a sentence each.

    Args:
        before, after: The snapshots.
        first, second: Their stack files.
    """
    cloud = str(after.cluster.cloud)
    classes = [(one.kind, one.name, one.spec, first.node_classes, second.node_classes) for one in after.node_classes]
    pools = [(NODE_POOL, one.name, one.spec, first.node_pools, second.node_pools) for one in after.node_pools]
    known: dict[tuple[str, str], Mapping[str, Any]] = {
        **{(one.kind, one.name): one.spec for one in before.node_classes},
        **{(NODE_POOL, one.name): one.spec for one in before.node_pools},
    }
    said = []
    for kind, name, spec, old, new in (*classes, *pools):
        if (kind, name) not in known:
            continue
        # A changed image is refused, or told, where manifests are applied.
        real = differing(cloud, kind, known[kind, name], spec) - SELECTING
        if real and not differing(cloud, kind, old[name], new[name]) - SELECTING:
            said.append(
                f"{kind} {name}: {', '.join(sorted(real))} changes, but rehearsed nodes are the same before and after; "
                "in the cluster, all of its nodes drift"
            )
    return said
