"""Workloads whose pods nobody evicts: more than one PodDisruptionBudget selects them (`karpenter.selectors`)."""

from __future__ import annotations

from collections.abc import Iterator

from karpstack.karpenter.selectors import selects

from .manifests import as_kubernetes
from .model import Snapshot

#: What a drain skips, and does not evict.
_STAY = ("DaemonSet", "Node")


def unevictable(snapshot: Snapshot) -> list[str]:
    """A sentence for each such workload."""
    return [
        f"{workload.namespace}/{workload.name}: {' and '.join(budgets)} select its pods ({workload.replicas}), and "
        "the eviction API takes no pod with more than one PodDisruptionBudget: no node of theirs is consolidated, nor "
        "drained before its terminationGracePeriod; leave one of them"
        for workload in snapshot.workloads
        if workload.controller.kind not in _STAY and workload.replicas
        if len(budgets := sorted(_selecting(snapshot, workload.namespace, workload.pod.labels))) > 1
    ]


def _selecting(snapshot: Snapshot, namespace: str, labels: dict[str, str]) -> Iterator[str]:
    for budget in snapshot.pod_disruption_budgets:
        selector = None if budget.selector is None else as_kubernetes(budget.selector)
        if budget.namespace == namespace and selects(selector, labels):
            yield budget.name
