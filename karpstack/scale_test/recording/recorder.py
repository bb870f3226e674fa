"""The recorder: watches the API server and writes what changes into a timeline.

It judges nothing and changes nothing. One thread a kind; see `following`. What was launched is priced at that moment:
by the controller's metrics, or by the table where the controller publishes none. How it gets on with its interruption
queue, its process, and what it takes for unavailable, is read from the metrics all the time.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import urllib3
from kubernetes import client

from karpstack.karpenter import clock
from karpstack.text.shown import masked, visible

from ..connecting import connect
from ..labels import WORKLOAD_SELECTOR
from ..market.prices import PUBLISHING, Offering, PriceSource, Table, offering_of
from ..processes import is_gone
from ..scenarios.environments import JUDGED_BY, Stack
from .following import WATCH_SECONDS, Follower, Resource
from .metrics import Reading, by_zone, cheapest, scrape
from .request import ask, version
from .timeline import Line, Writer, api_time

_CONNECT_SECONDS = 10
# Where time is skipped, these pauses are over at once, so the controller is left alone in real time, too: so many
# times as long as it took, and for no less than this.
_REAL_REST, _LEAST_REAL_SECONDS = 4, 0.5
# The controller looks for prices once a minute, for the first time when it starts and may know of no NodePool yet.
_PUBLISHED_SECONDS = 75.0


@dataclass(frozen=True)
class Pace:
    """How often the controller's metrics are read. All but `rest` are seconds.

    Attributes:
        metrics: Between two reads: the shortest step takes about ten seconds.
        prices: The same while a price is awaited.
        rest: The controller gathers all its series for every read, which takes half a second of a busy machine when
            there are tens of thousands. So it is left alone so many times as long afterwards.
        longest_rest: But a story of a minute must have some reads.
        unavailable: Between two reads of unavailable offerings: the controller renews them once a minute, and forgets a
            shortage after three minutes.
    """

    metrics: float = 5.0
    prices: float = 2.0
    rest: float = 40
    longest_rest: float = 30.0
    unavailable: float = 30.0


def resources(node_class_kind: str, node_class_path: str) -> tuple[Resource, ...]:
    """All that a scale test needs to see, given the cloud's kind of node class and its path in the API."""
    return (
        Resource("Pod", "/api/v1/pods", (("labelSelector", WORKLOAD_SELECTOR),)),
        Resource("Node", "/api/v1/nodes"),
        Resource("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims"),
        Resource("NodePool", "/apis/karpenter.sh/v1/nodepools"),
        Resource(node_class_kind, node_class_path),
        Resource(
            "PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", (("labelSelector", WORKLOAD_SELECTOR),)
        ),
        Resource("Event", "/api/v1/events", (("fieldSelector", "source=karpenter"),)),
    )


