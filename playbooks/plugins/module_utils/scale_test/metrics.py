"""What only the controller's metrics tell: the prices that it reckons with, and whether it reads its queue.

Nothing is guessed: an offering that the controller does not name has no price.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import urllib3
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from .prices import Offering

# pkg/controllers/metrics of the AWS provider 1.14; renewed once a minute.
PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"
# pkg/internal/controller/metrics of controller-runtime 0.24, and the AWS provider's name of the controller.
ERRORS = "controller_runtime_reconcile_errors_total"
ACTIVE = "controller_runtime_active_workers"
_INTERRUPTION = "interruption"


class QueueReading(NamedTuple):
    """How a controller gets on with its interruption queue: errors since it started, and whether it reads now."""

    errors: int
    reading: bool


def parse_prices(text: str) -> dict[Offering, float]:
    """Offering -> USD an hour, from metrics in Prometheus' text format."""
    return {
        Offering(sample.labels["instance_type"], sample.labels["capacity_type"], sample.labels["zone"]): sample.value
        for family in _families(text, PRICE)
        for sample in family.samples
    }


def parse_queue(text: str) -> QueueReading | None:
    """How it gets on with the interruption queue; None for a controller that has none to read, or does not lead."""
    found = {
        sample.name: sample.value
        for family in _families(text, ERRORS, ACTIVE)
        for sample in family.samples
        if sample.labels["controller"] == _INTERRUPTION
    }
    return QueueReading(int(found[ERRORS]), found[ACTIVE] > 0) if found.keys() >= {ERRORS, ACTIVE} else None


def scrape_prices(url: str) -> dict[Offering, float]:
    """Read the prices from a controller's metrics address.

    Raises:
        urllib3.exceptions.HTTPError: It does not answer.
    """
    return parse_prices(_scrape(url))


def scrape_queue(url: str) -> QueueReading | None:
    """Read how the controller gets on with its interruption queue; None if it does not say.

    Raises:
        urllib3.exceptions.HTTPError: It does not answer.
    """
    return parse_queue(_scrape(url))


def _scrape(url: str) -> str:
    with urllib3.PoolManager(retries=False, timeout=10.0) as http:
        return http.request("GET", url).data.decode()


def _families(text: str, *names: str) -> Iterable[Metric]:
    # A controller's metrics are tens of thousands of lines, and parsing them all takes seconds.
    ours = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
    return text_string_to_metric_families(ours)
