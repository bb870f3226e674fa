"""The recorder: watches the API server and writes what changes into a timeline.

It judges nothing and changes nothing. One thread a kind; see `following`. Prices of what was launched are
looked up at the moment of the launch: in the controller's metrics, or in the table where the controller publishes
none. How it gets on with its interruption queue, and its process, is read from the metrics all the time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import urllib3
from kubernetes import client, config

from ..market.prices import PUBLISHING, Offering, PriceSource, Table, offering_of
from .following import WATCH_SECONDS, Follower, Resource
from .metrics import cheapest, scrape, scrape_prices
from .request import ask
from .timeline import WORKLOAD_SELECTOR, Line, Writer, api_time

_CONNECT_SECONDS = 10
_PRICE_RETRY_SECONDS = 2.0
_METRICS_SECONDS = 5.0  # the shortest step takes about ten


def resources(node_class_kind: str, node_class_path: str) -> tuple[Resource, ...]:
    """All that a scale test needs to see, given the cloud's kind of node class and its path in the API."""
    return (
        Resource("Pod", "/api/v1/pods", (("labelSelector", WORKLOAD_SELECTOR),)),
        Resource("Node", "/api/v1/nodes"),
        Resource("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims"),
        Resource("NodePool", "/apis/karpenter.sh/v1/nodepools"),
        Resource(node_class_kind, node_class_path),
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
    """

    def __init__(
        self,
        writer: Writer,
        watched: tuple[Resource, ...],
        kubeconfig: Path | None = None,
        metrics_url: str | None = None,
        table: Table | None = None,
    ) -> None:
        self._api: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig) if kubeconfig else None)
        self._writer = writer
        self._watched = watched
        self._metrics_url = metrics_url
        self._table = table
        publishes = table is None or table.facts.cloud in PUBLISHING
        self._price_url = metrics_url if publishes else None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._unlisted = {resource.kind for resource in watched}
        self._unpriced: set[Offering] = set()
        self._priced: set[Offering] = set()
        self._price_wanted = threading.Event()
        self._simulated = False
        self._overview: dict[str, dict[str, float]] = {}

    def run(self, owner: int | None = None) -> str:
        """Record until `stop` is called or the process `owner` is gone; why it ended.

        Raises:
            kubernetes.client.ApiException: The API server does not let us in.
        """
        self._writer.write(
            "START",
            pid=os.getpid(),
            prices=bool(self._price_url),
            kubernetes=client.VersionApi(self._api).get_code().git_version,
        )
        for resource in self._watched:
            follower = Follower(resource, self._fetch, self, self._stopping)
            threading.Thread(target=follower.run, daemon=True).start()
        if self._price_url:
            threading.Thread(target=self._look_up_prices, args=(self._price_url,), daemon=True).start()
        if self._metrics_url:
            threading.Thread(target=self._look_at_metrics, args=(self._metrics_url,), daemon=True).start()
        while not self._stopping.wait(1.0):
            if owner and not _alive(owner):
                return f"the playbook's process {owner} is gone"
        return "stopped by the playbook"

    def stop(self) -> None:
        """Make `run` return; safe to call from a signal handler."""
        self._stopping.set()

    def changed(self, type_: str, kind: str, kept: Line) -> None:
        """Write that an object changed."""
        self._writer.write(type_, kind=kind, apiTime=api_time(kept), object=kept)
        self._simulated = self._simulated or bool(kept.get("simulated"))
        offering = offering_of(kept["metadata"].get("labels", {})) if kind == "NodeClaim" else None
        with self._lock:
            if offering and offering not in self._priced:
                self._unpriced.add(offering)
                self._price_wanted.set()
            if self._table and not self._price_url and self._unpriced:
                self._price_by_table(self._table)

    def listed(self, kind: str) -> None:
        """Write it when nothing is unknown any more."""
        with self._lock:
            if self._unlisted:
                self._unlisted.discard(kind)
                if not self._unlisted:
                    self._writer.write("SYNCED")

    def broke_off(self, kind: str, reason: str) -> None:
        """Write that changes may be missing."""
        self._writer.write("GAP", kind=kind, reason=reason)

    def _fetch(self, resource: Resource, query: dict[str, str]) -> AbstractContextManager[Iterator[bytes]]:
        return ask(self._api, resource, query, (_CONNECT_SECONDS, WATCH_SECONDS + _CONNECT_SECONDS))

    def _price_by_table(self, table: Table) -> None:
        for offering in sorted(self._unpriced):
            # Spot prices of the table are the rehearsal's; the first node that is seen tells whether this is one.
            price = table.price(offering, simulated=self._simulated)
            if price is not None:
                self._price(offering, price, "table")

    def _price(self, offering: Offering, price: float, source: PriceSource) -> None:
        self._writer.write(
            "PRICE",
            instanceType=offering.instance_type,
            capacityType=offering.capacity_type,
            zone=offering.zone,
            pricePerHour=price,
            source=source,
        )
        self._unpriced.discard(offering)
        self._priced.add(offering)

    def _look_up_prices(self, url: str) -> None:
        while not self._stopping.is_set():
            if self._overview:
                self._price_wanted.wait()
            try:
                prices = scrape_prices(url)
            except urllib3.exceptions.HTTPError:
                prices = {}  # it restarts, perhaps; a port-forward may come back
            if prices and (overview := cheapest(prices)) != self._overview:
                self._overview = overview
                self._writer.write("PRICES", cheapest=overview)
            with self._lock:
                for found in sorted(self._unpriced & prices.keys()):
                    self._price(found, prices[found], "controller")
                if not self._unpriced:
                    self._price_wanted.clear()
                    if self._overview:
                        continue
            self._stopping.wait(_PRICE_RETRY_SECONDS)

    def _look_at_metrics(self, url: str) -> None:
        while not self._stopping.is_set():
            with suppress(urllib3.exceptions.HTTPError):  # as with prices: it may come back
                found = scrape(url)
                if found.queue and not self._stopping.is_set():
                    self._writer.write("QUEUE", errors=found.queue.errors, reading=found.queue.reading)
                if found.process and not self._stopping.is_set():
                    self._writer.write("CONTROLLER", **found.process._asdict())
            self._stopping.wait(_METRICS_SECONDS)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
