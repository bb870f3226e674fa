"""What a what-if has on a cluster in no namespace, by its labels: of this run, or of one that was killed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from karpstack.scale_test.acting.cluster import Cluster
from karpstack.scale_test.scenarios.manifests import IN_NO_NAMESPACE, title

from .labels import SELECTOR

_KINDS: Final = {"Namespace": "v1", **IN_NO_NAMESPACE}
#: What to do where something of the snapshot's is on the cluster already.
OTHERWISE: Final = (
    "the what-if would load the snapshot's workload into it and then remove it with all that is in it; what an earlier "
    "what-if left is removed at the beginning, and this is another's: remove it if it is not needed, or ask on a "
    "cluster that does not have it, as a rehearsed one (karpstack whatif STACK --workloads FILE)"
)


def workload(cluster: Cluster, wanted: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Some objects, and besides what has a what-if's labels and is in no namespace, each once.

    Raises:
        ClusterError: The API server does not answer, or refuses.
    """
    labelled = (
        {"apiVersion": api, "kind": kind, "metadata": {"name": live["metadata"]["name"]}}
        for kind, api in _KINDS.items()
        for live in cluster.labelled(api, kind, SELECTOR)
    )
    return list({title(one): one for one in (*labelled, *wanted)}.values())
