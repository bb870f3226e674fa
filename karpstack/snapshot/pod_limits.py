"""How many pods the nodes of a cluster take, and how a rehearsed node takes as many.

Karpenter decides it, and so it does here. On AWS, without `maxPods` in the EC2NodeClass, a node takes what its network
interfaces have addresses for: (interfaces - reserved) x (addresses - 1) + 2. The reserved ones are the controller's
setting `reservedENIs`, for custom networking. (`ENILimitedPods` and `pods` in pkg/providers/instancetype/types.go of
aws/karpenter-provider-aws at 1d927085, 2026-08-21. misc/eni-max-pods.txt of aws/amazon-vpc-cni-k8s, 2026-08-11, has
the same numbers but for four types with several network cards, of which Karpenter counts the first.) It knows no prefix
delegation: who uses that sets `maxPods`. On Azure, without `maxPods` in the
AKSNodeClass, it is one number by the network: 250 with an overlay or without a plugin, 30 with addresses of the
subnet, else 110 (`GetMaxPods` in pkg/utils/utils.go of Azure/karpenter-provider-azure at 352646f5, 2026-08-21).

Where a snapshot lacks the controller's settings, the nodes say what Karpenter's sum came to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.quantities import quantity

from .model import NodeClass, Snapshot

_VPC_CNI: Final = "aws-node"
_SYSTEM: Final = "kube-system"
_AWS: Final = "aws"
_MOST_RESERVED: Final = 3


class Interfaces(NamedTuple):
    """Nodes that take as many pods as their network interfaces have addresses for.

    Attributes:
        reserved: Interfaces that Karpenter leaves out.
        seen: Whether nodes of the snapshot say so; otherwise it is assumed.
    """

    reserved: int
    seen: bool


def interfaces(snapshot: Snapshot) -> Interfaces | None:
    """Return how interfaces limit the pods of nodes whose node class does not say; None if they do not."""
    if snapshot.cluster.cloud != _AWS:
        return None
    named = {one.name for one in snapshot.workloads if one.controller.kind == "DaemonSet" and one.namespace == _SYSTEM}
    silent = {one.name for one in snapshot.node_classes if not limited(one.spec)}
    pools = {one.name for one in snapshot.node_pools if class_name(one.spec) in silent}
    types = Facts.load(_AWS).types
    pods = {
        (most, round(quantity(node.capacity["pods"])))
        for node in snapshot.nodes
        if node.node_pool in pools and "pods" in node.capacity
        if node.instance_type in types and (most := types[node.instance_type].max_pods)
    }
    if not pods:
        return Interfaces(0, False) if _VPC_CNI in named else None
    for reserved in range(_MOST_RESERVED + 1):
        if all(_fits(most, found, reserved) for most, found in pods):
            return Interfaces(reserved, True)
    return None


def _fits(most: int, found: int, reserved: int) -> bool:
    """Whether a node can take so many pods with some interfaces left out, of so many with all of them."""
    if not reserved:
        return found == most
    each, rest = divmod(most - found, reserved)  # pods of one interface
    return each > 0 and not rest and (most - 2) % each == 0 and found > 2


def own_limit(spec: Mapping[str, Any]) -> Any:
    """Return how many pods a node of a class takes, as far as the class says; None where it does not."""
    return spec.get("maxPods") or (spec.get("kubelet") or {}).get("maxPods")


def limited(spec: Mapping[str, Any]) -> bool:
    """Return whether a class says how many pods a node takes, in itself or for each core."""
    return bool(own_limit(spec) or (spec.get("kubelet") or {}).get("podsPerCore"))


def class_name(spec: Mapping[str, Any]) -> Any:
    """Return the name of a NodePool's node class."""
    return (((spec.get("template") or {}).get("spec") or {}).get("nodeClassRef") or {}).get("name")


def pods_of(snapshot: Snapshot, of: NodeClass) -> set[int]:
    """Return how many pods the nodes of a node class that does not say it take, as far as nodes show.

    On Azure the network decides it: a node class without such nodes is like the others that do not say it either.

    Args:
        snapshot: The cluster that the nodes are of. Its node class of this name may say it, and its nodes then do not.
        of: The node class.
    """
    silent = {one.name for one in snapshot.node_classes if not limited(one.spec)}
    if limited(of.spec):
        return set()
    found = _seen(snapshot, silent & {of.name})
    return found or (_seen(snapshot, silent) if snapshot.cluster.cloud == "azure" else set())


def _seen(snapshot: Snapshot, classes: Collection[str]) -> set[int]:
    pools = {one.name for one in snapshot.node_pools if class_name(one.spec) in classes}
    return {
        round(quantity(node.capacity["pods"]))
        for node in snapshot.nodes
        if node.node_pool in pools and "pods" in node.capacity
    }
