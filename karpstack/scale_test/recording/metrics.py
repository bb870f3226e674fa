"""What only the controller's metrics tell: its prices, what it takes for unavailable, its queue, how its process does.

Nothing is guessed: an offering that the controller does not name has no price. Only what is read is asked for: all of
a controller's metrics are megabytes, which it would write, and we read, out of the time of what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlencode

import urllib3
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from karpstack.text.deadlines import within
from karpstack.text.pools import pool_for
from karpstack.text.retries import bounded

from ..market.prices import Offering

# pkg/controllers/metrics of the AWS provider 1.15; renewed once a minute. Azure's provider 1.14 publishes neither.
AVAILABLE = "karpenter_cloudprovider_instance_type_offering_available"
PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"
# pkg/internal/controller/metrics of controller-runtime 0.24, and the AWS provider's name of the controller.
ERRORS = "controller_runtime_reconcile_errors_total"
ACTIVE = "controller_runtime_active_workers"
_INTERRUPTION = "interruption"
# The process collector of Prometheus' Go client, which controller-runtime registers.
MEMORY = "process_resident_memory_bytes"
CPU = "process_cpu_seconds_total"
STARTED = "process_start_time_seconds"
# operatorpkg's, which Karpenter registers in the place of client-go's own, and Karpenter's, around its provider.
REQUESTS = "client_go_request_total"
CLOUD_ERRORS = "karpenter_cloudprovider_errors_total"
# Karpenter's, of each look at what it may disrupt, by method; of one look, the last method is this.
LOOKS = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"
_LAST_METHOD = "single"
_QUEUE = (ERRORS, ACTIVE)
_PROCESS = (MEMORY, CPU, STARTED, REQUESTS, CLOUD_ERRORS, LOOKS)
# What a controller in good health is answered all the time: not there any more, and changed by another meanwhile.
_HARMLESS_CODES = {"404", "409"}
_HARMLESS_CLOUD_ERROR = "NodeClaimNotFoundError"
# Of one answer: bytes, ten times those of all series of a large cloud, and seconds.
_MOST = 256 * 2**20
_ANSWER_SECONDS = 60.0
_CHUNK = 2**16
# The next look is the repetition.
_ONCE = bounded(0)
# What is reserved is unavailable wherever nothing is.
_RESERVED = "reserved"


class QueueReading(NamedTuple):
    """How a controller gets on with its interruption queue: errors since it started, and whether it reads now."""

    errors: int
    reading: bool


class ProcessReading(NamedTuple):
    """A controller's process.

    Attributes:
        memory_bytes: Resident memory.
        cpu_seconds: Processor time since it started.
        api_errors: Failed calls since it started.
        started: When that was, in Unix time.
        looks: How often since it started it has looked at all nodes, one method after another, and disrupted none.
    """

    memory_bytes: int
    cpu_seconds: float
    api_errors: int
    started: float
    looks: int = 0


class Reading(NamedTuple):
    """What one look at the metrics told, None for what it did not; and the seconds that the controller took to answer.

    Prices are USD an hour; none if they were not asked for. What is unavailable is None if it was not asked for, or not
    told.
    """

    queue: QueueReading | None
    process: ProcessReading | None
    prices: dict[Offering, float]
    unavailable: frozenset[Offering] | None
    seconds: float


def parse_prices(text: str) -> dict[Offering, float]:
    """Offering -> USD an hour, from metrics in Prometheus' text format.

    The controller writes 0 for what it does not know the price of; that is left out.
    """
    return {
        _offering(sample): sample.value
        for family in _families(text, PRICE)
        for sample in family.samples
        if sample.value > 0
    }


def parse_unavailable(text: str) -> frozenset[Offering] | None:
    """What the controller would not launch now: for a shortage that it met, or since it is not sold there.

    None where it does not say. What is reserved is left out.
    """
    lines = [line for line in text.splitlines() if line.startswith(AVAILABLE)]
    # Nearly all are available, and their lines need not be parsed.
    families = _families("\n".join(line for line in lines if not line.endswith(" 1")), AVAILABLE)
    found = (_offering(sample) for family in families for sample in family.samples if not sample.value)
    return frozenset(offering for offering in found if offering.capacity_type != _RESERVED) if lines else None


def parse_queue(text: str) -> QueueReading | None:
    """How it gets on with the interruption queue; None for a controller that has none to read, or does not lead."""
    values = {
        sample.name: sample.value
        for family in _families(text, *_QUEUE)
        for sample in family.samples
        if sample.labels["controller"] == _INTERRUPTION
    }
    return QueueReading(int(values[ERRORS]), values[ACTIVE] > 0) if values.keys() >= {ERRORS, ACTIVE} else None


def parse_process(text: str) -> ProcessReading | None:
    """How the controller's process gets on; None where it does not say."""
    values: dict[str, float] = {}
    errors = looks = 0.0
    for family in _families(text, *_PROCESS):
        for sample in family.samples:
            if sample.name == REQUESTS:
                errors += sample.value * _failed(sample.labels["code"])
            elif sample.name == CLOUD_ERRORS:
                errors += sample.value * (sample.labels["error"] != _HARMLESS_CLOUD_ERROR)
            elif sample.name == f"{LOOKS}_count":
                looks += sample.value * (sample.labels["consolidation_type"] == _LAST_METHOD)
            else:
                values[sample.name] = sample.value
    if not values.keys() >= {MEMORY, CPU, STARTED}:
        return None
    return ProcessReading(int(values[MEMORY]), values[CPU], int(errors), values[STARTED], int(looks))


