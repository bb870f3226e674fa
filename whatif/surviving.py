"""Why a node is still there: each node that stayed, with its cause, from the controller's events.

Karpenter tells of a node that consolidation looked at once in fifteen minutes at most, and what blocks its disruption
once in two, whatever changed meanwhile. So its words may be older than the change; and what passes by itself, such as a
node that is not initialized yet, is no cause.
"""

from __future__ import annotations

from contextlib import suppress

from karpenter.budgets import BudgetError, allowed, budgets
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
    said = _of_drift(told, claim) if drifted else of_staying(of_claim(told.replay, claim))
    if told.as_is:  # until all was loaded, what-if itself kept the nodes
        said = [one for one in said if one.time >= told.at("loaded")]
    last = next((one for one in reversed(said) if one.lasting), None)
    why, words = (last.why, last.words) if last else _by_the_pool(told, claim, drifted)
    return Surviving(
        **described(claim, market),
        why=why,
        words=words,
        said=told.t(last.time) if last else None,
        looked_at=last is not None,
        drifted=drifted,
    )


def _of_drift(told: Told, claim: NodeClaim) -> list[Said]:
    """What was said of a node that is to be replaced: what consolidation thinks of it is not why it stays."""
    own = [one for one in of_claim(told.replay, claim) if one.reason == "DisruptionBlocked"]
    pool = [one for one in of_pool(told.replay, claim.node_pool) if one.time >= told.before]
    return sorted([*own, *pool], key=lambda one: one.time)


def _by_the_pool(told: Told, claim: NodeClaim, drifted: bool) -> tuple[Why, str | None]:
    """The cause as far as the NodePool has it, where the controller said none."""
    spec = (told.replay.node_pool_at(claim.node_pool, told.end) or {}).get("spec") or {}
    if drifted:
        count = sum(other.node_pool == claim.node_pool and there(other, told.end) for other in told.claims)
        with suppress(BudgetError):
            if spec and allowed(budgets(spec), "Drifted", count, told.end) == 0:
                return "disruption budget", f"the budgets of NodePool {claim.node_pool} allow none for Drifted"
        return "not said", None
    if spec.get("replicas") is not None:
        return "policy", f"NodePool {claim.node_pool} has a fixed number of nodes"
    after = (spec.get("disruption") or {}).get("consolidateAfter")
    if after and claim.conditions.get("Consolidatable", {}).get("status") != "True":
        return "waiting", f"consolidateAfter of NodePool {claim.node_pool} is {after}, which was not over"
    return "not said", None
