"""Pods as workloads: those of one controller that are alike in all that scheduling depends on are one.

All pods of a DaemonSet are one workload, because each node of a cluster runs one pod of every DaemonSet. Pods of one
DaemonSet differ during a roll-out, with the update strategy OnDelete, or if something changes their requests.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from .api_pod import OF_CONTROLLERS
from .api_volumes import Mounted
from .effective_requests import amounts, largest, written
from .left_out import Ledger
from .model import Controller, Workload
from .pod import Pod, Volume, VolumePlace

#: A name without a number that is too long for one.
_LONGEST: Final = 240
_DAEMON_SET: Final = "DaemonSet"
#: What is left out of pods of a DaemonSet, and why.
_DIFFERENCES: Final = (
    "pods of DaemonSets that differ from most pods of their DaemonSet",
    "the snapshot has one kind of pod for each DaemonSet: the most frequent, with the largest requests of all",
)


@dataclass(frozen=True)
class Owner:
    """What keeps pods.

    Attributes:
        namespace: Its namespace.
        controller: What it is.
        name: Its name.
    """

    namespace: str
    controller: Controller
    name: str


@dataclass(frozen=True)
class Member:
    """A pod of the cluster, or several that are not made yet.

    Attributes:
        owner: What keeps it.
        pod: What scheduling depends on, without labels.
        labels: Its labels.
        mounted: Its persistent volumes.
        node: The node that it is on.
        count: How many pods this stands for.
    """

    owner: Owner
    pod: Pod
    labels: Mapping[str, str]
    mounted: tuple[Mounted, ...] = ()
    node: str | None = None
    count: int = 1


@dataclass
class _Group:
    first: Member
    pod: Pod
    count: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    mounted: list[tuple[Mounted, ...]] = field(default_factory=list)

    def add(self, other: _Group) -> None:
        """Add the pods of another group, which count as pods of this one with the larger requests of both."""
        most = largest(amounts(self.pod.requests), amounts(other.pod.requests))
        requests = {resource: written(resource, amount) for resource, amount in sorted(most.items())}
        self.pod = self.pod.model_copy(update={"requests": requests})
        self.count += other.count
        self.nodes += other.nodes


def workloads(members: Iterable[Member], keys: Set[str], ledger: Ledger) -> list[Workload]:
    """The workloads of pods, in the order of their names.

    Args:
        members: The pods.
        keys: Keys of the labels by which something selects pods; others are left out.
        ledger: Counts the pods of DaemonSets that differ from most pods of their DaemonSet.
    """
    groups: dict[tuple[Owner, str], _Group] = {}
    for member in members:
        labels = {key: member.labels[key] for key in sorted(keys & member.labels.keys() - OF_CONTROLLERS)}
        pod = member.pod.model_copy(update={"labels": labels})
        shapes = [one.shape for one in member.mounted]
        alike = json.dumps([pod.model_dump(mode="json", exclude_defaults=True), shapes], sort_keys=True)
        group = groups.setdefault((member.owner, alike), _Group(member, pod))
        group.count += member.count
        if member.node:
            group.nodes[member.node] += 1
        group.mounted.append(member.mounted)
    named: defaultdict[tuple[str, str], list[_Group]] = defaultdict(list)
    most: dict[Owner, _Group] = {}
    for (owner, _), group in sorted(
        groups.items(), key=lambda one: (one[0][0].controller.kind, -one[1].count, one[0][1])
    ):
        if owner.controller.kind == _DAEMON_SET and most.setdefault(owner, group) is not group:
            most[owner].add(group)
            ledger.add(*_DIFFERENCES, group.count)
        else:
            named[owner.namespace, owner.name].append(group)
    taken = set(named)
    made = []
    for (namespace, name), alikes in sorted(named.items()):
        for number, group in enumerate(alikes, 1):
            made.append(_workload(group, name if number == 1 else _numbered(namespace, name, number, taken)))
    return made


def _numbered(namespace: str, name: str, number: int, taken: set[tuple[str, str]]) -> str:
    """The name with a number that nothing else has."""
    while (namespace, found := f"{name[:_LONGEST]}-{number}") in taken:
        number += 1
    taken.add((namespace, found))
    return found


def _workload(group: _Group, name: str) -> Workload:
    owner = group.first.owner
    slots = zip(*group.mounted, strict=True)
    nodes = dict(sorted(group.nodes.items()))
    if owner.controller.kind == _DAEMON_SET:
        nodes = dict.fromkeys(nodes, 1)  # a roll-out with maxSurge runs the new pod beside the old one
    return Workload(
        namespace=owner.namespace,
        name=name,
        controller=owner.controller,
        replicas=group.count - group.nodes.total() + sum(nodes.values()),
        pod=group.pod,
        volumes=[_volume(list(slot)) for slot in slots],
        nodes=nodes,
    )


def _volume(mounted: Sequence[Mounted]) -> Volume:
    first = mounted[0]
    # One claim that is not called after its pod is for whichever pods there are.
    shared = bool(first.claim) and not first.own and len({one.claim for one in mounted}) == 1
    places = Counter(one.zones for one in mounted if one.zones)
    return first.volume(
        shared=shared, places=[VolumePlace(zones=list(zones), pods=pods) for zones, pods in sorted(places.items())]
    )
