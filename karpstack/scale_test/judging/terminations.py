"""When Karpenter deletes the pods of a node that is being deleted, whatever holds them.

With a terminationGracePeriod, it deletes each pod its own grace period before the NodeClaim's deletion plus that time
(`needsForceDelete` in pkg/controllers/node/termination/terminator/eviction.go of sigs.k8s.io/karpenter 1.15).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from karpstack.karpenter.quantities import finite_duration

from .replay import NodeClaim, Pod

_GRACE: Final = 30.0  # seconds that Kubernetes gives a pod which asks for none


def deadline(claim: NodeClaim) -> datetime | None:
    """Return when the last pods of a NodeClaim that is being deleted go, whatever holds them; None if never."""
    if claim.deleting is None:
        return None
    own, patience = claim.termination_time, grace(claim)
    return own or (claim.deleting + patience if patience is not None else None)


def grace(claim: NodeClaim) -> timedelta | None:
    """Return the terminationGracePeriod of a NodeClaim; None where it has none."""
    return finite_duration(claim.termination_grace_period or "")


def deletion(pod: Pod, last: datetime, now: datetime) -> datetime:
    """Return when Karpenter deletes a pod so that it has ended at the deadline of its node."""
    return max(now, last - timedelta(seconds=_GRACE if pod.grace_seconds is None else pod.grace_seconds))
