"""Which taints keep pods off."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.karpenter.taints import untolerated

GPU = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
KEPT_OFF = ["nvidia.com/gpu=true:NoSchedule"]


@pytest.mark.parametrize(
    ("toleration", "kept_off"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, []),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, []),
        ({"key": "nvidia.com/gpu", "value": "true"}, []),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}, []),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, KEPT_OFF),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "false"}, KEPT_OFF),
        ({"key": "nvidia.com/gpu"}, KEPT_OFF),
        ({"key": "amd.com/gpu", "operator": "Exists"}, KEPT_OFF),
        # What it means is not known here, so that nothing is certain.
        ({"key": "nvidia.com/gpu", "operator": "Gt", "value": "3"}, []),
    ],
    ids=str,
)
def test_a_toleration_is_for_key_value_and_effect(toleration: dict[str, Any], kept_off: list[str]) -> None:
    assert untolerated([GPU], [toleration]) == kept_off


def test_without_a_toleration_every_hard_taint_keeps_off_and_no_soft_one() -> None:
    taints = [
        {"key": "a", "effect": "NoExecute"},
        {"key": "b", "value": "c", "effect": "NoSchedule"},
        {"key": "d", "effect": "PreferNoSchedule"},
    ]
    assert untolerated(taints, []) == ["a:NoExecute", "b=c:NoSchedule"]
