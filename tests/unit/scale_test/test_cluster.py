"""Paths of the API."""

from __future__ import annotations

import pytest

from karpstack.scale_test.acting import cluster


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("NodePool", "nodepools"),
        ("EC2NodeClass", "ec2nodeclasses"),
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        ("NodeOverlay", "nodeoverlays"),
    ],
)
def test_the_plural_of_a_kind(kind: str, plural: str) -> None:
    assert cluster._paths("group/v1", kind) == f"/apis/group/v1/{plural}"
