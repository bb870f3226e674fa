"""Takes the snapshot of a cluster that is there."""

from __future__ import annotations

from pathlib import Path

from karpenter import clock

from . import cluster
from .left_out import Ledger
from .model import Snapshot
from .taking import snapshot_of


def take(kubeconfig: Path | None = None, context: str | None = None) -> Snapshot:
    """The snapshot of a cluster, which is asked for lists and for nothing else.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for its current one.

    Raises:
        ClusterError: There is no cluster, or it refuses.
        SnapshotError: It has more pods than any cluster holds.
    """
    ledger = Ledger()
    return snapshot_of(
        cluster.read(ledger, kubeconfig, context), clock.utcnow().replace(microsecond=0), "cluster", ledger
    )