class Recorder:
    """Records until it is stopped.

    Args:
        writer: The timeline, opened for recording.
        watched: What to watch.
        kubeconfig: The kubeconfig to connect with; None for the usual one.
        metrics_url: Address of the controller's metrics; None to do without what they tell.
        table: Prices, for a cloud whose controller publishes none, or where its metrics are not at hand; None to do
            without.
        metrics_token: Bearer token for the metrics, if they ask for one.
        stack: The stack that is tested, so that the timeline can be judged by itself; None if it is not known.
        scenarios: Names of those that are to run, so that one that never begins is known; empty if they are not known.
        pace: How often the metrics are read.
    """

    def __init__(
        self,
        writer: Writer,
        watched: tuple[Resource, ...],
        kubeconfig: Path | None = None,
        metrics_url: str | None = None,
        table: Table | None = None,
        *,
        metrics_token: str = "",
        stack: Stack | None = None,
        scenarios: Sequence[str] = (),
        pace: Pace = Pace(),
    ) -> None:
        self._stack, self._scenarios, self._pace = stack, tuple(scenarios), pace
        self._api: client.ApiClient = connect(kubeconfig)
        self._writer = writer
        self._watched = watched
        self._metrics_url = metrics_url
        self._metrics_token = metrics_token
        self._table = table
        publishes = table is None or table.facts.cloud in PUBLISHING
        self._source: PriceSource = "controller" if metrics_url and publishes else "table"
        self._asked_to_stop = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._unlisted = {resource.kind for resource in watched}
        self._unpriced: set[Offering] = set()
        self._priced: set[Offering] = set()
        self._prices: dict[Offering, float] = {}  # the controller's, when they were last asked for
        self._unavailable: frozenset[Offering] = frozenset()
        self._unavailable_due = 0.0  # by the monotonic clock
        self._controller_started: float | None = None  # Unix time
        self._simulated = False
        self._unanswered = ""  # why the last look at the metrics told nothing

    def run(self, owner: int | None = None) -> str:
        """Record until `stop` is called or the process `owner` is gone; why it ended.

        A controller that has just started may owe prices of what was launched. They are waited for.

        Raises:
            BrokenError: The API server does not answer, or does not let us in.
        """
        self._writer.write(
            "START",
            pid=os.getpid(),
            prices=self._source == "controller",
            kubernetes=version(self._api),
            **({"stack": recorded(self._stack)} if self._stack else {}),
            **({"scenarios": self._scenarios} if self._scenarios else {}),
        )
        if self._metrics_url:
            # Reading all prices takes a second, and nothing goes by yet that would have to wait for its turn.
            rest = self._look_at_metrics(self._metrics_url)
            if self._unanswered:
                print(
                    visible(
                        f"warning: {self._metrics_url} gave no metrics ({self._unanswered}); it is asked again, and "
                        "without them, the report lacks the controller's prices, queue and process"
                    ),
                    file=sys.stderr,
                    flush=True,
                )
            threading.Thread(target=self._follow_metrics, args=(self._metrics_url, rest), daemon=True).start()
        for resource in self._watched:
            follower = Follower(resource, self._fetch, self, self._stopping)
            threading.Thread(target=follower.run, daemon=True).start()
        reason = "stopped by the playbook"
        while not self._asked_to_stop or self._owed_prices():
            if owner and is_gone(owner):
                reason = f"the playbook's process {owner} is gone"
                break
            self._wake.wait(1.0)
            self._wake.clear()
        self._stopping.set()
        return reason

    def stop(self) -> None:
        """Make `run` return; safe to call from a signal handler."""
        self._asked_to_stop = True
        self._wake.set()

    def changed(self, type_: str, kind: str, kept: Line) -> None:
        """Write that an object changed."""
        if kind == "Event" and type_ == "DELETED":
            return  # they go by themselves an hour later, which says nothing
        self._writer.write(type_, kind=kind, apiTime=api_time(kept), object=kept)
        self._simulated = self._simulated or bool(kept.get("simulated"))
        offering = offering_of(kept["metadata"].get("labels", {})) if kind == "NodeClaim" else None
        with self._lock:
            if offering and offering not in self._priced:
                self._unpriced.add(offering)
            self._price_launched()

    def listed(self, kind: str) -> None:
        """Write it when nothing is unknown any more."""
        with self._lock:
            if self._unlisted:
                self._unlisted.discard(kind)
                if not self._unlisted:
                    self._writer.write("SYNCED")

    def broke_off(self, kind: str, reason: str) -> None:
        """Write that changes may be missing."""
        self._writer.write("GAP", kind=kind, reason=masked(reason))

    def _owed_prices(self) -> bool:
        """Whether the controller will soon publish the price of something that was launched."""
        with self._lock:
            unpriced = self._source == "controller" and bool(self._unpriced)
        started = self._controller_started
        return unpriced and started is not None and clock.now() < started + _PUBLISHED_SECONDS

    def _fetch(self, resource: Resource, query: dict[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        return ask(self._api, resource, query, (_CONNECT_SECONDS, WATCH_SECONDS + _CONNECT_SECONDS))

    def _price_launched(self) -> None:
        """Write the prices that are known of what has none yet."""
        for offering in sorted(self._unpriced):
            price = self._price(offering)
            if price is None:
                continue
            self._writer.write(
                "PRICE",
                instanceType=offering.instance_type,
                capacityType=offering.capacity_type,
                zone=offering.zone,
                pricePerHour=price,
                source=self._source,
            )
            self._unpriced.discard(offering)
            self._priced.add(offering)

    def _price(self, offering: Offering) -> float | None:
        if self._source == "controller":
            return self._prices.get(offering)
        # Spot prices of the table are the rehearsal's; the first node that is seen tells whether this is one.
        return self._table.price(offering, simulated=self._simulated) if self._table else None

    def _follow_metrics(self, url: str, rest: float) -> None:
        due = time.monotonic()
        while not clock.wait(self._stopping, rest) and not self._stopping.wait(due - time.monotonic()):
            began = time.monotonic()
            rest = self._look_at_metrics(url)
            ended = time.monotonic()
            due = ended + max(_LEAST_REAL_SECONDS, _REAL_REST * (ended - began))

    def _look_at_metrics(self, url: str) -> float:
        """Look once; the seconds until the next time."""
        rest = 0.0
        # It restarts, perhaps; a port-forward may come back, and something else may answer in the meantime.
        try:
            reading = scrape(
                url,
                prices=self._prices_wanted(),
                unavailable=self._source == "controller" and clock.monotonic() >= self._unavailable_due,
                token=self._metrics_token,
            )
            rest = min(self._pace.rest * reading.seconds * clock.speed(), self._pace.longest_rest)
            self._note(reading)
            self._unanswered = ""
        except (urllib3.exceptions.HTTPError, ArithmeticError, LookupError, ValueError) as error:
            self._unanswered = f"{type(error).__name__}: {error}"
        return max(self._pace.prices if self._prices_wanted() else self._pace.metrics, rest)

    def _prices_wanted(self) -> bool:
        """Whether to ask the controller: once for all that it knows, and again when something new was launched."""
        return self._source == "controller" and (not self._prices or bool(self._unpriced))

    def _note(self, reading: Reading) -> None:
        if self._stopping.is_set():
            return
        if reading.queue:
            self._writer.write("QUEUE", errors=reading.queue.errors, reading=reading.queue.reading)
        if reading.process:
            self._controller_started = reading.process.started
            self._writer.write("CONTROLLER", **reading.process._asdict())
        if reading.unavailable is not None:
            self._unavailable_due = clock.monotonic() + self._pace.unavailable
            became, ceased = reading.unavailable - self._unavailable, self._unavailable - reading.unavailable
            self._unavailable = reading.unavailable
            # Also where nothing changed: who reads it knows how old the answer is.
            self._writer.write("UNAVAILABLE", became=by_zone(became), ceased=by_zone(ceased))
        if reading.prices and reading.prices != self._prices:
            self._writer.write("PRICES", cheapest=cheapest(reading.prices))
            with self._lock:
                self._prices = reading.prices
                self._price_launched()
            self._wake.set()


def recorded(stack: Stack) -> Line:
    """What the START line says of a stack."""
    return {"name": stack.name, "outputs": {key: stack.outputs[key] for key in JUDGED_BY if key in stack.outputs}}
