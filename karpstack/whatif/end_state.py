"""Whether the nodes at the end of the record are the end state, and what Karpenter may still remove.

Karpenter counts nodes that drain against the budget of each reason (`BuildDisruptionBudgetMapping` in
pkg/controllers/disruption/helpers.go). A held node can so keep consolidation off for hours, also of nodes that are
empty. The sum at the end of the record is then one end of a range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from karpstack.scale_test.judging.replay import NodeClaim
from karpstack.scale_test.reports.units import plural

from .answer import Cause, EmptyNode, Inventory, OpenEnd, RemainingNode
from .nodes import described
from .phases import WhatifTimeline, is_present, stays
from .prices import Priced
from .remaining import budget_cause

_CONSOLIDATION = ("Empty", "Underutilized")


def open_end(told: WhatifTimeline, market: Priced, after: Inventory, stayed: Sequence[RemainingNode]) -> OpenEnd | None:
    """Return why the end state is not known and what Karpenter may still remove; None where it is known.

    Args:
        told: The timeline.
        market: Prices.
        after: The nodes when the record ends.
        stayed: The nodes that stayed; of these, drifted ones are still to be replaced.
    """
    if told.changes_nothing:
        return None
    causes, empty = [], []
    for pool in sorted({claim.node_pool for claim in _staying(told)}):
        blocked = {reason: cause for reason in _reasons(told, pool) if (cause := budget_cause(told, pool, reason))}
        if cause := blocked.get("Empty"):
            found = [EmptyNode(**described(one, market), removable_from=cause.until) for one in _emptied(told, pool)]
            empty += found if cause.until or not cause.never else []
        # A budget that is closed by its schedule was closed for the base as well, so it counts only with such nodes.
        causes += [one for why, one in blocked.items() if one.used_up or (why == "Empty" and empty)][:1]
    if later := sum(one.drifted and not one.drifted_before and not one.never for one in stayed):
        causes.append(Cause(why="not replaced yet", details=f"{plural(later, 'drifted node')} not replaced yet"))
    if told.phases.get("change-settled", {}).get("gaveUp"):
        causes.append(Cause(why="not settled", details=_movement(told)))
    if not causes:
        return None
    usd = after.usd_per_hour
    for one in empty:
        usd = None if usd is None or one.usd_per_hour is None else usd - one.usd_per_hour
    return OpenEnd(
        causes=causes, empty=empty, nodes=after.nodes - len(empty), usd_per_hour=None if usd is None else round(usd, 6)
    )


def _movement(told: WhatifTimeline) -> str:
    """Say in which NodePools nodes came and went again: two rules that contradict each other can do so for ever."""
    short = Counter(
        claim.node_pool
        for claim in told.claims
        if claim.first_seen >= told.before and claim.gone and claim.gone <= told.end
    )
    counted = ", ".join(f"{plural(number, 'node')} of NodePool {pool}" for pool, number in sorted(short.items()))
    moved = f"; {counted} came and went again" if counted else ""
    return f"the cluster had not settled when the rehearsal ended{moved}"


def _staying(told: WhatifTimeline) -> Iterator[NodeClaim]:
    return (claim for claim in told.claims if stays(claim, told.end))


def _reasons(told: WhatifTimeline, pool: str) -> Sequence[str]:
    """The reasons for which Karpenter consolidates nodes of a NodePool."""
    spec = (told.replay.node_pool_at(pool, told.end) or {}).get("spec") or {}
    disruption = spec.get("disruption") or {}
    if spec.get("replicas") is not None or disruption.get("consolidateAfter") == "Never":
        return ()
    return _CONSOLIDATION[:1] if disruption.get("consolidationPolicy") == "WhenEmpty" else _CONSOLIDATION


def _emptied(told: WhatifTimeline, pool: str) -> Iterator[NodeClaim]:
    """Nodes of a NodePool that have only DaemonSet pods at the end, and did not exist or had others before."""
    for claim in _staying(told):
        if claim.node_pool != pool or "Initialized" not in claim.reached or _is_occupied(told, claim, told.end):
            continue
        if not is_present(claim, told.before) or _is_occupied(told, claim, told.before):
            yield claim


def _is_occupied(told: WhatifTimeline, claim: NodeClaim, time: datetime) -> bool:
    """Whether a node has a pod that is no DaemonSet's, also one that is not the workload's."""
    return any(
        not pod.of_daemon_set and not pod.succeeded and pod.scheduled and claim.first_seen <= pod.scheduled <= time
        for pod in told.replay.all_pods.values()
        if pod.node == claim.node and pod.present_at(time)
    )
