"""Follows one kind of object for ever: list, then watch, and again where that broke off.

A watch that ends is resumed where it ended. When that is too long ago for the API server (410), the list is
read again, which also reveals what was deleted meanwhile, and the listener gets a gap. It also gets one if the API
server does not answer for a while: for a login that lost its rights, it may never answer again. Objects are passed on
as plain dictionaries, and only a fingerprint of each is kept, so that thousands take little memory.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

from .timeline import Line, excerpt, once

WATCH_SECONDS = 300  # the API server ends a watch then; it is resumed without a gap
_PAGE = 500
_PAGES = 10_000
_MOST = 64 * 2**20  # bytes of a page; one of 500 large pods has a tenth of that


@dataclass(frozen=True)
class Resource:
    """What to follow: a kind, its path in the API and how to narrow it down."""

    kind: str
    path: str
    selectors: tuple[tuple[str, str], ...] = ()


class BrokenError(Exception):
    """A request to the API server failed.

    Args:
        reason: What it said.
        status: HTTP status of its answer; 0 if there was none.
    """

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


# Asks for a resource with a query and gives the lines of the answer as they come. Raises BrokenError, also
# while they come.
Fetch = Callable[[Resource, dict[str, str]], AbstractContextManager[Iterator[bytes]]]


class Listener(Protocol):
    """Who is told what is seen."""

    def changed(self, type_: str, kind: str, kept: Line) -> None:
        """An object was ADDED, MODIFIED or DELETED; `kept` is its excerpt."""

    def listed(self, kind: str) -> None:
        """All that there is has been told."""

    def broke_off(self, kind: str, reason: str) -> None:
        """Changes may have been missed, or go by unseen."""


class Follower:
    """Follows one resource until `stopping` is set.

    Args:
        resource: What to follow.
        fetch: Asks for it.
        listener: Is told what is seen.
        stopping: Ends it.
        retry: Seconds to wait before the next watch.
        unexpected: Seconds to wait after an answer that no API server gives: the next one may be the same, and each
            costs a line.
        patience: Seconds without an answer before the listener gets a gap. A restart of an API server takes less.
        quiet: A watch that breaks off after so many seconds, and before so many, was answered; the API server itself
            ends it then.
    """

    def __init__(
        self,
        resource: Resource,
        fetch: Fetch,
        listener: Listener,
        stopping: threading.Event,
        *,
        retry: float = 0.5,
        unexpected: float = 5.0,
        patience: float = 30.0,
        quiet: tuple[float, float] = (10.0, WATCH_SECONDS + 5.0),
    ) -> None:
        self._resource = resource
        self._fetch = fetch
        self._listener = listener
        self._stopping = stopping
        self._retry, self._unexpected, self._patience, self._quiet = retry, unexpected, patience, quiet
        self._let_in = math.inf  # when the API server has answered the watch, by the monotonic clock
        # Uid -> fingerprint of the last excerpt, and its name, to tell of an end that was missed.
        self._known: dict[str, tuple[int, Line]] = {}
        self._silent_since: float | None = None  # by the monotonic clock, from the first failed request
        self._is_told = False

    def run(self) -> None:
        """Follow."""
        version: str | None = None
        while not self._stopping.is_set():
            self._let_in = math.inf
            try:
                if version is None:
                    version = self._list()
                    self._answered()
                for event in self._watch(version):
                    self._answered()
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._tell(event["type"], event["object"])
                self._answered()
            except BrokenError as error:
                if error.status == HTTPStatus.GONE:
                    version = None
                    self._listener.broke_off(self._resource.kind, str(error))
                elif self._quiet[0] <= time.monotonic() - self._let_in < self._quiet[1]:
                    self._answered()  # something between ends a watch in which nothing happens
                else:  # the API server restarts, perhaps
                    self._fail(error)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                version = None
                self._listener.broke_off(self._resource.kind, f"an unexpected answer: {error!r:.200}")
                self._stopping.wait(self._unexpected)
            self._stopping.wait(self._retry)  # whatever answers may end each watch at once

    def _answered(self) -> None:
        self._silent_since, self._is_told = None, False

    def _fail(self, error: BrokenError) -> None:
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if not self._is_told and now - self._silent_since >= self._patience:
            self._is_told = True
            self._listener.broke_off(self._resource.kind, f"no answer for long: {error!s:.500}")

    def _list(self) -> str:
        """Read the whole list; its resource version."""
        present: set[str] = set()
        for page in pages(self._resource, self._fetch):
            for item in page["items"]:
                uid = item["metadata"]["uid"]
                present.add(uid)
                self._tell("MODIFIED" if uid in self._known else "ADDED", item)
        for uid in self._known.keys() - present:
            self._listener.changed("DELETED", self._resource.kind, self._known.pop(uid)[1])
        self._listener.listed(self._resource.kind)
        return str(page["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> Iterator[dict[str, Any]]:
        with self._fetch(
            self._resource,
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(WATCH_SECONDS),
            },
        ) as lines:
            self._let_in = time.monotonic()
            for line in lines:
                event = _parse(line)
                if event["type"] == "ERROR":
                    raise BrokenError(event["object"].get("message", ""), event["object"].get("code", 0))
                yield event

    def _tell(self, type_: str, item: dict[str, Any]) -> None:
        kept = excerpt(self._resource.kind, item)
        uid = item["metadata"]["uid"]
        fingerprint = hash(json.dumps(kept, sort_keys=True))
        if type_ == "DELETED":
            self._known.pop(uid, None)
        elif uid in self._known and self._known[uid][0] == fingerprint:
            return  # a heartbeat, or a field that no story asks for
        else:
            name = {
                key: kept["metadata"][key] for key in ("name", "namespace", "uid", "labels") if key in kept["metadata"]
            }
            if uid not in self._known:
                kept |= once(self._resource.kind, item)
            self._known[uid] = (fingerprint, {"metadata": name})
        self._listener.changed(type_, self._resource.kind, kept)


def pages(resource: Resource, fetch: Fetch) -> Iterator[dict[str, Any]]:
    """A list as the API server gives it out, so many objects at a time; one page at least.

    Raises:
        BrokenError: A page was not answered, or they have no end.
    """
    query = {"limit": str(_PAGE)}
    for _ in range(_PAGES):
        with fetch(resource, query) as lines:
            page = _parse(_whole(lines))
        yield page
        more = page["metadata"].get("continue")
        if not more:
            return
        query["continue"] = more
    raise BrokenError(f"a list has more than {_PAGES} pages")


def _whole(lines: Iterator[bytes]) -> bytes:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size > _MOST:
            raise BrokenError(f"a page of a list has more than {_MOST // 2**20} MiB")
    return b"".join(held)


def _parse(text: bytes) -> dict[str, Any]:
    """An answer, or one line of it. An API server that goes down may leave half of it."""
    try:
        answer: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"half an answer: {error}") from error
    return answer
