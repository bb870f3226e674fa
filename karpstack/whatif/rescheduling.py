"""Workloads that run on and could not be scheduled again: of no NodePool could there be a node for their pods any more.

A change of NodePools leaves nodes alone that its budgets, or do-not-disrupt, keep; when such a node goes one day, its
pods have no place. Pods on nodes of no NodePool count only if such a node could not take them again. Judged is what
pods require of nodes, which taints they tolerate, whether an instance type has such labels and is large enough beside
the DaemonSets of every node, or enough of them for `minValues`, and whether the node class's disks are large enough;
limits, the zones of volumes, spread and other pods are not. What is not certain is skipped, such as a resource that the
facts do not have, and so is a workload for which there was no NodePool before either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from karpstack.karpenter.instance_types import InstanceType
from karpstack.karpenter.requirements import (
    Requirement,
    RequirementError,
    contradiction,
    fits,
    node_label_requirement,
    requirements,
    values_of,
)
from karpstack.karpenter.taints import untolerated
from karpstack.scale_test.judging.replay import NODE_POOL_LABEL, NodeClaim, Pod
from karpstack.scale_test.market.quantities import RESOURCES, amount
from karpstack.scale_test.numbers.node_pool_choice import (
    Constraints,
    Verdict,
    affinity_alternatives,
    constraints,
    excludes,
    reason_to_skip,
)
from karpstack.scale_test.recording.timeline import Line

from .answer import NotSchedulableAgain
from .holds import has_no_planned_room
from .nodes import waits
from .phases import WhatifTimeline, stays
from .prices import Priced
from .unscheduled_pods import workload_of

_GIB = 2**30
_DISK = "ephemeral-storage"
_WORDS: dict[Verdict, str] = {"going": "is being deleted", "not ready": "is not ready"}


class _Asked(NamedTuple):
    """What pods that are alike ask for."""

    constraints: Constraints
    requests: tuple[tuple[str, float], ...]
    beside: tuple[tuple[str, float], ...]  # what DaemonSets ask for on each node

    @classmethod
    def by(cls, pod: Pod, beside: Mapping[str, float]) -> _Asked:
        """What a pod asks for."""
        return cls(constraints(pod), *(tuple(sorted(of.items())) for of in (pod.requests, beside)))


def not_schedulable_again(told: WhatifTimeline, market: Priced) -> list[NotSchedulableAgain]:
    """The workloads whose pods run when the record ends, and could not be scheduled again, though they could before."""
    others, ours = told.replay.nodes_of_no_pool(), {claim.node for claim in told.claims}
    running = [
        pod
        for pod in told.pods
        if pod.present_at(told.end) and pod.scheduled and pod.scheduled <= told.end and not pod.succeeded
        # Where the base began as the real cluster, such pods are there because they were on a managed node.
        if pod.node in ours or not (told.as_is or any(_takes(node, pod) for node in others))
    ]
    return [
        NotSchedulableAgain(
            namespace=namespace,
            workload=workload,
            pods=len(lost),
            nodes=len({pod.node for pod, _ in lost}),
            why="; ".join(dict.fromkeys(why for _, whys in lost for why in whys)),
        )
        for (namespace, workload), lost in _lost(told, market, running)
    ]


def unschedulable_at_end(told: WhatifTimeline, market: Priced) -> set[tuple[str, str]]:
    """Return the workloads with pods that have no node when the record ends, and that no NodePool fits any more.

    Pods that waited before the change may ask for what is not judged, such as a volume's zone, so the change need not
    be the reason.
    """
    others = told.replay.nodes_of_no_pool()
    waiting = [
        pod
        for pod in told.pods
        if waits(pod, told.end) and not waits(pod, told.before) and not any(_takes(node, pod) for node in others)
    ]
    return {workload for workload, _ in _lost(told, market, waiting)}


def _lost(
    told: WhatifTimeline, market: Priced, pods: Iterable[Pod]
) -> Iterator[tuple[tuple[str, str], list[tuple[Pod, list[str]]]]]:
    """The pods for which no NodePool could make a node any more, as one could before, by workload, and why."""
    before, after = (_pools(told, time) for time in told.ends)
    beside = _of_daemon_sets(told)
    known: dict[_Asked, list[str]] = {}
    found: dict[tuple[str, str], list[tuple[Pod, list[str]]]] = {}
    for pod in pods:
        asked = _Asked.by(pod, beside)
        if asked not in known:
            known[asked] = _refusals(told, market, asked, after) if _some(market, asked, before) else []
        if known[asked]:
            found.setdefault(workload_of(pod), []).append((pod, known[asked]))
    yield from sorted(found.items(), key=lambda item: item[0])


class Places:
    """Where Karpenter could place the pods of a drifted node when the record ends.

    Args:
        told: The timeline.
        market: Instance types and prices.
    """

    def __init__(self, told: WhatifTimeline, market: Priced) -> None:
        self._told = told
        self._market = market
        self._beside = _of_daemon_sets(told)
        self._no_pool: dict[_Asked, bool] = {}

    def lacking(self, claim: NodeClaim) -> str | None:
        """Return a workload whose pods certainly have no place but this node; None where there is none.

        A place is a NodePool that could have a node for the pod, or another node that stays and has room for it. Pods
        for which Karpenter plans no room do not count.
        """
        for pod in self._told.on(claim, self._told.end):
            if pod.of_daemon_set or has_no_planned_room(self._told.replay, pod, self._told.end):
                continue
            if self._no_node_pool(pod) and not any(self._holds(node, pod) for node in self._others(claim)):
                return "/".join(workload_of(pod))
        return None

    def _no_node_pool(self, pod: Pod) -> bool:
        asked = _Asked.by(pod, self._beside)
        if asked not in self._no_pool:
            self._no_pool[asked] = bool(_refusals(self._told, self._market, asked, _pools(self._told, self._told.end)))
        return self._no_pool[asked]

    def _others(self, claim: NodeClaim) -> Iterator[Line]:
        """The other nodes that stay."""
        end = self._told.end
        for one in self._told.claims:
            if one is not claim and one.own_node and stays(one, end):
                yield one.own_node
        yield from self._told.replay.nodes_of_no_pool()

    def _holds(self, node: Line, pod: Pod) -> bool:
        """Whether a node may have room for one more pod beside those that it has."""
        if not _takes(node, pod):
            return False
        name, room, end = node["metadata"]["name"], node.get("allocatable") or {}, self._told.end
        beside = [one for one in self._told.replay.all_pods.values() if one.node == name and one.present_at(end)]
        return all(
            sum(one.requests.get(key, 0.0) for one in beside) + asked <= amount(room.get(key, 0))
            for key, asked in pod.requests.items()
        )


def _takes(node: Line, pod: Pod) -> bool:
    """Whether a node of no NodePool could be given a pod if it were empty."""
    labels, room = node["metadata"].get("labels") or {}, node.get("allocatable") or {}
    if any(amount(room.get(key, 0)) < asked for key, asked in pod.requests.items()):
        return False
    if untolerated(node.get("taints") or (), pod.tolerations or ()):
        return False
    return any(all(one.admits(labels.get(one.key)) for one in way) for way in affinity_alternatives(constraints(pod)))


def _of_daemon_sets(told: WhatifTimeline) -> dict[str, float]:
    """What pods of DaemonSets request that run on every node of a NodePool, and so on each one to come."""
    nodes = {claim.node for claim in told.claims if claim.node and stays(claim, told.end)}
    found: dict[tuple[str, str], dict[str, Pod]] = {}
    for pod in told.replay.all_pods.values():
        if pod.of_daemon_set and pod.node in nodes and pod.present_at(told.end):
            found.setdefault((pod.namespace, pod.name.rpartition("-")[0]), {})[pod.node] = pod
    everywhere = [list(of.values()) for of in found.values() if of.keys() >= nodes]
    keys = {key for pods in everywhere for pod in pods for key in pod.requests}
    return {key: sum(min(pod.requests.get(key, 0.0) for pod in pods) for pods in everywhere) for key in keys}


def _pools(told: WhatifTimeline, time: datetime) -> dict[str, Line]:
    names = sorted(told.replay.node_pools)
    return {name: excerpt for name in names if (excerpt := told.replay.node_pool_at(name, time))}


def _some(market: Priced, asked: _Asked, pools: dict[str, Line]) -> bool:
    """Whether a NodePool may have had a node for such pods."""
    return any(_refusal(market, asked, name, excerpt) is None for name, excerpt in pools.items())


def _refusals(told: WhatifTimeline, market: Priced, asked: _Asked, pools: dict[str, Line]) -> list[str]:
    """Why each of the NodePools can have none when the record ends, a sentence each; empty where one may."""
    if not pools:
        return ["there is no NodePool any more"]
    whys = {
        name: _refusal(market, asked, name, excerpt) or _no_disk(told, asked, name) for name, excerpt in pools.items()
    }
    if None in whys.values():
        return []
    return [f"NodePool {name} {why}" for name, why in whys.items()]


def _no_disk(told: WhatifTimeline, asked: _Asked, name: str) -> str | None:
    """Say that the disks of a NodePool's nodes are too small; None where they are not, or not known."""
    most, requests = told.replay.node_class_disk(*told.replay.node_class(name)), dict(asked.requests)
    if most is None or _DISK not in requests:
        return None
    wanted = requests[_DISK] + dict(asked.beside).get(_DISK, 0.0)
    if wanted <= most:
        return None
    return f"has nodes of at most {most / _GIB:.4g} GiB of {_DISK}, and they need {wanted / _GIB:.4g} GiB"


