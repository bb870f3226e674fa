"""What is bought and what it costs: the vocabulary of prices. Where prices come from is `metrics`' matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HOW_TO_GET_PRICES = (
    "the controller's metrics; give their address, -e karpenter_metrics_url=http://127.0.0.1:8080/metrics, "
    "for example after `kubectl -n kube-system port-forward deployment/karpenter 8080` (of two replicas, the "
    "leader has the prices)"
)


class Offering(NamedTuple):
    """What is bought: an instance type, in a capacity type (on-demand, spot, reserved), in a zone."""

    instance_type: str
    capacity_type: str
    zone: str


def offering_of(labels: Mapping[str, str]) -> Offering | None:
    """What a NodeClaim bought, by its labels; None before it was launched."""
    values = [
        labels.get(key, "")
        for key in (
            "node.kubernetes.io/instance-type",
            "karpenter.sh/capacity-type",
            "topology.kubernetes.io/zone",
        )
    ]
    return Offering(*values) if all(values) else None
