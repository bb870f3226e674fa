"""What is bought and what it costs: the vocabulary of prices, and prices by the table.

The controller's own prices come first; reading them is `metrics`' matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

from karpstack.karpenter.instance_types import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Facts

PriceSource = Literal["controller", "table"]

#: Clouds whose controller publishes the prices that it reckons with.
PUBLISHING = ("aws",)

#: Of more instance types, AWS's provider 1.15 asks for the cheapest (`maxInstanceTypes` in pkg/providers/instance) of
#: those that its filters leave: no GPUs and no bare metal where others fit, no spot dearer than on demand.
ASKED_OF_AWS = 60

#: For how long a controller takes for unavailable what it could not have: `UnavailableOfferingsTTL` (pkg/cache/cache.go
#: of AWS's provider 1.15); `AllocationFailureTTL`, the longest of a shortage that may end
#: (pkg/providers/instance/offerings/commonerrorhandlers.go of Azure's 1.14).
REMEMBERED = {"aws": timedelta(minutes=3), "azure": timedelta(hours=1)}

HOW_TO_GET_PRICES = (
    "the controller's metrics; give their address, -e karpenter_metrics_url=http://127.0.0.1:8080/metrics, "
    "for example after `kubectl -n kube-system port-forward deployment/karpenter 8080` (of two replicas, the "
    "leader has the prices); or facts/, which has on-demand prices of some regions"
)


class Offering(NamedTuple):
    """What is bought: an instance type, in a capacity type (on-demand, spot, reserved), in a zone."""

    instance_type: str
    capacity_type: str
    zone: str


def offering_of(labels: Mapping[str, str]) -> Offering | None:
    """What a NodeClaim bought, by its labels; None before it was launched."""
    values = [labels.get(key, "") for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE)]
    return Offering(*values) if all(values) else None


def offerings_of(by_zone: Mapping[str, Mapping[str, Iterable[str]]]) -> frozenset[Offering]:
    """Offerings as UNAVAILABLE lines have them: capacity type -> zone -> instance types."""
    return frozenset(
        Offering(name, kind, zone) for kind, zones in by_zone.items() for zone, names in zones.items() for name in names
    )


@dataclass(frozen=True)
class Table:
    """Prices of a region by facts/: on demand, and on a rehearsal also spot."""

    facts: Facts
    region: str

    def price(self, offering: Offering, *, simulated: bool) -> float | None:
        """USD an hour; None if the table does not say. `simulated`: a rehearsal sells it."""
        return self.facts.price(
            offering.instance_type, offering.capacity_type, self.region, offering.zone, simulated=simulated
        )