def _refusal(market: Priced, asked: _Asked, name: str, excerpt: Line) -> str | None:
    """Why a NodePool can certainly have no node for such pods; None where it may."""
    if words := _WORDS.get(reason_to_skip(excerpt) or "unknown"):
        return words
    spec = excerpt.get("spec")
    if not spec:  # of a recorder of 0.1
        return None
    match excludes(name, excerpt, asked.constraints):
        case ("taint", about):
            return f"has the taint {', '.join(about)}, which they do not tolerate"
        case ("requirements", about):
            return f"gives no node {', '.join(about)}"
    try:
        return _no_type(market, asked, [*requirements(spec), node_label_requirement(NODE_POOL_LABEL, name)])
    except RequirementError:
        return None


def _no_type(market: Priced, asked: _Asked, of_nodes: Sequence[Requirement]) -> str | None:
    facts, region = market.facts, market.region
    known = facts.known_labels(region)
    every = list(affinity_alternatives(asked.constraints))
    judged = _judged(market, asked)
    beside = dict(asked.beside)
    full = {resource: count + beside.get(resource, 0.0) for resource, count in judged.items()}
    large = [type_ for type_ in facts.types.values() if _holds_one(type_, full)]
    room = f"{_amounts(judged)}{' beside its DaemonSets' if beside else ''}"

    def some(types: Iterable[InstanceType]) -> bool:
        return any(
            fits(wanted, type_, region, known)
            for way in every
            if not contradiction(wanted := [*of_nodes, *way])
            for type_ in types
        )

    if some(large):
        return _too_few(market, large, room, of_nodes, every)
    if some(facts.types.values()):
        return f"may launch no instance type that has {room}"
    return f"may launch no instance type with {'; or '.join(', '.join(map(str, way)) for way in every)}"


