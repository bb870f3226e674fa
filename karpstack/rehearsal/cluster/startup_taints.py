"""Lifts the startup taints that CSI drivers lift, and knows which ones nobody lifts here.

A driver's DaemonSet lifts the taint of its node when the driver is up there, whatever the taint's effect; cluster
administrators put it into startup taints so that no pod with a volume comes before. No driver runs here, and whether
one is installed in the cloud is not known here: the taint is lifted when the node is ready, as if it were.

- https://github.com/kubernetes-sigs/aws-ebs-csi-driver (docs/install.md), aws-efs-csi-driver and aws-fsx-csi-driver
- https://github.com/awslabs/mountpoint-s3-csi-driver (docs/CONFIGURATION.md)
- https://github.com/kubernetes-sigs/azuredisk-csi-driver and azurefile-csi-driver (pkg/*/nodeserver)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from karpstack.rehearsal.cluster import cilium
from karpstack.rehearsal.cluster.feed import Event, Player
from karpstack.rehearsal.cluster.nodes import is_ready
from karpstack.rehearsal.cluster.objects import try_patch

_DRIVERS: Final = (
    "ebs.csi.aws.com",
    "efs.csi.aws.com",
    "fsx.csi.aws.com",
    "s3.csi.aws.com",
    "disk.csi.azure.com",
    "file.csi.azure.com",
)
#: Keys of the taints that are lifted when their node is ready.
OF_DRIVERS: Final = frozenset(f"{driver}/agent-not-ready" for driver in _DRIVERS)
_LIFTED: Final = OF_DRIVERS | {cilium.TAINT}


def permanent_taints(node_pools: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each startup taint that nothing removes in a rehearsal: its nodes are never initialized.

    Args:
        node_pools: Name -> `spec` of each NodePool, as somebody wrote it.
    """
    for name, spec in node_pools.items():
        for taint in _list(_part(_part(_part(spec, "template"), "spec"), "startupTaints")):
            key = _part(taint, "key")
            if isinstance(key, str) and key not in _LIFTED:
                yield (
                    f"NodePool {name}: nobody lifts its startup taint {key} in a rehearsal, so its nodes are never "
                    "initialized, and only pods that tolerate it run there; take it out of what is rehearsed"
                )


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class StartupTaints(Player):
    """Stands in for the drivers' DaemonSets of one cluster."""

    name = "startup taints"
    watches: ClassVar = {"nodes": {"path": "/api/v1/nodes"}}

    def _handle(self, event: Event) -> None:
        node = event.object
        if event.type == "DELETED" or not is_ready(node):
            return
        taints = node["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] not in OF_DRIVERS]
        if len(kept) == len(taints):
            return
        metadata = node["metadata"]
        change = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"taints": kept}}
        # A node that has changed meanwhile (409) has its event on its way.
        try_patch(self._objects, f"/api/v1/nodes/{metadata['name']}", change, tolerated=(404, 409))
