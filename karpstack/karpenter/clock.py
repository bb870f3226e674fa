"""Cluster time: the clock of a rehearsed cluster, which may run faster than the machine's.

Everything that is compared with what happens in the cluster asks this module: timestamps, waits for Karpenter, ages.
What a person or this machine takes (a build, a lock, a process that starts) is real time and asks `time`.

Without the environment variable `KARPSTACK_CLOCK` cluster time is the machine's: so it is on a real cluster. With it,
the variable names a page of memory that all processes of a rehearsal share; `rehearsal/engines/clock/clock.go` has its
layout. The rehearsal's daemon writes it (`karpstack.rehearsal.session.speed`).
"""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

#: The environment variable with the path of the page.
VARIABLE: Final = "KARPSTACK_CLOCK"
#: What a speed of 1 is in the page.
UNIT: Final = 65536

_T = TypeVar("_T")
_MARK: Final = 0x31306B636F6C636B
_SIZE: Final = 4096
_OFFSET, _FIRST, _SECOND, _SEATS, _LATE, _LIMIT, _WORST = 1, 2, 5, 8, 9, 510, 511  # in numbers of 8 bytes
_NEVER: Final = 2**62
_NANO: Final = 1_000_000_000
#: Seconds of real time until a new speed counts: by then every process has seen it.
NOTICE: Final = 0.02
# A wait looks at the speed again after so many seconds of real time.
_LOOK: Final = 0.25


class Page:
    """The page that tells cluster time, mapped into this process."""

    def __init__(self, path: Path) -> None:
        """Map the page of a file.

        Raises:
            OSError: The file cannot be read and written.
            ValueError: It is no page of a clock.
        """
        self._path = path
        with path.open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("q")
        if self._numbers[0] != _MARK:
            raise ValueError(f"{path} is no page of a clock; unset {VARIABLE}, or run the command in a new shell")
        self._announced = 0

    @classmethod
    def create(cls, path: Path) -> Page:
        """Write a page on which cluster time is the machine's time, and runs as fast."""
        now = time.monotonic_ns()
        numbers = [_MARK, time.time_ns() - now, now, now, UNIT, _NEVER, _NEVER, UNIT, 0]
        content = b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
        path.write_bytes(content.ljust(_SIZE, b"\0"))
        path.chmod(0o600)
        return cls(path)

    def monotonic_ns(self, real: int | None = None) -> int:
        """Return cluster time in nanoseconds, by a clock that never goes back.

        Args:
            real: The machine's monotonic time; now by default.
        """
        start, begun, speed, real = self._phase(real)
        return begun + ((real - start) * speed >> 16)

    def time_ns(self) -> int:
        """Return cluster time in nanoseconds since the epoch."""
        return self.monotonic_ns() + self._numbers[_OFFSET]

    @property
    def speed(self) -> float:
        """How many seconds of cluster time go by in one of real time."""
        return self._phase()[2] / UNIT

    def set_speed(self, speed: float) -> None:
        """Change the speed shortly. For the one thread at a time, of one process, that governs."""
        self._announce(speed, 0.0)

    def skip(self, seconds: float, speed: float) -> None:
        """Let cluster time jump ahead shortly, and go on at a speed. For the same thread as `set_speed`."""
        self._announce(speed, seconds)
        time.sleep(NOTICE)

    def _announce(self, speed: float, ahead: float) -> None:
        # The phase that was announced last must have begun: until then the other one counts.
        time.sleep(max(0.0, (self._announced - time.monotonic_ns()) / _NANO))
        start = self._announced = time.monotonic_ns() + int(NOTICE * _NANO)
        begun = self.monotonic_ns(start) + round(ahead * _NANO)
        current = self._current(start)
        other = _FIRST + _SECOND - current
        self._numbers[other] = _NEVER
        self._numbers[other + 1] = begun
        self._numbers[other + 2] = round(speed * UNIT)
        self._numbers[other] = start

    def take_lateness(self) -> float:
        """Return by how many seconds of real time an engine's timer was late at most since the last call."""
        seats = min(self._numbers[_SEATS], _LIMIT - _LATE)
        worst = max((self._numbers[_LATE + seat] for seat in range(seats)), default=0)
        for seat in range(seats):
            self._numbers[_LATE + seat] = 0
        return worst / _NANO

    def note_lateness(self, seconds: float) -> None:
        """Keep the worst lateness, in seconds of cluster time, until it is asked for."""
        self._numbers[_WORST] = max(self._numbers[_WORST], round(seconds * _NANO))

    def take_worst(self) -> float:
        """Return the worst lateness in seconds of cluster time since the last call."""
        worst, self._numbers[_WORST] = self._numbers[_WORST], 0
        return worst / _NANO

    @property
    def limit(self) -> float:
        """What no speed may exceed from now on, whatever the rehearsal began with."""
        return (self._numbers[_LIMIT] or _NEVER) / UNIT

    @limit.setter
    def limit(self, speed: float) -> None:
        self._numbers[_LIMIT] = round(speed * UNIT)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Say that somebody waits for the cluster: time may run faster meanwhile."""
        with self._path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # which the kernel frees however this process ends
            yield

    def is_waited_for(self) -> bool:
        """Whether somebody waits for the cluster."""
        with self._path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _current(self, real: int) -> int:
        first, second = self._numbers[_FIRST], self._numbers[_SECOND]
        return _SECOND if real < first or first < second <= real else _FIRST

    def _phase(self, real: int | None = None) -> tuple[int, int, int, int]:
        """Return start, start in cluster time and speed of the phase of a moment, by default now, and the moment."""
        while True:
            asked = time.monotonic_ns() if real is None else real
            at = self._current(asked)
            start, begun, speed = self._numbers[at], self._numbers[at + 1], self._numbers[at + 2]
            # Otherwise this process waited for so long that the phase was written over.
            if self._numbers[at] == start and (start <= asked or real is not None):
                return start, begun, speed, asked


_page: Page | None = None


def follow(page: Page | None) -> None:
    """Keep the time of a page from now on in this process; None for the machine's time."""
    global _page
    _page = page


