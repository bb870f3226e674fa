"""Why a node is still there: each node that stayed, with its cause, from the controller's events.

Karpenter tells of a node that consolidation looked at once in fifteen minutes at most, and what blocks its disruption
once in two, whatever changed meanwhile. So its words may be older than the change; and what passes by itself, such as a
node that is not initialized yet, is no cause.
"""

from __future__ import annotations

from scale_test.judging.replay import NodeClaim

from .answer import Surviving, Why
from .events import Said, of_claim, of_pool, of_staying
from .nodes import described
from .phases import Told, leaving, there
from .prices import Priced


def surviving(told: Told, market: Priced) -> list[Surviving]:
    """The nodes that were there when the change began, and still were to stay at its end."""
    stayed = [
        claim
        for claim in told.claims
        if claim.first_seen <= told.before and there(claim, told.end) and not leaving(claim, told.end)
    ]
    found = [_surviving(told, market, claim) for claim in stayed]
    return sorted(found, key=lambda one: (not one.drifted, one.why, one.words or "", one.pool, one.node_claim))


def _surviving(told: Told, market: Priced, claim: NodeClaim) -> Surviving:
    drifted = claim.conditions.get("Drifted", {}).get("status") == "True"
    said = of_staying(of_claim(told.replay, claim))
    lasting = [one for one in said if one.lasting]
    if drifted and (blocked := [one for one in lasting if one.reason == "DisruptionBlocked"]):
        lasting = blocked
    if drifted and not lasting:
        lasting = [one for one in of_pool(told.replay, claim.node_pool) if one.time >= told.before]
    why, words, last = _cause(told, claim, lasting)
    return Surviving(
        **described(claim, market),
        why=why,
        words=words,
        said=told.t(last.time) if last else None,
        looked_at=bool(lasting),
        drifted=drifted,
    )


def _cause(told: Told, claim: NodeClaim, said: list[Said]) -> tuple[Why, str | None, Said | None]:
    if said:
        return said[-1].why, said[-1].words, said[-1]
    spec = (told.replay.node_pool_at(claim.node_pool, told.end) or {}).get("spec") or {}
    if spec.get("replicas") is not None:
        return "policy", f"NodePool {claim.node_pool} has a fixed number of nodes", None
    after = (spec.get("disruption") or {}).get("consolidateAfter")
    drifted = claim.conditions.get("Drifted", {}).get("status") == "True"
    if after and not drifted and claim.conditions.get("Consolidatable", {}).get("status") != "True":
        return "waiting", f"consolidateAfter of NodePool {claim.node_pool} is {after}, which was not over", None
    return "not said", None, None
