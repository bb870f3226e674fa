"""Scales the workload of a what-if along a daily curve."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from karpstack.scale_test.acting.cluster import Cluster
from karpstack.scale_test.scenarios.curve import Curve, CurveError

from .labels import SELECTOR

_API: Final = "apps/v1"
_KINDS: Final = ("Deployment", "StatefulSet")


class ReplicaCurve:
    """The workloads of a cluster, each with the replicas that it has with a factor of 1.

    Args:
        cluster: The cluster.
        curve: The curve.

    Raises:
        ClusterError: The API server does not answer, or refuses.
        CurveError: A pattern of the curve matches no workload.
    """

    def __init__(self, cluster: Cluster, curve: Curve) -> None:
        self._cluster = cluster
        self._curve = curve
        self._workloads = [
            {"apiVersion": _API, "kind": kind, **{key: one[key] for key in ("metadata", "spec")}}
            for kind in _KINDS
            for one in cluster.labelled(_API, kind, SELECTOR)
        ]
        self._now = {_name(one): int(one["spec"]["replicas"]) for one in self._workloads}
        self._base = dict(self._now)
        if unused := curve.unused(list(self._base)):
            raise CurveError(
                f"{', '.join(unused)} matches no workload, so nothing would be scaled by it; the workloads are "
                f"{', '.join(sorted(self._base)[:5])}{', ...' if len(self._base) > 5 else ''}"
            )

    def turn(self, at: datetime) -> None:
        """Give each workload the replicas that it has at a moment.

        Raises:
            ClusterError: The API server does not answer, or refuses.
        """
        for workload in self._workloads:
            name = _name(workload)
            wanted = self._curve.replicas(name, self._base[name], at)
            if wanted != self._now[name]:
                self._cluster.change(workload, {"spec": {"replicas": wanted}})
                self._now[name] = wanted


def _name(workload: dict[str, Any]) -> str:
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
