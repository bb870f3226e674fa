"""Workloads whose pods nobody evicts: more than one PodDisruptionBudget selects them (`karpenter.selectors`)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from karpstack.karpenter.selectors import selects

from .manifests import as_kubernetes
from .model import Snapshot

#: What a drain skips, and does not evict.
_STAY = ("DaemonSet", "Node")


def unevictable(snapshot: Snapshot) -> list[str]:
    """A sentence for each such workload."""
    known: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for budget in snapshot.pod_disruption_budgets:
        if budget.selector is not None:
            known[budget.namespace].append((budget.name, as_kubernetes(budget.selector)))
    return [
        f"{workload.namespace}/{workload.name}: {' and '.join(budgets)} select its pods ({workload.replicas}), and "
        "the eviction API takes no pod with more than one PodDisruptionBudget: no node of theirs is consolidated, nor "
        "drained before its terminationGracePeriod; leave one of them"
        for workload in snapshot.workloads
        if workload.controller.kind not in _STAY and workload.replicas
        if len(budgets := sorted(name for name, of in known[workload.namespace] if selects(of, workload.pod.labels)))
        > 1
    ]
