"""Cilium's stand-in: what its agents could reach, and what its operator does to taints."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.cluster.cilium import TAINT, Cilium, changed_taints, unreachable
from rehearsal.cluster.nodes import CNI_ANNOTATION
from rehearsal.timing import Timing
from tests.unit.rehearsal.cluster_world import World

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


NODES, AGENTS, OPERATORS = "/api/v1/nodes", "/api/v1/pods?k8s-app=cilium", "/api/v1/pods?io.cilium/app=operator"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "resourceVersion": "1"},
    "spec": {"taints": [OTHER]},
}


def pod(name: str, spec: dict[str, Any], phase: str = "Pending") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "uid": name},
        "spec": {"nodeName": "n", **spec},
        "status": {"phase": phase},
    }


def operator() -> dict[str, Any]:
    variables = agent("127.0.0.1", "6443")["spec"]["containers"][0]["env"]
    return pod("operator", {"containers": [{"name": "cilium-operator", "env": variables}]}, "Running")


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.present["/api/v1/namespaces/kube-system/configmaps/cilium-config"] = {
        "data": {
            "set-cilium-node-taints": "true",
            "remove-cilium-node-taints": "true",
            "set-cilium-is-up-condition": "true",
            "agent-not-ready-taint-key": TAINT,
        }
    }
    cilium = Cilium(world.objects(), ENDPOINT, Timing(agent_start=0.05))
    cilium.start()
    yield world
    cilium.stop()


def test_a_node_is_marked_when_its_agent_has_started(world: World) -> None:
    world.happen(NODES, "ADDED", NODE)
    world.happen(AGENTS, "ADDED", pod("agent", agent("127.0.0.1", "6443")["spec"]))
    with pytest.raises(queue.Empty):  # an agent waits for the operator
        world.patched.get(timeout=0.3)
    world.happen(OPERATORS, "ADDED", operator())
    sent = [world.patched.get(timeout=5) for _ in range(4)]
    assert sent[0][1]["spec"]["taints"] == [OTHER, {"key": TAINT, "effect": "NoSchedule"}]
    assert (sent[1][0], sent[1][1]["metadata"]["annotations"]) == (
        "/api/v1/namespaces/kube-system/pods/agent",
        {"rehearsal.karpstack/ready": "true"},
    )
    assert sent[2][1]["spec"]["taints"] == [OTHER]
    assert sent[2][1]["metadata"]["annotations"] == {CNI_ANNOTATION: "cilium"}
    condition = sent[3][1]["status"]["conditions"][0]
    assert condition["reason"] == "CiliumIsUp"
    assert condition["lastHeartbeatTime"] == condition["lastTransitionTime"] != ""


def test_an_agent_that_cannot_reach_the_api_server_never_starts_and_says_why(world: World) -> None:
    world.happen(NODES, "ADDED", {**NODE, "spec": {"taints": [STARTUP]}})
    world.happen(OPERATORS, "ADDED", operator())
    world.happen(AGENTS, "ADDED", pod("agent", agent(None, None)["spec"]))
    told = [world.created.get(timeout=5) for _ in range(2)]
    assert [event["involvedObject"]["kind"] for event in told] == ["Pod", "Node"]
    assert all("k8sServiceHost=127.0.0.1" in event["message"] for event in told)
    with pytest.raises(queue.Empty):
        world.patched.get(timeout=0.3)
