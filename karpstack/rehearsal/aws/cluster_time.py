"""Lets the simulated account tell cluster time, which may run faster than the machine's.

Karpenter compares what EC2 says with its own clock: it takes an instance that was launched half a minute ago, and that
no NodeClaim names, for forgotten.

Change in moto: its services ask the cluster's clock.
"""

from __future__ import annotations

from karpstack.karpenter import clock
from karpstack.rehearsal.aws.patching import Patches


def patch(patches: Patches) -> None:
    """Install it; before moto's services are imported, which take the function by its name."""
    from moto.core import utils

    patches.set(utils, "utcnow", lambda: clock.utcnow().replace(tzinfo=None))
