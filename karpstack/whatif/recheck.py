"""Asks Karpenter to look once more for a way to save, where it remembers that it saw none.

It remembers until something changes, or for five minutes. A pod that is gone is such a change, also one that never had
a node (kubernetes-sigs/karpenter, pkg/controllers/state/cluster.go, DeletePod and ConsolidationState); and as it had
none, no node counts as changed, which `consolidateAfter` would protect again.
"""

from __future__ import annotations

from typing import Any, Final

from karpstack.scale_test.acting.cluster import Cluster
from karpstack.snapshot.manifests import IMAGE

# No scheduler has that name, so the pod gets no node, and Karpenter makes none for it.
_NOBODY: Final = "karpstack-second-look"
# Without the labels of the workload: nobody records or judges it.
_POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": _NOBODY, "namespace": "default"},
    "spec": {
        "schedulerName": _NOBODY,
        "automountServiceAccountToken": False,
        "containers": [{"name": "pause", "image": IMAGE}],
    },
}


def ask(cluster: Cluster) -> None:
    """Make a pod and remove it.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    cluster.create(_POD)  # one that is there was left by a what-if that was killed
    if live := cluster.read(_POD):
        cluster.delete(_POD, live["metadata"]["uid"])
