"""NodePools whose own `limits` allow no further node when the record ends.

Karpenter counts the nodes of a NodePool that are not on their way out (`updateNodePoolResources` in
pkg/controllers/state/cluster.go of sigs.k8s.io/karpenter 1.14), and launches no node that would exceed a limit
(`filterByRemainingResources` in pkg/controllers/provisioning/scheduling/scheduler.go). A drifted node counts until its
replacement is created, which `Create` in pkg/controllers/provisioning/provisioner.go refuses over the limits.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from karpstack.karpenter.requirements import RequirementError
from karpstack.scale_test.market.quantities import amount
from karpstack.scale_test.market.requirements import allowed
from karpstack.scale_test.numbers.cost import pools_of
from karpstack.scale_test.numbers.node_pool_choice import reason_to_skip

from .answer import FullPool
from .phases import WhatifTimeline, stays
from .prices import Priced

_GIB: Final = 2**30
_UNITS: Final = {"cpu": "CPUs", "memory": "GiB", "nodes": "nodes"}


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
    limits = {key: amount(value) for key, value in (spec.get("limits") or {}).items() if key in _UNITS}
    if not limits or reason_to_skip(excerpt) in ("going", "static"):
        return None
    claims = [claim for claim in told.claims if claim.node_pool == name and stays(claim, time)]
    used = {
        "cpu": sum(float(claim.cpus or 0) for claim in claims),
        "memory": float(sum(claim.memory or 0 for claim in claims)),
        "nodes": float(len(claims)),
    }
    exceeded = [key for key, most in limits.items() if used[key] > most]
    if not exceeded and (least := _smallest(told, market, spec)):
        beyond = [key for key, most in limits.items() if used[key] + least[key] > most]
    else:
        beyond = exceeded
    amounts = [_amounts(key, used[key], limits[key]) for key in beyond]
    return FullPool(pool=name, over=bool(exceeded), amounts=amounts, before=False) if beyond else None


def _smallest(told: WhatifTimeline, market: Priced, spec: dict[str, object]) -> dict[str, float] | None:
    """The least of each resource that a node of a NodePool has; None where that is not known."""
    try:
        choices = allowed(market.facts, market.region, pools_of(told.replay, [spec]), ())
    except (RequirementError, ValueError):
        return None
    if not choices:
        return None
    return {
        "cpu": float(min(one.type.vcpus for one in choices)),
        "memory": float(min(one.type.memory for one in choices)),
        "nodes": 1.0,
    }


def _amounts(key: str, used: float, most: float) -> str:
    by = _GIB if key == "memory" else 1
    return f"{used / by:.4g} of {most / by:.4g} {_UNITS[key]}"
