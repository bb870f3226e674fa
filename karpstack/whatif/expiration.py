"""When drifted nodes that nothing replaces expire.

Karpenter deletes an expired NodeClaim without a replacement, whatever its budgets allow and whether its pods have
another place (sigs.k8s.io/karpenter 1.15, pkg/controllers/nodeclaim/expiration/controller.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from karpstack.scale_test.numbers.disruptions import lifetime

from .answer import Surviving
from .phases import Told


def with_expirations(
    told: Told, stayed: Sequence[Surviving], created: Mapping[str, datetime], later: timedelta
) -> list[Surviving]:
    """Return the nodes that stayed; those that are never replaced have the moment at which they expire.

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
            one = one.model_copy(update={"expires": max(ends, now).isoformat()})
        found.append(one)
    return found