def speed() -> float:
    """Return how many seconds of cluster time go by in one second of real time."""
    return 1.0 if _page is None else _page.speed


def now() -> float:
    """Return cluster time in seconds since the epoch."""
    return time.time() if _page is None else _page.time_ns() / _NANO


def monotonic() -> float:
    """Return seconds of cluster time by a clock that never goes back, to measure how long something took."""
    return time.monotonic() if _page is None else _page.monotonic_ns() / _NANO


def utcnow() -> datetime:
    """Return cluster time as a date with its time zone."""
    return datetime.now(UTC) if _page is None else datetime.fromtimestamp(_page.time_ns() / _NANO, UTC)


@contextmanager
def waiting() -> Iterator[None]:
    """Say that this process waits for the cluster: time may run faster meanwhile."""
    with _page.waiting() if _page else nullcontext():
        yield


def sleep(seconds: float) -> None:
    """Wait for so many seconds of cluster time, whatever the speed becomes meanwhile."""
    until = monotonic() + seconds
    with waiting():
        while (left := until - monotonic()) > 0:
            time.sleep(real(left))


async def sleeping(seconds: float) -> None:
    """Wait like `sleep`, without keeping other tasks of the event loop from their work."""
    until = monotonic() + seconds
    with waiting():
        while (left := until - monotonic()) > 0:
            await asyncio.sleep(real(left))


def wait(event: threading.Event, seconds: float) -> bool:
    """Wait for an event, or so many seconds of cluster time; return whether the event is set."""
    until = monotonic() + seconds
    while not event.is_set() and (left := until - monotonic()) > 0:
        event.wait(real(left))
    return event.is_set()


def get(items: queue.SimpleQueue[_T], seconds: float | None) -> _T:
    """Take an item from a queue.

    Args:
        items: The queue.
        seconds: How long to wait, in cluster time; None for as long as it takes.

    Raises:
        queue.Empty: There was none in that time.
    """
    if seconds is None:
        return items.get()
    until = monotonic() + seconds
    while True:
        left = until - monotonic()
        try:
            return items.get(timeout=max(0.0, real(left)))
        except queue.Empty:
            if left <= 0:
                raise


def after(seconds: float, act: Callable[[], object]) -> threading.Event:
    """Call a function after so many seconds of cluster time, in a thread of its own; setting the event cancels it."""
    cancelled = threading.Event()

    def run() -> None:
        if not wait(cancelled, seconds):
            act()

    threading.Thread(target=run, name="after", daemon=True).start()
    return cancelled


class Measurement:
    """How fast time ran, and how punctual it was, from the making of this object on."""

    def __init__(self) -> None:
        if _page:
            _page.take_worst()
        self._began, self._real = monotonic(), time.monotonic()

    def result(self) -> dict[str, float] | None:
        """Return the mean speed, and the worst lateness of an engine's timer in seconds of cluster time.

        Returns:
            {"speed": 5.2, "late": 0.11}; None where time is the machine's.
        """
        if not _page:
            return None
        passed = max(time.monotonic() - self._real, 1e-3)
        return {"speed": round((monotonic() - self._began) / passed, 2), "late": round(_page.take_worst(), 3)}


def real(seconds: float) -> float:
    """Return for how many seconds of real time to wait before looking at cluster time again, for `seconds` of it."""
    return seconds if _page is None else min(seconds / _page.speed, _LOOK)


# The page of a rehearsal that has ended is gone, and a shell may still name it.
if (_named := os.environ.get(VARIABLE)) and Path(_named).exists():
    follow(Page(Path(_named)))
