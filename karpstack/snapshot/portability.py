"""What the pods of a snapshot need that only the cluster has which they come from: its nodes, its cloud, its region."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from karpstack.karpenter.instance_types import INSTANCE_TYPE, REGION, ZONE

from .model import Cluster
from .pod import NodeSelectorTerm, Pod

HOSTNAME: Final = "kubernetes.io/hostname"
#: Cloud -> the domains of labels that its nodes have and no other's.
_DOMAINS: Final = {
    "aws": ("karpenter.k8s.aws", "eks.amazonaws.com", "topology.k8s.aws", "topology.ebs.csi.aws.com"),
    "azure": ("karpenter.azure.com", "kubernetes.azure.com", "topology.disk.csi.azure.com"),
    "gce": ("cloud.google.com", "topology.gke.io"),
}
_OLD: Final = {
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
}


@dataclass(frozen=True)
class Place:
    """Where a snapshot is loaded: a cloud and a region of it; empty where it is not known.

    Attributes:
        cloud: `aws` or `azure`.
        region: The region.
    """

    cloud: str = ""
    region: str = ""

    def same_region(self, cluster: Cluster) -> bool:
        """Whether zones mean here what they meant there, as far as is known."""
        if not self.cloud or not cluster.cloud:
            return True
        return self.cloud == cluster.cloud and (not self.region or self.region == (cluster.region or self.region))


def placement_obstacle(pod: Pod, cluster: Cluster, place: Place) -> str | None:
    """Return why no node of this place can hold the pod, by the pod's requirements; None if one may.

    What it merely prefers is no reason.
    """
    foreign = _foreign(cluster, place)
    reasons = [reason for key, value in pod.node_selector.items() if (reason := foreign(key, [value]))]
    required = pod.affinity and pod.affinity.node_affinity and pod.affinity.node_affinity.required
    if required and required.node_selector_terms:
        found = [next(_of_term(term, foreign), None) for term in required.node_selector_terms]
        reasons += [found[0]] if found[0] and all(found) else []
    return reasons[0] if reasons else None


def _of_term(term: NodeSelectorTerm, foreign: Callable[[str, list[str]], str | None]) -> Iterator[str]:
    for field in term.match_fields:
        if field.operator == "In":
            yield f"a node that is called {' or '.join(field.values)}, and nodes get other names here"
    for one in term.match_expressions:
        if one.operator not in ("NotIn", "DoesNotExist") and (reason := foreign(one.key, one.values)):
            yield reason


def _foreign(cluster: Cluster, place: Place) -> Callable[[str, list[str]], str | None]:
    """Why no node here has one of some values of a label."""
    other_cloud = bool(place.cloud and cluster.cloud and place.cloud != cluster.cloud)
    same_region = place.same_region(cluster)

    def reason(key: str, values: list[str]) -> str | None:
        shown = f"{key} {' or '.join(values)}".strip()
        key = _OLD.get(key, key)
        if key == HOSTNAME and values:
            return f"{shown}, and nodes get other names here"
        domain = key.rpartition("/")[0]
        for cloud, domains in _DOMAINS.items():
            # Those of another cloud than this place's, which may be known though the snapshot's own is not.
            if place.cloud and cloud != place.cloud and domain in domains:
                return f"{shown}, which nodes of {cloud} have and those of {place.cloud} have not"
        if not values:
            return None
        if other_cloud and key == INSTANCE_TYPE:
            return f"{shown}, which is {cluster.cloud}'s and not {place.cloud}'s"
        if not same_region and key in (ZONE, REGION):
            return f"{shown}, and the nodes here are in {' '.join((place.cloud, place.region)).strip()}"
        return None

    return reason
