"""DaemonSets that run on every node: a rehearsed node runs no more of their pods than the node that it stands for.

A node takes a number of pods. DaemonSets that only the rehearsed cluster has, such as Cilium's, would take the place of
as many pods. So as many DaemonSets of the snapshot are left out, and another one requests what they did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from .effective_requests import Amounts, added, amounts, written
from .model import Snapshot, Workload
from .pod import Pod

#: Label -> values that nodes of NodePools can have. What admits all of them runs on all nodes.
_ON_ALL_NODES: Final = {"kubernetes.io/os": {"linux"}, "kubernetes.io/arch": {"amd64", "arm64"}}
#: Fargate, Auto Mode or hybrid; nodes of NodePools do not have it.
_COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"


def of_node_pools(snapshot: Snapshot) -> set[str]:
    """Return the names of the nodes that have a NodePool."""
    return {node.name for node in snapshot.nodes if node.node_pool}


def everywhere(workload: Workload, nodes: Collection[str]) -> bool:
    """Return whether a workload is a DaemonSet with a pod on each of these nodes."""
    return workload.controller.kind == "DaemonSet" and workload.nodes.keys() >= set(nodes)


def interchangeable(workload: Workload, nodes: Collection[str]) -> bool:
    """Return whether a workload is a DaemonSet whose pods run on each of these nodes and on all others to come."""
    pod = workload.pod
    return (
        everywhere(workload, nodes)
        and any(one.operator == "Exists" and not one.key and not one.effect for one in pod.tolerations)
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
        and all(
            (one.key == _COMPUTE_TYPE and one.operator == "NotIn")
            or (one.operator == "In" and _admits_all(one.key, one.values))
            for term in terms
            for one in term.match_expressions
        )
    )


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