def cheapest(prices: Mapping[Offering, float]) -> dict[str, dict[str, float]]:
    """Capacity type -> instance type -> USD an hour in the cheapest zone; what is reserved is paid for already."""
    lowest: dict[str, dict[str, float]] = {}
    for offering, price in prices.items():
        if offering.capacity_type == _RESERVED:
            continue
        of_type = lowest.setdefault(offering.capacity_type, {})
        of_type[offering.instance_type] = min(price, of_type.get(offering.instance_type, price))
    return {kind: dict(sorted(of_type.items())) for kind, of_type in sorted(lowest.items())}


def by_zone(offerings: Iterable[Offering]) -> dict[str, dict[str, list[str]]]:
    """Capacity type -> zone -> instance types."""
    found: dict[str, dict[str, list[str]]] = {}
    for offering in sorted(offerings):
        found.setdefault(offering.capacity_type, {}).setdefault(offering.zone, []).append(offering.instance_type)
    return found


def scrape(
    url: str, *, prices: bool, unavailable: bool = False, token: str = "", most: float = _ANSWER_SECONDS
) -> Reading:
    """Read how the controller gets on, and its prices and what is unavailable if they are wanted.

    Args:
        url: Address of the metrics.
        prices: Whether prices are wanted.
        unavailable: Whether it is wanted what is unavailable.
        token: Bearer token, if they ask for one.
        most: Seconds to wait for the whole answer.

    Raises:
        urllib3.exceptions.HTTPError: It does not answer.
        ValueError: What answers is no controller, or takes too long.
    """
    # Prometheus' Go client filters by these since 1.24; an older one tells all, and what is not ours is left unread.
    many = (*((PRICE,) if prices else ()), *((AVAILABLE,) if unavailable else ()))
    names = urlencode([("name[]", name) for name in (*_QUEUE, *_PROCESS, *many)])
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = time.monotonic()
    try:
        asking = f"{url}{'&' if '?' in url else '?'}{names}"
        text = within(most, partial(_read, asking, headers)).decode()
    except TimeoutError as error:
        raise ValueError(str(error)) from error
    seconds = time.monotonic() - asked
    return Reading(
        parse_queue(text),
        parse_process(text),
        parse_prices(text) if prices else {},
        parse_unavailable(text) if unavailable else None,
        seconds,
    )


def _read(url: str, headers: Mapping[str, str]) -> bytes:
    content = bytearray()
    with (
        pool_for(url, _ONCE, urllib3.Timeout(10.0)) as http,
        http.request("GET", url, headers=headers, preload_content=False) as answer,
    ):
        if answer.status != HTTPStatus.OK:
            raise ValueError(f"an answer with {answer.status}")
        while chunk := answer.read1(_CHUNK, decode_content=True):
            content += chunk
            if len(content) > _MOST:
                raise ValueError(f"an answer of more than {_MOST // 2**20} MiB")
    return bytes(content)


def _offering(sample: Sample) -> Offering:
    return Offering(sample.labels["instance_type"], sample.labels["capacity_type"], sample.labels["zone"])


def _failed(code: str) -> bool:
    """Whether a request ended badly; without an answer, the code is `<error>`."""
    return not code.startswith(("1", "2", "3")) and code not in _HARMLESS_CODES


def _families(text: str, *names: str) -> Iterable[Metric]:
    # A controller's metrics are tens of thousands of lines, and parsing them all takes seconds.
    ours = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
    return text_string_to_metric_families(ours)
