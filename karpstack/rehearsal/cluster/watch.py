"""A watch on a collection of Kubernetes objects that survives what ends a watch on the wire.

It knows the protocol (listing, resource versions, bookmarks, expiry) and no kinds.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import urllib3

if TYPE_CHECKING:
    from karpstack.rehearsal.cluster.objects import Objects

Object = dict[str, Any]

_SECONDS_BETWEEN_TRIES = 0.2
_GONE = 410
_LOG = logging.getLogger(__name__)


class Watch:
    """What happens to the objects of a collection, from those that exist now on.

    Iterating gives (type, object) with the types ADDED, MODIFIED and DELETED. A broken or expired watch goes on
    with a new listing; what was missed in between is given as such events. The iteration ends when the watch is
    closed, and with `ApiError` (404) when the kind is not served (any more).
    """

    def __init__(self, client: Objects, path: str, query: Mapping[str, str]) -> None:
        self._client = client
        self._path = path
        self._query = query
        self._closed = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Object] = {}

    def close(self) -> None:
        """End the iteration, also while it waits in another thread."""
        self._closed.set()
        with self._lock:
            if self._response is not None:
                _shut(self._response)
        self._client.forget(self)

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        """See the class."""
        while not self._closed.is_set():
            try:
                listing = self._client.request("GET", self._path, query=self._query)
                yield from self._compare(items(listing))
                yield from self._follow(listing["metadata"]["resourceVersion"])
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if not self._closed.is_set():
                    _LOG.debug("watch of %s: %s", self._path, error)
                    self._closed.wait(_SECONDS_BETWEEN_TRIES)

    def _compare(self, items: Iterable[Object]) -> Iterator[tuple[str, Object]]:
        present = {_key(item): item for item in items}
        for key in self._known.keys() - present.keys():
            yield "DELETED", self._known.pop(key)
        for key, item in present.items():
            before = self._known.get(key)
            self._known[key] = item
            if before is None:
                yield "ADDED", item
            elif before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                yield "MODIFIED", item

    def _follow(self, version: str) -> Iterator[tuple[str, Object]]:
        """Follow from a resource version until the history that is needed is gone or the watch is closed."""
        while not self._closed.is_set():
            response = self._client.stream(
                self._path, {**self._query, "watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
            )
            with self._lock:
                self._response = response
                if self._closed.is_set():
                    _shut(response)
            try:
                for event in self._events(response):
                    item = event["object"]
                    if event["type"] == "ERROR":
                        if item.get("code") != _GONE:
                            _LOG.debug("watch of %s: %s", self._path, item.get("message"))
                        return
                    version = item["metadata"]["resourceVersion"]
                    if event["type"] == "BOOKMARK":
                        continue
                    if event["type"] == "DELETED":
                        self._known.pop(_key(item), None)
                    else:
                        self._known[_key(item)] = item
                    yield event["type"], item
            finally:
                with self._lock:
                    self._response = None
                response.close()

    def _events(self, response: urllib3.BaseHTTPResponse) -> Iterator[Object]:
        rest = b""
        for chunk in response.stream(decode_content=False):
            # Shutting a socket down ends its decryption at once: what is read from then on is not text.
            if self._closed.is_set():
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines if line)


def items(listing: Object) -> list[Object]:
    """The objects of a listing."""
    # Items of a list of a built-in kind do not say what they are; everything else that is read does.
    known = {"apiVersion": listing["apiVersion"], "kind": str(listing["kind"]).removesuffix("List")}
    return [{**known, **item} for item in listing["items"]]


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _shut(response: urllib3.BaseHTTPResponse) -> None:
    # A read that waits in another thread ends only when the socket is shut down; closing it would not end it.
    try:
        response.shutdown()
    except (OSError, ValueError, RuntimeError) as error:
        _LOG.debug("closing a watch: %s", error)
