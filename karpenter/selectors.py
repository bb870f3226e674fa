"""Which labels a label selector selects, as the API server has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects what has these labels: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _meets(labels, one) for one in selector.get("matchExpressions") or ()
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
