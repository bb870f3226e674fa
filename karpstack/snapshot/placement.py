"""On which node each pod of a snapshot goes, where the nodes of the snapshot are there: the one that it was on.

The room of a node may be a little less than that of the real one, whose memory Karpenter estimates before it has seen
it. A pod that has no room on its node any more is left to the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from . import claims
from .effective_requests import amounts
from .model import Workload

_PODS = "pods"
_ONE = Decimal(1)


@dataclass(frozen=True)
class Room:
    """A node of the cluster that stands for one of the snapshot.

    Attributes:
        node: Its name.
        zone: Its zone.
        free: Resource -> how much of it no pod has asked for; changed as pods get their place.
    """

    node: str
    zone: str
    free: dict[str, Decimal]

    def take(self, requests: Mapping[str, str], *, must: bool = False) -> bool:
        """Whether a pod has room; if so, or if it is there in any case, it takes it."""
        asked = {_PODS: _ONE, **amounts(requests)}
        asked = {resource: amount for resource, amount in asked.items() if amount}
        if not must and any(self.free.get(resource, Decimal()) < amount for resource, amount in asked.items()):
            return False
        for resource, amount in asked.items():
            self.free[resource] = self.free.get(resource, Decimal()) - amount
        return True


@dataclass(frozen=True)
class Placement:
    """Where pods go.

    Attributes:
        nodes: Name of a workload, as in `Loaded.workloads` -> the node of each of its pods, in the order of their
            numbers where they have some; None for a pod that is left to the scheduler.
        without_room: How many pods had no room on the node that they were on.
    """

    nodes: Mapping[str, list[str | None]]
    without_room: int


def place_pods(workloads: Mapping[str, Workload], rooms: Mapping[str, Room]) -> Placement:
    """Where the pods of workloads go.

    Args:
        workloads: Name -> workload. Pods of DaemonSets get no seat, for they find their nodes by themselves, but have
            their room.
        rooms: Node of the snapshot -> the one that stands for it, as far as there is one.
    """
    others: dict[str, Workload] = {}
    for name, workload in workloads.items():
        if workload.controller.kind != "DaemonSet":
            others[name] = workload
            continue
        for node in workload.nodes.keys() & rooms.keys():
            rooms[node].take(workload.pod.requests, must=True)
    found, without_room = {}, 0
    for name, workload in others.items():
        free: list[Room] = []
        for node, pods in workload.nodes.items():
            if room := rooms.get(node):
                taken = [room for _ in range(pods) if room.take(workload.pod.requests)]
                free += taken
                without_room += pods - len(taken)
        found[name] = [_node_for(free, zones) for zones in claims.zones_of_each(workload)]
    return Placement(found, without_room)


def _node_for(free: list[Room], zones: set[str]) -> str | None:
    """The first of the nodes from which a pod reaches its volumes; it is taken away."""
    for number, room in enumerate(free):
        if not zones or room.zone in zones:
            return free.pop(number).node
    return None
