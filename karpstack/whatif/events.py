"""What the controller says of nodes that go, are held up, or stay, by its events.

The texts are those of sigs.k8s.io/karpenter 1.15: pkg/controllers/disruption (events, consolidation.go, types.go),
pkg/controllers/state/statenode.go and pkg/controllers/node/termination/terminator.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, NamedTuple

from karpstack.scale_test.judging.replay import NodeClaim, Replay

from .answer import Why

_BUDGETS = re.compile(r"PodDisruptionBudget(?:\(s\))?=\[([^\]]*)\]")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_PODS = re.compile(r"\bPod=([^\s,)]+)")
#: Of what stays: reasons of events that say why.
_OF_STAYING = ("Unconsolidatable", "DisruptionBlocked", "ConsolidationRejected")
_OF_DRAINING = ("FailedDraining", "AwaitingVolumeDetachment")
# A message lists names, of pods, NodePools and labels, which may be like its words. No name has a space: so only where
# a message begins, and phrases of several words, say what it is about.
# What passes by itself within seconds, and is no cause to stay.
_MOMENTARY = re.compile(
    r"does not have an associated node|isn't initialized|is nominated for|is deleting or marked|isn't managed by"
    r"|already being disrupted|would schedule against uninitialized",
    re.IGNORECASE,
)
_BY_BUDGET = r"(?:evicting pod violates a PDB|eviction does not support multiple PDBs|pdb prevents pod evictions)"
_BY_ANNOTATION = (
    r'(?:pod has "karpenter\.sh/do-not-disrupt" annotation'
    r'|disruption is blocked through the "karpenter\.sh/do-not-disrupt" annotation)'
)
_HELD = re.compile(
    rf"(?:Failed to drain node, )?(?:{_BY_BUDGET}|{_BY_ANNOTATION})|Awaiting deletion of bound volumeattachments",
    re.IGNORECASE,
)
_KINDS: Final[dict[Why, re.Pattern[str]]] = {
    "pod disruption budget": re.compile(rf"^(?:Failed to drain node, )?{_BY_BUDGET}", re.IGNORECASE),
    "do-not-disrupt": re.compile(rf"^{_BY_ANNOTATION}", re.IGNORECASE),
    "spot to spot": re.compile(r"^SpotToSpotConsolidation (?:is disabled|requires)"),
    "disruption budget": re.compile(r"^No allowed disruptions.* due to blocking budget"),
    "policy": re.compile(r'^NodePool "[^"]*" has consolidation (?:policy|disabled)'),
    "price": re.compile(r"^Can't replace with a cheaper node|^Filtering by price:"),
    "pods": re.compile(r'^Not all pods would schedule|^Can\'t remove without creating|^Node "[^"]*" has buffer pods'),
}
# It lists why each NodePool cannot hold a pod; the limits of another one say nothing of the node's own.
_LIMITS = r"(?:node limits have been exhausted|all available instance types exceed limits) for nodepool \(NodePool={}\)"


class NodeEvent(NamedTuple):
    """An event on a node or its NodeClaim.

    Attributes:
        time: When it was received.
        reason: Its reason.
        details: Its message.
        pool: The NodePool of the node.
    """

    time: datetime
    reason: str
    details: str
    pool: str

    @property
    def lasting(self) -> bool:
        """Whether it says something that does not pass by itself within seconds."""
        return not _MOMENTARY.search(self.details)

    @property
    def of_draining(self) -> bool:
        """Whether it says why a node is not drained yet."""
        return self.reason in _OF_DRAINING

    @property
    def holds_up(self) -> bool:
        """Whether it says that a pod, or who wrote the annotation, keeps a node from going that is to go."""
        return self.reason in (*_OF_DRAINING, "DisruptionBlocked") and bool(_HELD.match(self.details))

    @property
    def why(self) -> Why:
        """The kind of cause."""
        if re.search(_LIMITS.format(re.escape(self.pool)), self.details):
            return "limits"
        return next((why for why, pattern in _KINDS.items() if pattern.search(self.details)), "other")

    @property
    def pods(self) -> list[str]:
        """The pods that it names, each with its namespace."""
        return _PODS.findall(self.details)

    @property
    def pod_disruption_budgets(self) -> list[str]:
        """The PodDisruptionBudgets that it names, each with its namespace."""
        return [name for found in _BUDGETS.findall(self.details) for name in re.split(r"[\s,]+", found) if name]


def events_of_claim(replay: Replay, claim: NodeClaim) -> list[NodeEvent]:
    """All that was said of a NodeClaim or its node, each thing once, in the order of its first time."""
    # A node may get the name of one that is gone; what was said of that one is older than this NodeClaim. An event on
    # the NodeClaim itself may be received a moment before it.
    told = replay.events_by_object
    of_node = (pair for pair in told.get(("Node", claim.node or ""), ()) if pair[0] >= claim.first_seen)
    mine = sorted([*told.get(("NodeClaim", claim.name), ()), *of_node], key=lambda pair: pair[0])
    words = {word for _, event in mine for word in _NAME.findall(str(event.get("message", "")))}
    real = _real_names(replay, words) if words else {}
    return [
        NodeEvent(
            time, str(event.get("reason", "")), _renamed(str(event.get("message", "")), real, time), claim.node_pool
        )
        for time, event in mine
    ]


def _real_names(replay: Replay, words: set[str]) -> dict[str, list[tuple[datetime, str]]]:
    """Name of a node among the words -> since when a rehearsed node had it, and which node of the snapshot that is."""
    found: dict[str, list[tuple[datetime, str]]] = {}
    for claim in replay.claims.values():
        if claim.node in words:
            found.setdefault(claim.node, []).append((claim.first_seen, claim.stands_for))
    return {name: sorted(times) for name, times in found.items() if any(stands_for for _, stands_for in times)}


def _renamed(message: str, real: dict[str, list[tuple[datetime, str]]], at: datetime) -> str:
    """A message with the names of the user's nodes in place of those that the rehearsal invented."""

    def name(match: re.Match[str]) -> str:
        times = [stands_for for since, stands_for in real.get(match[0], ()) if since <= at]
        return (times[-1] if times else "") or match[0]

    return _NAME.sub(name, message) if real else message


def staying_events(said: list[NodeEvent]) -> list[NodeEvent]:
    """Of what was said of a node, what says why it stays."""
    return [one for one in said if one.reason in _OF_STAYING]
