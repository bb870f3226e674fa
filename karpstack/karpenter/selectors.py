"""Which pods a label selector of Kubernetes selects.

Of PodDisruptionBudgets that also says which pods nobody evicts: an API server refuses to evict a pod that more than one
of them selects, whatever they allow (kubernetes, pkg/registry/core/pod/storage/eviction.go: status 500, and the text
`MORE_THAN_ONE`), and Karpenter counts them as budgets that let nothing go (sigs.k8s.io/karpenter, pkg/utils/pdb).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: How an API server begins to refuse the eviction of a pod that more than one PodDisruptionBudget selects.
MORE_THAN_ONE: Final = "This pod has more than one PodDisruptionBudget"


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector in Kubernetes' words selects what has these labels; an empty one selects everything.

    Args:
        selector: `matchLabels` and `matchExpressions`; None selects nothing, as policy/v1 has it.
        labels: Of a pod, for example.
    """
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _meets(labels, one) for one in selector.get("matchExpressions") or ()
    )


def is_about(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a PodDisruptionBudget selects a pod; both as an API server gives them."""
    there, labels = pod["metadata"].get("namespace"), pod["metadata"].get("labels") or {}
    return bool(there == budget["metadata"]["namespace"]) and selects(
        (budget.get("spec") or {}).get("selector"), labels
    )


def _meets(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    """As `Requirement.Matches` of k8s.io/apimachinery (pkg/labels/selector.go)."""
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
