"""NodePools whose own `limits` allow no further node when the record ends.

Karpenter counts the nodes of a NodePool that are not on their way out (`updateNodePoolResources` in
pkg/controllers/state/cluster.go of sigs.k8s.io/karpenter 1.14), and launches no node that would exceed a limit
(`filterByRemainingResources` in pkg/controllers/provisioning/scheduling/scheduler.go). A drifted node counts until its
replacement is created, which `Create` in pkg/controllers/provisioning/provisioner.go refuses over the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from karpstack.karpenter.requirements import RequirementError
from karpstack.scale_test.judging.replay import NodeClaim
from karpstack.scale_test.market.quantities import amount
from karpstack.scale_test.market.requirements import Allowed, allowed
from karpstack.scale_test.numbers.cost import pools_of
from karpstack.scale_test.numbers.node_pool_choice import reason_to_skip

from .answer import FullPool
from .phases import WhatifTimeline, stays
from .prices import Priced

_GIB: Final = 2**30
_IN_GIB: Final = ("memory", "ephemeral-storage")
_UNITS: Final = {"cpu": "CPUs", "memory": "GiB", "ephemeral-storage": "GiB of ephemeral-storage"}


def full_pools(told: WhatifTimeline, market: Priced) -> list[FullPool]:
    """Return the NodePools that can launch no further node when the record ends, because of their own limits."""
    found = []
    for name in sorted(told.replay.node_pools):
        before, after = (_full(told, market, name, time) for time in told.ends)
        if after:
            found.append(after.model_copy(update={"before": before is not None and before.over >= after.over}))
    return found


def _full(told: WhatifTimeline, market: Priced, name: str, time: datetime) -> FullPool | None:
    excerpt = told.replay.node_pool_at(name, time) or {"metadata": {}}
    spec = excerpt.get("spec") or {}
    limits = {key: amount(value) for key, value in (spec.get("limits") or {}).items()}
    if not limits or reason_to_skip(excerpt) in ("going", "static"):
        return None
    claims = [claim for claim in told.claims if claim.node_pool == name and stays(claim, time)]
    used = {key: sum(_of(claim, key) for claim in claims) for key in limits}
    exceeded = [key for key, most in limits.items() if used[key] > most]
    beyond = exceeded
    if not exceeded and (choices := _choices(told, market, spec)):
        beyond = [key for key, most in limits.items() if used[key] + _least(choices, key) > most]
    amounts = [_amounts(key, used[key], limits[key]) for key in beyond]
    return FullPool(pool=name, over=bool(exceeded), amounts=amounts, before=False) if beyond else None


def _of(claim: NodeClaim, key: str) -> float:
    """What a node counts for a limit: by its node, and before there is one by its NodeClaim (`StateNode.Capacity`)."""
    if key == "nodes":
        return 1.0
    return amount((claim.own_node.get("capacity") or {}).get(key) or claim.capacity.get(key, 0))


def _choices(told: WhatifTimeline, market: Priced, spec: dict[str, object]) -> list[Allowed]:
    """What a NodePool may launch; none where that is not known."""
    try:
        return allowed(market.facts, market.region, pools_of(told.replay, [spec]), ())
    except (RequirementError, ValueError):
        return []


def _least(choices: Sequence[Allowed], key: str) -> float:
    """The least of a resource that a node of a NodePool has, as far as it is known."""
    return 1.0 if key == "nodes" else min(one.type.amount(key) or 0.0 for one in choices)


def _amounts(key: str, used: float, most: float) -> str:
    by = _GIB if key in _IN_GIB else 1
    return f"{used / by:.4g} of {most / by:.4g} {_UNITS.get(key, key)}"
