"""Startup taints of others than Cilium: who lifts them, and which ones nobody does."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.cluster.startup_taints import StartupTaints, never_lifted
from tests.unit.rehearsal.cluster_world import World

NODES = "/api/v1/nodes"
EBS = {"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
EFS = {"key": "efs.csi.aws.com/agent-not-ready", "value": "true", "effect": "NoSchedule"}
OTHER = {"key": "example.com/not-yet", "effect": "NoSchedule"}


def node(ready: str, *taints: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "resourceVersion": "1"},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    players = StartupTaints(world.objects())
    players.start()
    yield world
    players.stop()


def test_drivers_lift_theirs_when_the_node_is_ready(world: World) -> None:
    world.happen(NODES, "ADDED", node("False", EBS, OTHER))
    with pytest.raises(queue.Empty):
        world.patched.get(timeout=0.3)
    world.happen(NODES, "MODIFIED", node("True", EBS, OTHER, EFS))
    path, change = world.patched.get(timeout=5)
    assert (path, change["spec"]) == ("/api/v1/nodes/n", {"taints": [OTHER]})
    assert change["metadata"] == {"resourceVersion": "1"}


@pytest.mark.parametrize("taints", [(), (OTHER,)])
def test_others_are_left_alone(world: World, taints: tuple[dict[str, str], ...]) -> None:
    world.happen(NODES, "ADDED", node("True", *taints))
    with pytest.raises(queue.Empty):
        world.patched.get(timeout=0.3)


def test_what_nobody_lifts_is_said() -> None:
    def pool(*taints: Any) -> dict[str, Any]:
        return {"template": {"spec": {"startupTaints": list(taints)}}}

    cilium = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
    assert list(never_lifted({"a": pool(cilium, EBS, EFS), "b": {}})) == []
    (said,) = never_lifted({"a": pool(EBS, OTHER)})
    assert said.startswith("NodePool a: nobody lifts its startup taint example.com/not-yet in a rehearsal")
    # What is of another shape, the program's settings refuse.
    assert (
        list(never_lifted({"a": [], "b": pool("x", {"key": 5}), "c": {"template": {"spec": {"startupTaints": 5}}}}))
        == []
    )
