"""DaemonSets that run on every node: a rehearsed node runs no more of their pods than the node that it stands for.

A node takes a number of pods. DaemonSets that only the rehearsed cluster has, such as Cilium's, would take the place of
as many pods. So as many DaemonSets of the snapshot are left out, and another one requests what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from .effective_requests import Amounts, added, amounts, written
from .model import Snapshot, Workload
from .pod import NodeRequirement, Pod

#: Label -> values that nodes of NodePools can have. What admits all of them runs on all nodes.
_ON_ALL_NODES: Final = {
    "kubernetes.io/os": {"linux"},
    "kubernetes.io/arch": {"amd64", "arm64"},
    "kubernetes.azure.com/ebpf-dataplane": {"cilium"},
}
#: Every node of AKS has it, with the name of a resource group. AKS's own DaemonSets require it, and that a node is no
#: virtual node (`kubectl get daemonsets` of AKS; azure-cns of Azure/azure-container-networking).
_OF_AKS: Final = "kubernetes.azure.com/cluster"
NO_VIRTUAL_NODE: Final = NodeRequirement(key="type", operator="NotIn", values=["virtual-kubelet"])
#: Fargate, Auto Mode or hybrid; nodes of NodePools do not have it.
_COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"
#: Effects of taints that keep a DaemonSet's pods off a node.
_EFFECTS: Final = {"NoSchedule", "NoExecute"}


def of_node_pools(snapshot: Snapshot) -> set[str]:
    """Return the names of the nodes that have a NodePool."""
    return {node.name for node in snapshot.nodes if node.node_pool}


def everywhere(workload: Workload, nodes: Collection[str]) -> bool:
    """Return whether a workload is a DaemonSet with a pod on each of these nodes; without nodes, on all to come."""
    return workload.controller.kind == "DaemonSet" and (
        workload.nodes.keys() >= set(nodes) if nodes else _on_all_nodes(workload.pod)
    )


def interchangeable(workload: Workload, nodes: Collection[str]) -> bool:
    """Return whether a workload is a DaemonSet whose pods run on each of these nodes and on all others to come."""
    return everywhere(workload, nodes) and _on_all_nodes(workload.pod)


def _on_all_nodes(pod: Pod) -> bool:
    """Return whether all nodes of NodePools admit a DaemonSet's pod."""
    tolerated = {one.effect for one in pod.tolerations if one.operator == "Exists" and not one.key}
    return (
        (None in tolerated or tolerated >= _EFFECTS)
        and all(_admits_all(key, [value]) for key, value in pod.node_selector.items())
        and _affine_to_all(pod)
        and not pod.topology_spread_constraints
    )


def _affine_to_all(pod: Pod) -> bool:
    if pod.affinity is None:
        return True
    required = pod.affinity.node_affinity.required if pod.affinity.node_affinity else None
    terms = required.node_selector_terms if required else []
    return (
        pod.affinity.pod_affinity is None
        and pod.affinity.pod_anti_affinity is None
        and not any(term.match_fields for term in terms)
        and all(_met_by_all(one) for term in terms for one in term.match_expressions)
    )


def _met_by_all(one: NodeRequirement) -> bool:
    """Return whether all nodes of NodePools meet a requirement."""
    match one.operator:
        case "In":
            return _admits_all(one.key, one.values)
        case "NotIn":
            return one.key == _COMPUTE_TYPE or one == NO_VIRTUAL_NODE
        case "Exists":
            return one.key == _OF_AKS
    return False


def _admits_all(label: str, values: Collection[str]) -> bool:
    return label in _ON_ALL_NODES and set(values) >= _ON_ALL_NODES[label]


def merged(workloads: Sequence[Workload], many: int, nodes: Collection[str]) -> tuple[list[Workload], list[Workload]]:
    """The workloads with up to so many DaemonSets fewer, whose requests another one has, and the others of them.

    Args:
        workloads: The workloads.
        many: How many DaemonSets the cluster has besides.
        nodes: The nodes that have a NodePool.
    """
    alike = [workload for workload in workloads if interchangeable(workload, nodes)]
    alike.sort(key=lambda workload: bool(workload.pod.host_ports))  # what keeps a port of the node goes last
    gone, kept = alike[:many][: max(len(alike) - 1, 0)], alike[-1:]
    if not gone:
        return list(workloads), []
    requests: Amounts = {}
    for workload in (*gone, *kept):
        requests = added(requests, amounts(workload.pod.requests))
    changed = {resource: written(resource, amount) for resource, amount in requests.items()}
    left = [
        one.model_copy(update={"pod": one.pod.model_copy(update={"requests": changed})}) if one in kept else one
        for one in workloads
        if one not in gone
    ]
    return left, gone
