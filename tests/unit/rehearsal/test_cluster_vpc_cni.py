"""The VPC CNI's stand-in: a node is ready when the cloud gives its aws-node addresses, and says why it does not."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rehearsal.cluster import vpc_cni
from rehearsal.cluster.nodes import CNI_ANNOTATION
from rehearsal.cluster.vpc_cni import VpcCni
from rehearsal.timing import Timing
from tests.unit.rehearsal.cluster_world import UnaskedCloud, World

PODS = "/api/v1/pods?k8s-app=aws-node"
ACCOUNT = "/api/v1/namespaces/kube-system/serviceaccounts/aws-node"
ROLE = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/cni"}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "aws-node-1", "namespace": "kube-system", "uid": "1"},
    "spec": {"nodeName": "n", "serviceAccountName": "aws-node"},
}


class Cloud(UnaskedCloud):
    """One that gives addresses, unless a test says why not."""

    def __init__(self) -> None:
        self.refusal = ""
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def network_refusal(
        self, provider_id: str, namespace: str, service_account: str, annotations: Mapping[str, str]
    ) -> str:
        assert (namespace, service_account) == ("kube-system", "aws-node")
        self.asked.append((provider_id, annotations))
        return self.refusal


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(vpc_cni, "_SECONDS_BETWEEN_TRIES", 0.05)
    world = World()
    world.present["/api/v1/nodes/n"] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
    }
    world.present[ACCOUNT] = {"metadata": {"name": "aws-node", "annotations": ROLE}}
    played = VpcCni(world.objects(), cloud, Timing(agent_start=0.05))
    played.start()
    yield world
    played.stop()


def test_a_node_is_marked_when_its_pod_has_addresses(world: World, cloud: Cloud) -> None:
    world.happen(PODS, "ADDED", {**POD, "spec": {"serviceAccountName": "aws-node"}})
    with pytest.raises(queue.Empty):  # it has no node yet
        world.patched.get(timeout=0.2)
    world.happen(PODS, "MODIFIED", POD)
    assert world.patched.get(timeout=5) == (
        "/api/v1/namespaces/kube-system/pods/aws-node-1",
        {"metadata": {"annotations": {"rehearsal.karpstack/ready": "true"}}},
    )
    path, change = world.patched.get(timeout=5)
    assert (path, change["metadata"]["annotations"]) == ("/api/v1/nodes/n", {CNI_ANNOTATION: "aws-vpc-cni"})
    assert cloud.asked == [("aws:///us-east-1a/i-1", ROLE)]


def test_a_pod_without_rights_says_so_once_and_tries_on(world: World, cloud: Cloud) -> None:
    cloud.refusal = "You are not authorized to perform this operation"
    world.happen(PODS, "ADDED", POD)
    told = [world.created.get(timeout=5) for _ in range(2)]
    assert [event["involvedObject"]["kind"] for event in told] == ["Pod", "Node"]
    assert all("You are not authorized" in event["message"] for event in told)
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.3)
    assert world.patched.empty()
    cloud.refusal = ""
    assert world.patched.get(timeout=5)[0].endswith("/pods/aws-node-1")


def test_a_pod_that_is_gone_starts_no_more(world: World, cloud: Cloud) -> None:
    cloud.refusal = "not yet"
    world.happen(PODS, "ADDED", POD)
    world.created.get(timeout=5)
    world.happen(PODS, "DELETED", POD)
    cloud.refusal = ""
    with pytest.raises(queue.Empty):
        world.patched.get(timeout=0.3)
