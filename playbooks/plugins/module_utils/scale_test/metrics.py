"""Prices as the controller itself reckons with them, read from its metrics.

Nothing is guessed: an offering that the controller does not name has no price.
"""

from __future__ import annotations

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from .prices import Offering

# pkg/controllers/metrics of the AWS provider 1.14; renewed once a minute.
PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"


def parse_prices(text: str) -> dict[Offering, float]:
    """Offering -> USD an hour, from metrics in Prometheus' text format."""
    # A controller's metrics are tens of thousands of lines, and parsing them all takes seconds.
    ours = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(PRICE))
    return {
        Offering(sample.labels["instance_type"], sample.labels["capacity_type"], sample.labels["zone"]): sample.value
        for family in text_string_to_metric_families(ours)
        for sample in family.samples
    }


def scrape_prices(url: str) -> dict[Offering, float]:
    """Read the prices from a controller's metrics address.

    Raises:
        urllib3.exceptions.HTTPError: It does not answer.
    """
    with urllib3.PoolManager(retries=False, timeout=10.0) as http:
        return parse_prices(http.request("GET", url).data.decode())
