"""One queue of events from several watches and timers, for a stand-in that handles them one after the other.

It knows no kinds and decides nothing. Every stand-in (registrar, Cilium, controller) is a `Player`: one thread that
reads one feed, so that none of them needs locks.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from karpstack.karpenter import clock
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects, unavailable
from karpstack.rehearsal.cluster.watch import Watch

_SECONDS_BETWEEN_TRIES = 0.2
_TIMEOUT = "timeout"
_LOG = logging.getLogger(__name__)

#: Type of an event that says that a watched kind is no longer served; its object is empty.
UNSERVED = "UNSERVED"
#: Type of an event that a timer gives.
TIMER = "TIMER"


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        source: Name that `Feed.watch` or `Feed.after` was given.
        type: ADDED, MODIFIED, DELETED, UNSERVED or TIMER.
        object: The Kubernetes object, or what the timer was given.
    """

    source: str
    type: str
    object: Object = field(default_factory=dict)


class Feed:
    """A queue of events. `watch` and `after` may be called at any time, also by the reader itself."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Event]] = []
        self._order = itertools.count()
        self._periods: dict[str, float] = {}
        self._watches: dict[str, Watch] = {}
        self._closed = False

    def watch(self, source: str, path: str, *, labels: str = "", fields: str = "") -> None:
        """Add a watch; one that has the same name is ended first."""
        self.unwatch(source)
        watch = self._watches[source] = self._objects.watch(path, labels=labels, fields=fields)
        threading.Thread(target=self._pump, args=(source, watch), name=f"watch {source}", daemon=True).start()

    def unwatch(self, source: str) -> None:
        """End a watch; what it has already put in the queue still comes."""
        watch = self._watches.pop(source, None)
        if watch:
            watch.close()

    def after(self, seconds: float, source: str, what: Object | None = None) -> None:
        """Give a TIMER event later. For the reader's thread only."""
        heapq.heappush(self._timers, (clock.monotonic() + seconds, next(self._order), Event(source, TIMER, what or {})))

    def tell(self, source: str, what: Object) -> None:
        """Give a TIMER event at once, from any thread."""
        self._queue.put(Event(source, TIMER, what))

    def every(self, seconds: float, source: str) -> None:
        """Give TIMER events from now on, `seconds` after one another was taken. For the reader's thread only."""
        self._periods[source] = seconds
        self.after(seconds, source)

    @property
    def idle(self) -> bool:
        """Whether nothing that the watches told waits to be read."""
        return self._queue.empty()

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None when the feed was closed or `timeout` seconds are over."""
        deadline = None if timeout is None else clock.monotonic() + timeout
        while not self._closed:
            now = clock.monotonic()
            if self._timers and self._timers[0][0] <= now:
                event = heapq.heappop(self._timers)[2]
                if event.source in self._periods:
                    self.after(self._periods[event.source], event.source)
                return event
            ends = [end for end in (deadline, self._timers[0][0] if self._timers else None) if end is not None]
            try:
                return clock.get(self._queue, max(0.0, min(ends) - now) if ends else None)
            except queue.Empty:
                if deadline is not None and clock.monotonic() >= deadline:
                    return None
        return None

    def until(self, seconds: float) -> Iterator[Event]:
        """Give events for so many seconds, or until the feed is closed. For the reader's thread only."""
        self.after(seconds, _TIMEOUT)
        while (event := self.next()) is not None and event.source != _TIMEOUT:
            yield event

    def run(self, handle: Callable[[Event], None], name: str) -> threading.Thread:
        """Handle all events in a thread of their own until the feed is closed.

        An event that is handled while the API server does not answer is handled again, until it does: a handler must
        bear that. One that raises anything else is logged and the next event is handled: one bad object must not end a
        stand-in.
        """

        def loop() -> None:
            while (event := self.next()) is not None:
                while not self._handled(event, handle, name):
                    if self._closed or self._objects.closed.wait(_SECONDS_BETWEEN_TRIES):
                        return

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """End all watches and the reader."""
        self._closed = True
        for source in list(self._watches):
            self.unwatch(source)
        self._queue.put(None)

    def _handled(self, event: Event, handle: Callable[[Event], None], name: str) -> bool:
        """Handle an event; whether that is over, well or not."""
        try:
            handle(event)
        except Exception as error:
            if self._closed or self._objects.closed.is_set():
                return True
            if unavailable(error):
                _LOG.debug("%s: handling %s of %s waits for the API server: %s", name, event.type, event.source, error)
                return False
            _LOG.exception("%s: handling %s of %s failed", name, event.type, event.source)
        return True

    def _pump(self, source: str, watch: Watch) -> None:
        while True:
            try:
                for kind, item in watch:
                    self._queue.put(Event(source, kind, item))
                return
            except ApiError as error:
                if error.status == 404:
                    self._queue.put(Event(source, UNSERVED))
                    return
                _LOG.log(logging.DEBUG if unavailable(error) else logging.WARNING, "watch %s: %s", source, error)
            except Exception:
                # A watch that ended unseen would leave its stand-in waiting for ever.
                _LOG.exception("watch %s", source)
            if self._objects.closed.wait(_SECONDS_BETWEEN_TRIES):
                return


class Player:
    """A stand-in for a part of the cluster: it handles what its watches tell.

    Attributes:
        name: Name of its thread.
        watches: Source of its events -> what is watched, as `Feed.watch` takes it.
    """

    name: ClassVar[str]
    watches: ClassVar[Mapping[str, Mapping[str, str]]]

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._feed = Feed(objects)

    def start(self) -> None:
        """Begin to watch; return at once."""
        for source, watched in self.watches.items():
            self._feed.watch(source, **watched)
        self._feed.run(self._handle, self.name)

    def stop(self) -> None:
        """End; what was made stays."""
        self._feed.close()

    def _handle(self, event: Event) -> None:
        raise NotImplementedError
