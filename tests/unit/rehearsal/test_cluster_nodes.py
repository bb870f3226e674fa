"""Nodes as kubelets register them."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.rehearsal.cluster.cloud import Machine
from karpstack.rehearsal.cluster.nodes import PLAYED, claim_node, group_node, is_ready

MACHINE = Machine(
    "aws:///us-east-1a/i-1",
    "ip-10-0-0-1.ec2.internal",
    {"kubernetes.io/arch": "arm64", "node.kubernetes.io/instance-type": "m6g.large"},
    "v1.36.3",
    internal_ip="10.0.0.1",
)
CILIUM = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}


def claim(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "default-1",
            "labels": {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "m5.large"},
        },
        "spec": spec,
        "status": {"providerID": MACHINE.provider_id, "capacity": {"cpu": "2"}, "allocatable": {"cpu": "1930m"}},
    }


def test_a_node_registers_with_the_claims_taints_and_is_not_ready() -> None:
    node = claim_node(
        MACHINE, claim(taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}], startupTaints=[CILIUM])
    )
    assert node["spec"] == {
        "providerID": MACHINE.provider_id,
        "taints": [
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
            {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
            CILIUM,
        ],
    }
    assert not is_ready(node)
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    assert ready["reason"] == "KubeletNotReady"
    assert "cni plugin not initialized" in ready["message"]


def test_the_claim_gives_capacity_and_the_machine_says_what_it_is() -> None:
    node = claim_node(MACHINE, claim())
    assert (node["status"]["capacity"], node["status"]["allocatable"]) == ({"cpu": "2"}, {"cpu": "1930m"})
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert node["status"]["nodeInfo"]["architecture"] == "arm64"
    assert node["metadata"]["labels"]["karpenter.sh/nodepool"] == "default"
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m6g.large"
    assert node["metadata"]["annotations"] == PLAYED
    assert {"type": "InternalIP", "address": "10.0.0.1"} in node["status"]["addresses"]


def test_how_much_a_node_has_is_what_karpenter_reckoned_with_the_node_class() -> None:
    machine = Machine("p", "n", capacity={"cpu": "2", "pods": "29"}, allocatable={"cpu": "1900m", "pods": "29"})
    reckoned = {"cpu": "2", "pods": "110", "ephemeral-storage": "50Gi"}
    left = {**reckoned, "cpu": "1930m", "ephemeral-storage": "44Gi"}

    status = claim_node(machine, {**claim(), "status": {"capacity": reckoned, "allocatable": left}})["status"]
    assert (status["capacity"], status["allocatable"]) == (reckoned, left)

    status = claim_node(machine, {**claim(), "status": {}})["status"]
    assert (status["capacity"], status["allocatable"]) == (machine.capacity, machine.allocatable)


def test_a_taint_that_is_given_twice_is_registered_once() -> None:
    node = claim_node(MACHINE, claim(taints=[CILIUM], startupTaints=[CILIUM]))
    assert [taint["key"] for taint in node["spec"]["taints"]].count(CILIUM["key"]) == 1


def test_a_node_of_a_group_needs_the_machines_capacity() -> None:
    with pytest.raises(ValueError, match="aws:///us-east-1a/i-1 has no capacity"):
        group_node(MACHINE, [], {})
    machine = Machine("p", "n", capacity={"cpu": "2"})
    node = group_node(machine, [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}], {"a": "b"})
    assert node["status"]["allocatable"] == {"cpu": "2"}
    assert node["metadata"]["labels"]["a"] == "b"
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["CriticalAddonsOnly"]
