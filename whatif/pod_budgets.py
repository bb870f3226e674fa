"""PodDisruptionBudgets of the workload: which of them select a pod. The timeline has none; the snapshot does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from karpenter.selectors import selects
from scale_test.judging.replay import Pod


@dataclass(frozen=True)
class PodBudget:
    """A PodDisruptionBudget as it is in the rehearsed cluster.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        selector: Its label selector in Kubernetes' words; None selects nothing.
    """

    namespace: str
    name: str
    selector: Mapping[str, Any] | None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """From its manifest."""
        metadata = manifest["metadata"]
        return cls(metadata["namespace"], metadata["name"], manifest["spec"].get("selector"))

    def selects(self, pod: Pod) -> bool:
        """Whether a pod is one of those that it is about."""
        return pod.namespace == self.namespace and selects(self.selector, pod.labels)


def selecting(budgets: Iterable[PodBudget], pods: Iterable[Pod]) -> list[str]:
    """Namespace and name of those that select any of the pods."""
    among = list(pods)
    return sorted(f"{one.namespace}/{one.name}" for one in budgets if any(one.selects(pod) for pod in among))
