"""What the scheduler keeps room for, as Kubernetes reckons it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from karpstack.snapshot.effective_requests import requests, written


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


ALWAYS = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [asks("500m"), asks("1")]}, {"cpu": "1500m"}),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("2")]}, {"cpu": "3"}),
        # A sidecar runs beside what comes after it, and not beside what was before.
        ({"containers": [asks("1")], "initContainers": [asks("1", **ALWAYS), asks("3")]}, {"cpu": "4"}),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("1", **ALWAYS)]}, {"cpu": "3"}),
        ({"containers": [asks("3")], "initContainers": [asks("1", **ALWAYS), asks("2")]}, {"cpu": "4"}),
        (
            {"containers": [asks("1")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
            {"cpu": "1250m", "memory": "64Mi"},
        ),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, {"nvidia.com/gpu": "1"}),
        (
            {"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]},
            {"cpu": "1"},
        ),
        # What is said of the pod as a whole counts.
        (
            {"containers": [asks("1"), asks("1")], "resources": {"requests": {"cpu": "5", "memory": "1Gi"}}},
            {"cpu": "5", "memory": "1Gi"},
        ),
        ({"containers": [{"resources": {}}, {"resources": None}, {}]}, {}),
        ({"containers": [asks("0")]}, {}),
    ],
)
def test_effective_requests(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert requests(spec) == expected


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", "0.0001", "1m"),
        ("cpu", "2", "2"),
        ("memory", str(3 * 2**30), "3Gi"),
        ("memory", str(1536 * 2**20), "1536Mi"),
        ("memory", "1000.5", "1001"),
        ("hugepages-2Mi", str(2**22), "4Mi"),
        ("acme.example/device", "1024", "1024"),
    ],
)
def test_an_amount_as_a_quantity(resource: str, amount: str, text: str) -> None:
    assert written(resource, Decimal(amount)) == text
