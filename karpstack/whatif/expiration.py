"""When drifted nodes that nothing replaces expire, and whether they go then; and nodes that live shorter.

Karpenter deletes an expired NodeClaim without a replacement, whatever its budgets allow and whether its pods have
another place (sigs.k8s.io/karpenter 1.15, pkg/controllers/nodeclaim/expiration/controller.go). A node whose pods cannot
be evicted, and whose NodeClaim has no terminationGracePeriod, then drains for ever
(pkg/controllers/node/termination/controller.go). Draining nodes count against the budgets of their NodePool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from karpstack.karpenter.budgets import BudgetError, budgets, calendar
from karpstack.karpenter.quantities import finite_duration
from karpstack.scale_test.judging.terminations import grace
from karpstack.scale_test.numbers.disruptions import lifetime

from .answer import RemainingNode, ShorterLife
from .held_pods import permanent_hold
from .phases import WhatifTimeline, is_present, stays
from .week import asked_spec

_DAY = timedelta(days=1)
_DEFAULT = "720h"  # of the CRD
_REASONS = ("Underutilized", "Empty", "Drifted")
_WEEK = timedelta(days=7)


def with_expirations(
    told: WhatifTimeline, stayed: Sequence[RemainingNode], created: Mapping[str, datetime], later: timedelta
) -> list[RemainingNode]:
    """Return the nodes that stayed; those that are never replaced have when they expire, and what holds them then.

    Args:
        told: The timeline.
        stayed: The nodes.
        created: Name of a snapshot's node -> when its NodeClaim was created. Other nodes are as old as their NodeClaim
            in the rehearsal at the least, so they expire earlier.
        later: By how much later than the rehearsal the moment is that is asked about.
    """
    claims = {claim.name: claim for claim in told.claims}
    found = []
    for one in stayed:
        claim = claims[one.node_claim]
        lives = lifetime(claim) if one.never else None
        if lives is not None:
            own = created.get(claim.stands_for)
            now = told.end + later
            ends = own + lives if own else datetime.fromisoformat(claim.created) + later + lives
            keeps = permanent_hold(told, claim) if grace(claim) is None else None
            one = one.model_copy(update={"expires": max(ends, now).isoformat(), "drains_forever": keeps})
        found.append(one)
    draining = Counter(one.pool for one in found if one.drains_forever)
    full = {pool for pool, count in draining.items() if _use_up(told, pool, count, told.end + later)}
    return [
        one.model_copy(update={"uses_up_budget": True}) if one.drains_forever and one.pool in full else one
        for one in found
    ]


def shorter_lives(told: WhatifTimeline) -> list[ShorterLife]:
    """Return the NodePools whose nodes expire earlier since the change: what goes on after the record has ended."""
    found = []
    for pool in sorted(told.replay.node_pools):
        before, after = (_expire_after(told, pool, time) for time in told.ends)
        lives = finite_duration(after or "")
        nodes = sum(claim.node_pool == pool and stays(claim, told.end) for claim in told.claims)
        if nodes and before is not None and lives and lives < (finite_duration(before) or timedelta.max):
            per_day = round(nodes * (_DAY / lives), 2)
            found.append(
                ShorterLife(pool=pool, before=before, after=str(after), expiring_per_day=per_day, short=lives < _DAY)
            )
    return found


def _expire_after(told: WhatifTimeline, pool: str, time: datetime) -> str | None:
    """The `expireAfter` of a NodePool; None where there is no such NodePool."""
    excerpt = told.replay.node_pool_at(pool, time)
    if excerpt is None:
        return None
    template = (excerpt.get("spec") or {}).get("template") or {}
    return str((template.get("spec") or {}).get("expireAfter") or _DEFAULT)


def _use_up(told: WhatifTimeline, pool: str, draining: int, since: datetime) -> bool:
    """Whether draining nodes are as many as the budgets of a NodePool allow at any time, for every reason."""
    spec = (told.replay.node_pool_at(pool, told.end) or {}).get("spec") or {}
    nodes = sum(claim.node_pool == pool and is_present(claim, told.end) for claim in told.claims)
    try:
        own = budgets(asked_spec(told, pool, spec))
        return all(draining >= max(n for _, n in calendar(own, why, nodes, since, since + _WEEK)) for why in _REASONS)
    except BudgetError:
        return True
