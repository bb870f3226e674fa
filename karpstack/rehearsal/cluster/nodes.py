"""Node objects as kubelets register them. Pure functions: they ask nobody and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karpstack.rehearsal.cluster.cloud import Machine
from karpstack.rehearsal.cluster.objects import Object, has_condition

#: Marks a node as one that kwok plays.
PLAYED = {"kwok.x-k8s.io/node": "fake"}
#: Set by the Cilium stand-in when a node's agent is up; the stage node-ready waits for it.
CNI_ANNOTATION = "rehearsal.karpstack/cni"
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}

_NOT_READY = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network "
    "plugin returns error: cni plugin not initialized"
)
_HEALTHY = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}

Taint = Mapping[str, str]


def group_node(machine: Machine, taints: Iterable[Taint], labels: Mapping[str, str]) -> Object:
    """The node of a machine in a managed group.

    Raises:
        ValueError: The machine does not say its capacity.
    """
    if not machine.capacity:
        raise ValueError(
            f"the machine {machine.provider_id} has no capacity, so no pod would fit on its node; the "
            "cloud must fill Machine.capacity for nodes of managed groups"
        )
    return _node(machine, taints, labels, machine.capacity, machine.allocatable or machine.capacity)


def claim_node(machine: Machine, claim: Mapping[str, Any]) -> Object:
    """The node of a machine that Karpenter launched for a NodeClaim.

    Its taints are those that Karpenter's user data gives the kubelet: unregistered, the claim's and its startup
    taints. What it is, the machine says; how much it has, the claim, which Karpenter has reckoned for this type and its
    node class: most pods, volumes, instance stores, and the kubelet's reservations and thresholds are in it
    (`computeCapacity` and what follows it in aws/karpenter-provider-aws, pkg/providers/instancetype/types.go; the same
    file of Azure/karpenter-provider-azure).
    """
    spec, status = claim["spec"], claim["status"]
    taints = [UNREGISTERED, *spec.get("taints", []), *spec.get("startupTaints", [])]
    capacity = status.get("capacity") or machine.capacity
    allocatable = status.get("allocatable") or machine.allocatable or capacity
    return _node(machine, taints, claim["metadata"].get("labels", {}), capacity, allocatable)


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether the node's Ready condition is True."""
    return has_condition(node, "Ready")


def without_taint(taints: Iterable[Taint], key: str) -> list[dict[str, str]]:
    """The taints but those of a key."""
    return [dict(taint) for taint in taints if taint["key"] != key]


def has_taint(taints: Iterable[Taint], key: str) -> bool:
    """Whether one of the taints has that key."""
    return any(taint["key"] == key for taint in taints)


def _node(
    machine: Machine,
    taints: Iterable[Taint],
    labels: Mapping[str, str],
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> Object:
    architecture = machine.labels.get("kubernetes.io/arch", "amd64")
    addresses = [{"type": "Hostname", "address": machine.node_name}]
    if machine.internal_ip:
        addresses.insert(0, {"type": "InternalIP", "address": machine.internal_ip})
    conditions = [
        {"type": kind, "status": "False", "reason": reason, "message": f"kubelet: {reason}"}
        for kind, reason in _HEALTHY.items()
    ]
    conditions.append({"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": _NOT_READY})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.node_name,
            "annotations": dict(PLAYED),
            "labels": {
                "kubernetes.io/hostname": machine.node_name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                **labels,
                **machine.labels,
            },
        },
        "spec": {"providerID": machine.provider_id, "taints": _unique(taints)},
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(allocatable),
            "addresses": addresses,
            "conditions": conditions,
            "nodeInfo": {
                "architecture": architecture,
                "operatingSystem": machine.labels.get("kubernetes.io/os", "linux"),
                # Karpenter compares it with the cluster's version: another one would be drift.
                "kubeletVersion": machine.kubelet_version,
                "kubeProxyVersion": "",
                "containerRuntimeVersion": "containerd://2.1.5",
                "kernelVersion": "rehearsal",
                "osImage": "rehearsal",
                "machineID": machine.node_name,
                "systemUUID": machine.node_name,
                "bootID": machine.node_name,
            },
        },
    }


def _unique(taints: Iterable[Taint]) -> list[dict[str, str]]:
    """As a kubelet does: of taints with the same key and effect, the first counts; the API server refuses two."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for taint in taints:
        found.setdefault((taint["key"], taint["effect"]), dict(taint))
    return list(found.values())
