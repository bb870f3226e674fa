"""Which NodePools could have had the node of a NodeClaim, and what in the record excludes the others.

As `Scheduler.add` of sigs.k8s.io/karpenter 1.15 does it: for a pod that fits no node, the NodePools are asked in their
order, and the first that can takes it. This is no second scheduler: it says what the record excludes with certainty,
and of the rest that it does not know. Topology, volumes, preferences and daemons are not judged.
Limits are reckoned from the nodes that are to stay (`calculateExistingNodeClaims` there).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from karpstack.karpenter.instance_types import Facts
from karpstack.karpenter.requirements import (
    Requirement,
    RequirementError,
    node_label_requirement,
    requirement,
    requirements,
    unmet,
)
from karpstack.karpenter.taints import untolerated

from ..judging.replay import NODE_POOL_LABEL, NodeClaim, Pod, Replay
from ..market.prices import Offering
from ..market.quantities import amount
from ..market.requirements import Allowed, Pool, allowed
from ..recording.timeline import Line
from .shortages import Shortages

# Of anything; more is no limit.
_MOST = 1e18

Verdict = Literal[
    "taken",  # it made the node
    "later",  # its turn comes after the one that was taken
    "static",  # it has a fixed number of nodes
    "going",  # it was being deleted
    "not ready",
    "taint",  # its taints are not tolerated
    "requirements",  # its nodes cannot have what the pods ask for
    "limit",  # its limits leave no room
    "short",  # all that it could have launched for the pods was unavailable
    "not recorded",  # the timeline does not tell the pods, or not their tolerations where it has taints
    "unknown",  # nothing that is recorded excludes it
]


@dataclass(frozen=True)
class Limit:
    """A limit of a NodePool that left no room.

    Attributes:
        resource: cpu, memory or nodes.
        limit: How much all its nodes may have.
        used: How much those had that were there to stay, or were made at the same moment.
        least: How much a node would have needed at least.
        at_once: Whether some of those were made at the same moment.
    """

    resource: str
    limit: float
    used: float
    least: float
    at_once: bool


class Constraints(NamedTuple):
    """What of a pod decides which NodePools may take it; JSON text where the timeline has structures."""

    node_selector: tuple[tuple[str, str], ...]
    tolerations: str | None
    node_selector_terms: str | None

    @property
    def terms(self) -> list[Any]:
        """Terms of the node affinity that is required, of which one is enough; none where it is not."""
        found: list[Any] = json.loads(self.node_selector_terms or "[]")
        return found


class NodePoolChoice:
    """Judges the NodePools of a replayed timeline; what many nodes have in common is judged once.

    Args:
        replay: The whole timeline.
        facts: What is known of instance types; None without.
        region: Where the stack is.
        shortages: What the controller had met of shortages by a moment.
    """

    def __init__(self, replay: Replay, facts: Facts | None, region: str, shortages: Shortages) -> None:
        self._replay = replay
        self._shortages = shortages
        self._facts = facts
        self._region = region
        # By the NodePool's name and spec: its status changes with every node.
        self._excluded: dict[tuple[str, str, Constraints], tuple[Verdict, tuple[str, ...]] | None] = {}
        self._smallest: dict[tuple[str, Constraints], float] = {}
        self._offerings: dict[tuple[str, Constraints], frozenset[Offering]] = {}
        self._ran: dict[str, list[Pod]] = {}
        for pod in replay.all_pods.values():
            if pod.node:
                self._ran.setdefault(pod.node, []).append(pod)

    def pods(self, claim: NodeClaim) -> tuple[list[Pod], Literal["nominated", "ran", "none"]]:
        """The pods that a node was made for, and how that is known: by the controller's events, or as they ran there.

        The controller leaves out many of its events, so that those that they name may be some of them.
        """
        named = [pod for uid in sorted(claim.nominated) if (pod := self._replay.all_pods.get(uid))]
        if named:
            return named, "nominated"
        # A node may get the name of one that is gone.
        ran = [
            pod
            for pod in self._ran.get(claim.node or "", ())
            if pod.scheduled
            and claim.first_seen <= pod.scheduled
            and (claim.gone is None or pod.scheduled < claim.gone)
        ]
        return ran, "ran" if ran else "none"

    def pools(self, claim: NodeClaim, pods: Sequence[Pod]) -> Iterator[dict[str, Any]]:
        """`pools` of a node of the report, in the order in which Karpenter asks them."""
        at = claim.first_seen
        there = {name: excerpt for name in self._replay.node_pools if (excerpt := self._replay.node_pool_at(name, at))}
        # Of those that weigh as much, the last by name comes first.
        order = sorted(there, key=lambda name: (_weight(there[name]), name), reverse=True)
        turn = order.index(claim.node_pool) if claim.node_pool in order else len(order)
        asked = sorted({constraints(pod) for pod in pods}, key=str)
        for index, name in enumerate(order):
            excerpt, limit = there[name], None
            about: tuple[str, ...] = ()
            if name == claim.node_pool:
                verdict: Verdict = "taken"
            elif why := reason_to_skip(excerpt):
                verdict = why
            elif index > turn:
                verdict = "later"
            else:
                verdict, about = self._against(name, excerpt, asked)
                if verdict in ("unknown", "not recorded"):
                    if short := self._short(excerpt, claim, asked):
                        verdict, about = "short", short
                    elif limit := self._limit(name, excerpt, claim, pods, asked):
                        verdict = "limit"
            yield {
                "name": name,
                "weight": _weight(excerpt),
                "verdict": verdict,
                "about": list(about),
                "limit": limit.__dict__ if limit else None,
            }

    def _against(self, name: str, excerpt: Line, asked: Sequence[Constraints]) -> tuple[Verdict, tuple[str, ...]]:
        """What keeps every one of the pods off; that which a node was made for is one of them."""
        verdicts = [self._excludes(name, excerpt, one) for one in asked]
        if not verdicts:
            return "not recorded", ()
        if None in verdicts:
            return "unknown", ()
        told = [verdict for verdict in verdicts if verdict]
        kinds = {verdict for verdict, _ in told}
        about = tuple(dict.fromkeys(part for _, parts in told for part in parts))
        for kind in ("not recorded", "taint", "requirements"):
            if kind in kinds:
                return kind, about if kind != "not recorded" else ()
        return "unknown", ()

    def _excludes(self, name: str, excerpt: Line, asked: Constraints) -> tuple[Verdict, tuple[str, ...]] | None:
        key = name, _spec(excerpt), asked
        if key not in self._excluded:
            self._excluded[key] = excludes(name, excerpt, asked)
        return self._excluded[key]

    def _short(self, excerpt: Line, claim: NodeClaim, asked: Sequence[Constraints]) -> tuple[str, ...]:
        """The instance types that the NodePool could have launched for the pods, if all were short; none if not."""
        if not self._facts or not asked or self._region not in self._facts.regions:
            return ()
        short = self._shortages.known_unavailable(claim.first_seen)
        names: set[str] = set()
        for one in asked:
            offerings = self._offerings_of(excerpt, one)
            if not offerings or not offerings <= short:
                return ()
            names |= {offering.instance_type for offering in offerings}
        return tuple(sorted(names))

    def _offerings_of(self, excerpt: Line, asked: Constraints) -> frozenset[Offering]:
        key = _spec(excerpt), asked
        if key not in self._offerings:
            template = (excerpt.get("spec") or {}).get("template") or {}
            reference = (template.get("spec") or {}).get("nodeClassRef") or {}
            zones = self._replay.node_class_zones(str(reference.get("kind", "")), str(reference.get("name", "")))
            self._offerings[key] = frozenset(
                Offering(choice.type.name, kind, zone)
                for choice in self._allowed(excerpt, asked)
                for kind in choice.capacity_types
                for zone in choice.zones
                if zones is None or zone in zones
            )
        return self._offerings[key]

    def _allowed(self, excerpt: Line, asked: Constraints) -> list[Allowed]:
        if not self._facts or self._region not in self._facts.regions:
            return []
        try:
            pool = Pool.of(excerpt.get("spec") or {})
            return allowed(self._facts, self._region, [pool], [dict(asked.node_selector)])
        except RequirementError:
            return []

    def _limit(
        self, name: str, excerpt: Line, claim: NodeClaim, pods: Sequence[Pod], asked: Sequence[Constraints]
    ) -> Limit | None:
        limits = (excerpt.get("spec") or {}).get("limits") or excerpt.get("limits") or {}
        if not limits or self._tried(name, claim):
            return None
        # The API's clock has whole seconds: what is made in one, one decision may have made.
        others = [
            other
            for other in self._replay.claims.values()
            if other.node_pool == name
            and other is not claim
            and (other.first_seen <= claim.first_seen or other.created == claim.created)
            and other.staying_at(claim.first_seen)
        ]
        at_once = any(other.created >= claim.created for other in others)
        needs = {
            "cpu": (sum(float(other.cpus or 0) for other in others), self._least_cpu(excerpt, pods, asked)),
            "memory": (sum(float(other.memory or 0) for other in others), min((pod.memory for pod in pods), default=0)),
            "nodes": (float(len(others)), 1.0),
        }
        for resource, (used, least) in needs.items():
            if resource in limits:
                limit = max(-_MOST, min(_MOST, amount(limits[resource])))
                # Any node has more than nothing.
                if used >= limit or used + least > limit:
                    return Limit(resource, limit, used, least, at_once)
        return None

    def _tried(self, name: str, claim: NodeClaim) -> bool:
        """Whether the last NodeClaim of a NodePool was refused for a shortage, so that it had room."""
        before = [
            other
            for other in self._replay.claims.values()
            if other.node_pool == name and other is not claim and other.first_seen <= claim.first_seen
        ]
        return bool(before) and self._shortages.refused(before[-1], claim.first_seen)

    def _least_cpu(self, excerpt: Line, pods: Sequence[Pod], asked: Sequence[Constraints]) -> float:
        """CPUs of the smallest instance type that the NodePool may launch for one of the pods, as far as is known."""
        smallest = [self._smallest_of(excerpt, one) for one in asked]
        return max(min(smallest, default=0.0), min((pod.cpu for pod in pods), default=0.0))

    def _smallest_of(self, excerpt: Line, asked: Constraints) -> float:
        key = _spec(excerpt), asked
        if key not in self._smallest:
            choices = self._allowed(excerpt, asked)
            self._smallest[key] = float(min((choice.type.vcpus for choice in choices), default=0))
        return self._smallest[key]


def _spec(excerpt: Line) -> str:
    return json.dumps(excerpt.get("spec"), sort_keys=True)


def _weight(excerpt: Line) -> int:
    return int((excerpt.get("spec") or {}).get("weight") or 0)


def reason_to_skip(excerpt: Line) -> Verdict | None:
    """Return why Karpenter does not consider a NodePool; None if it does."""
    if excerpt["metadata"].get("deletionTimestamp"):
        return "going"
    if (excerpt.get("spec") or {}).get("replicas") is not None:
        return "static"
    ready = {condition["type"]: condition["status"] for condition in excerpt.get("conditions", ())}
    return "not ready" if ready.get("Ready") not in (None, "True") else None


def constraints(pod: Pod) -> Constraints:
    """What of a pod decides which NodePools may take it."""
    return Constraints(
        tuple(sorted(pod.node_selector.items())),
        None if pod.tolerations is None else json.dumps(pod.tolerations, sort_keys=True),
        None if pod.node_selector_terms is None else json.dumps(pod.node_selector_terms, sort_keys=True),
    )


def excludes(name: str, excerpt: Line, asked: Constraints) -> tuple[Verdict, tuple[str, ...]] | None:
    """What of a NodePool keeps a pod off; None where nothing certainly does."""
    spec = excerpt.get("spec") or {}
    taints = ((spec.get("template") or {}).get("spec") or {}).get("taints") or ()
    if asked.tolerations is not None and (kept_off := untolerated(taints, json.loads(asked.tolerations))):
        return "taint", tuple(kept_off)
    try:
        of_nodes = [*requirements(spec), node_label_requirement(NODE_POOL_LABEL, name)]
        selected = [requirement(key, "In", (value,)) for key, value in asked.node_selector]
        if missing := unmet(of_nodes, selected):
            return "requirements", tuple(map(str, missing))
        # One term is enough: it is excluded where none can be met.
        missing_of_terms = [unmet(of_nodes, expressions(term)) for term in asked.terms]
        if missing_of_terms and all(missing_of_terms):
            return "requirements", tuple(str(one) for missing in missing_of_terms for one in missing)
    except RequirementError:
        return None
    if asked.tolerations is None and untolerated(taints, ()):
        return "not recorded", ()
    return None


def expressions(term: Mapping[str, Any]) -> list[Requirement]:
    """The requirements of a term of a node affinity.

    Raises:
        RequirementError: Kubernetes takes no such term.
    """
    return [
        requirement(entry["key"], entry["operator"], entry.get("values") or ())
        for entry in term.get("matchExpressions") or ()
    ]


def affinity_alternatives(asked: Constraints) -> Iterator[list[Requirement]]:
    """Yield the requirements of pods for their node, one list for each alternative of their affinity.

    Raises:
        RequirementError: Kubernetes takes no such term.
    """
    selected = [requirement(key, "In", (value,)) for key, value in asked.node_selector]
    for term in asked.terms or [{}]:
        yield [*selected, *expressions(term)]
