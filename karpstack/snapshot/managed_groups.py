"""Labels that nodes of the clouds' own node groups have, and no node that Karpenter makes.

EKS: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html, and eksctl's. AKS:
https://learn.microsoft.com/azure/aks/use-labels; Azure's provider restricts them (pkg/apis/v1beta1/labels.go), but
where AKS itself makes Karpenter's machines, they are of an agent pool too. So what a node of a NodePool has, counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from karpstack.karpenter.requirements import Requirement

from .api_nodes import pool_keys
from .model import Snapshot

_AKS: Final = "kubernetes.azure.com/"
_EKS: Final = "eks.amazonaws.com/"
#: Cloud -> keys.
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "aws": frozenset(
        {
            f"{_EKS}capacityType",
            f"{_EKS}compute-type",  # of EKS Auto Mode, Fargate and hybrid nodes
            f"{_EKS}nodegroup",
            f"{_EKS}nodegroup-image",
            f"{_EKS}sourceLaunchTemplateId",
            f"{_EKS}sourceLaunchTemplateVersion",
            "alpha.eksctl.io/cluster-name",
            "alpha.eksctl.io/nodegroup-name",
        }
    ),
    "azure": frozenset(
        {
            "accelerator",
            "agentpool",
            "storageprofile",
            "storagetier",
            f"{_AKS}accelerator",
            f"{_AKS}agentpool",
            f"{_AKS}storageprofile",
            f"{_AKS}storagetier",
        }
    ),
}


def labels_of_groups(snapshot: Snapshot) -> frozenset[str]:
    """Keys of labels that no NodePool of a snapshot gives, and none of its nodes has."""
    there = {key for node in snapshot.nodes if node.node_pool for key in node.labels}
    return _KEYS.get(snapshot.cluster.cloud or "", frozenset()) - pool_keys(snapshot.node_pools) - there


def only_in_groups(choices: Sequence[Sequence[Requirement]], keys: Collection[str]) -> list[Requirement]:
    """What of each way that pods leave is about such a label and needs it; empty where a way is without."""
    needed = [[one for one in choice if one.key in keys and not one.admits(None)] for choice in choices]
    return [one for choice in needed for one in choice] if all(needed) else []
