"""What a label selector selects."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.karpenter.selectors import selects

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "none", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}, False),
    ],
)
def test_a_selector(selector: dict[str, Any] | None, selected: bool) -> None:
    assert selects(selector, LABELS) is selected
