"""Which PodDisruptionBudgets select a pod."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scale_test.judging.replay import Pod
from whatif.pod_budgets import PodBudget, selecting

POD = Pod("web-1", "shop", "whatif", datetime(2026, 11, 23, tzinfo=UTC), labels={"app": "web", "tier": "front"})


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "none", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector(selector: dict[str, Any] | None, selected: bool) -> None:
    assert PodBudget("shop", "web", selector).selects(POD) is selected


def test_of_its_own_namespace_alone() -> None:
    budgets = [PodBudget("shop", "all", {}), PodBudget("other", "all", {})]
    assert selecting(budgets, [POD]) == ["shop/all"]
