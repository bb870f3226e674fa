"""Cilium's stand-in: what its agents could reach, and what its operator does to taints."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.cluster.cilium import TAINT, changed_taints, unreachable

ENDPOINT = "https://127.0.0.1:6443"
OTHER = {"key": "CriticalAddonsOnly", "effect": "NoSchedule"}
STARTUP = {"key": TAINT, "value": "true", "effect": "NoExecute"}


def agent(host: str | None, port: str | None) -> dict[str, Any]:
    pairs = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    variables = [{"name": name, "value": value} for name, value in pairs.items() if value is not None]
    return {
        "spec": {
            "initContainers": [{"name": "config", "env": variables}, {"name": "mount-cgroup"}],
            "containers": [{"name": "cilium-agent", "env": variables}],
        }
    }


def test_an_agent_with_the_endpoint_reaches_the_api_server() -> None:
    assert unreachable(agent("127.0.0.1", "6443"), ENDPOINT, kube_proxy=False) == ""


@pytest.mark.parametrize(("host", "port"), [("10.0.0.1", "6443"), ("127.0.0.1", "443"), ("127.0.0.1", None)])
def test_an_agent_with_another_endpoint_does_not_and_the_text_has_both(host: str, port: str | None) -> None:
    text = unreachable(agent(host, port), ENDPOINT, kube_proxy=True)
    assert f"{host}:{port or 443}" in text
    assert "127.0.0.1:6443" in text


def test_an_agent_without_an_endpoint_needs_kube_proxy() -> None:
    assert "k8sServiceHost=127.0.0.1" in unreachable(agent(None, None), ENDPOINT, kube_proxy=False)
    assert unreachable(agent(None, None), ENDPOINT, kube_proxy=True) == ""


def test_a_public_endpoint_has_the_port_of_https() -> None:
    assert unreachable(agent("abc.eks.amazonaws.com", "443"), "https://abc.eks.amazonaws.com", kube_proxy=False) == ""


def test_the_taint_is_lifted_when_the_agent_is_up_whatever_its_effect() -> None:
    assert changed_taints([OTHER, STARTUP], TAINT, up=True, set_taint=True, remove_taint=True) == [OTHER]


def test_a_node_that_registered_without_the_taint_gets_it_without_eviction() -> None:
    assert changed_taints([OTHER], TAINT, up=False, set_taint=True, remove_taint=True) == [
        OTHER,
        {"key": TAINT, "effect": "NoSchedule"},
    ]


@pytest.mark.parametrize(
    ("taints", "up", "set_taint", "remove_taint"),
    [
        ([OTHER], True, True, True),
        ([STARTUP], False, True, True),
        ([OTHER], False, False, True),
        ([STARTUP], True, True, False),
    ],
)
def test_taints_are_left_alone_otherwise(
    taints: list[dict[str, str]], up: bool, set_taint: bool, remove_taint: bool
) -> None:
    assert changed_taints(taints, TAINT, up=up, set_taint=set_taint, remove_taint=remove_taint) is None