def _judged(market: Priced, asked: _Asked) -> dict[str, float]:
    """What pods ask for of which the facts know how much instance types have.

    A NodeOverlay may give them more of what is not CPU or memory.
    """
    types = market.facts.types.values()
    return {"cpu": 0.0, "memory": 0.0} | {
        resource: count
        for resource, count in asked.requests
        if resource in RESOURCES
        or (not market.reads_overlays and any(one.amount(resource) is not None for one in types))
    }


def _holds_one(type_: InstanceType, judged: Mapping[str, float]) -> bool:
    """Whether a node of an instance type may have as much."""
    return all((has := type_.amount(resource)) is None or has >= count for resource, count in judged.items())


def _amounts(judged: Mapping[str, float]) -> str:
    others = [f"{count:g} {resource}" for resource, count in judged.items() if resource not in RESOURCES]
    *first, last = [f"{judged['cpu']:g} CPUs", f"{judged['memory'] / _GIB:.4g} GiB", *others]
    return f"{', '.join(first)} and {last}"


def _too_few(
    market: Priced,
    large: Sequence[InstanceType],
    amounts: str,
    of_nodes: Sequence[Requirement],
    every: Sequence[Sequence[Requirement]],
) -> str | None:
    """Say which `minValues` the instance types that are large enough do not reach.

    Karpenter launches no node then, unless its `minValuesPolicy` is BestEffort (filterInstanceTypesByRequirements in
    sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling/nodeclaim.go).
    """
    region = market.region
    known = market.facts.known_labels(region)
    counted = [one for one in of_nodes if one.min_values and one.key in known]
    if not counted:
        return None
    said = None
    for way in every:
        wanted = [*of_nodes, *way]
        left = [] if contradiction(wanted) else [one for one in large if fits(wanted, one, region, known)]
        short = next(
            (
                (one, count)
                for one in counted
                if (count := len(values_of(one.key, wanted, left, region))) < one.min_values
            ),
            None,
        )
        if short is None:
            return None
        one, count = short
        said = said or (
            f"needs {one.min_values} different values of {one.key} (minValues, unless minValuesPolicy is BestEffort), "
            f"and the instance types with {amounts} have {count}"
        )
    return said
