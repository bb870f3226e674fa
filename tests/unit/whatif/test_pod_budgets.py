"""Which PodDisruptionBudgets select a pod."""

from __future__ import annotations

from datetime import UTC, datetime

from scale_test.judging.replay import Pod
from whatif.pod_budgets import PodBudget, selecting

POD = Pod("web-1", "shop", "whatif", datetime(2026, 11, 23, tzinfo=UTC), labels={"app": "web", "tier": "front"})


def test_of_its_own_namespace_alone() -> None:
    budgets = [PodBudget("shop", "all", {}), PodBudget("other", "all", {}), PodBudget("shop", "none", None)]
    assert selecting(budgets, [POD]) == ["shop/all"]
