"""The recorder: watches the API server and writes what changes into a timeline.

It judges nothing and changes nothing. One thread a kind; see `following`. Prices of what was launched are
looked up in the controller's metrics at the moment of the launch; how it gets on with its interruption queue is
read from them all the time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import urllib3
from kubernetes import client, config

from .following import WATCH_SECONDS, BrokenError, Follower, Resource
from .metrics import scrape_prices, scrape_queue
from .prices import Offering, offering_of
from .timeline import WORKLOAD_SELECTOR, Line, Writer, api_time

_CONNECT_SECONDS = 10
_PRICE_RETRY_SECONDS = 2.0
_QUEUE_SECONDS = 5.0  # the shortest step takes about ten


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
    """

    def __init__(
        self,
        writer: Writer,
        watched: tuple[Resource, ...],
        kubeconfig: Path | None = None,
        metrics_url: str | None = None,
    ) -> None:
        self._api: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig) if kubeconfig else None)
        self._writer = writer
        self._watched = watched
        self._metrics_url = metrics_url
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._unlisted = {resource.kind for resource in watched}
        self._unpriced: set[Offering] = set()
        self._priced: set[Offering] = set()
        self._price_wanted = threading.Event()

    def run(self, owner: int | None = None) -> str:
        """Record until `stop` is called or the process `owner` is gone; why it ended.

        Raises:
            kubernetes.client.ApiException: The API server does not let us in.
        """
        self._writer.write(
            "START",
            pid=os.getpid(),
            prices=bool(self._metrics_url),
            kubernetes=client.VersionApi(self._api).get_code().git_version,
        )
        for resource in self._watched:
            follower = Follower(resource, self._fetch, self, self._stopping)
            threading.Thread(target=follower.run, daemon=True).start()
        if self._metrics_url:
            threading.Thread(target=self._look_up_prices, args=(self._metrics_url,), daemon=True).start()
            threading.Thread(target=self._look_at_queue, args=(self._metrics_url,), daemon=True).start()
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
        offering = offering_of(kept["metadata"].get("labels", {})) if kind == "NodeClaim" else None
        if offering and offering not in self._priced:
            with self._lock:
                self._unpriced.add(offering)
                self._price_wanted.set()

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

    @contextmanager
    def _fetch(self, resource: Resource, query: dict[str, str]) -> Iterator[Iterator[bytes]]:
        request = self._api.param_serialize(
            "GET",
            resource.path,
            query_params=[*resource.selectors, *query.items()],
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        try:
            answer: urllib3.HTTPResponse = self._api.call_api(
                *request, _request_timeout=(_CONNECT_SECONDS, WATCH_SECONDS + _CONNECT_SECONDS)
            ).response
            try:
                if answer.status != 200:
                    raise BrokenError(answer.read(1000).decode(errors="replace"), answer.status)
                yield iter(answer)
            finally:
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise BrokenError(str(error)) from error

    def _look_up_prices(self, url: str) -> None:
        while not self._stopping.is_set():
            self._price_wanted.wait()
            try:
                prices = scrape_prices(url)
            except urllib3.exceptions.HTTPError:
                prices = {}  # it restarts, perhaps; a port-forward may come back
            with self._lock:
                for found in sorted(self._unpriced & prices.keys()):
                    self._writer.write(
                        "PRICE",
                        instanceType=found.instance_type,
                        capacityType=found.capacity_type,
                        zone=found.zone,
                        pricePerHour=prices[found],
                    )
                    self._unpriced.remove(found)
                    self._priced.add(found)
                if not self._unpriced:
                    self._price_wanted.clear()
                    continue
            self._stopping.wait(_PRICE_RETRY_SECONDS)

    def _look_at_queue(self, url: str) -> None:
        while not self._stopping.is_set():
            with suppress(urllib3.exceptions.HTTPError):  # as with prices: it may come back
                found = scrape_queue(url)
                if found and not self._stopping.is_set():
                    self._writer.write("QUEUE", errors=found.errors, reading=found.reading)
            self._stopping.wait(_QUEUE_SECONDS)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
