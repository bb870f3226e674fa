"""How fast the cluster's clock runs: as fast as every engine keeps up with, while somebody waits for the cluster.

Most of a rehearsal is waiting: for `consolidateAfter`, for Karpenter's pauses, for simulated boots. The governor lets
time run faster while the engines wait, and slower when they work, so that a computation takes as much cluster time as
it would take in real time, more or less. What it goes by:

- nobody waits for the cluster (`karpenter.clock.waiting`): real time. What Ansible and Pulumi take between two waits is
  no cluster time that would not be there otherwise, and what is done by hand finds the usual clock
- the engine that computes most may want half a core, whether it gets it or not: Karpenter that looks through all nodes
  brings real time back
- no timer of an engine may be late by more than a quarter of a second of cluster time

docs/decisions/0027-cluster-clock.md says why.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from karpstack.karpenter import clock
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.state.folder import StackFolder

#: The environment variable with the highest speed; 1 is real time.
VARIABLE: Final = "REHEARSAL_SPEED"
DEFAULT: Final = 8.0
#: Above it a timer's lateness is more than Karpenter's shortest waits are apart.
HIGHEST: Final = 64.0

_LOOK: Final = 0.05
_PERIOD: Final = 0.1
_BUSY: Final = 0.5
_LATE: Final = 0.25
#: Faster than this no speed goes up in one period; it goes down at once.
_STEP: Final = 1.5
#: Changes that are smaller than this share are not made.
_NOTABLE: Final = 0.05
#: A recording with a timer that was later than this, in seconds of cluster time, is made again. Karpenter looks for
#: something to disrupt every ten seconds.
TOO_LATE: Final = 5.0
_SLOWER: Final = 4.0
_LAST_BYTES: Final = 65_536
#: Where days go by, the ceiling is so many times as high: nobody waits 15 minutes for the exact second.
_IN_DAYS: Final = 8.0
#: The engines rest when all of them together use less of a core.
_RESTING: Final = 0.15
#: Seconds of real time after which a skip is over although the engines do not rest.
_LONGEST_REST: Final = 10.0


def ceiling(variables: Mapping[str, str]) -> float:
    """Return the highest speed that is wanted.

    Raises:
        ValueError: The variable holds no speed.
    """
    text = variables.get(VARIABLE, "")
    try:
        return parse(text) if text else DEFAULT
    except ValueError as error:
        raise ValueError(
            f"{VARIABLE}={text!r} is no speed, so the rehearsal would not know its time; set it to a number from 1 "
            f"(real time) to {HIGHEST:g}"
        ) from error


def apply(highest: float | None) -> None:
    """Hand the highest speed on to the rehearsals that this process starts."""
    if highest:
        os.environ[VARIABLE] = f"{highest:g}"


def parse(text: str) -> float:
    """Return the speed that a text means.

    Raises:
        ValueError: It means none.
    """
    with suppress(ValueError):
        if 1 <= (speed := float(text)) <= HIGHEST:
            return speed
    raise ValueError(f"{text!r} is no number from 1 (real time) to {HIGHEST:g}")


@contextmanager
def waiting(folder: StackFolder) -> Iterator[None]:
    """Say that this command waits for the rehearsal: its time may run faster meanwhile."""
    with clock.Page(folder.clock).waiting() if folder.clock.exists() else nullcontext():
        yield


def slower(results: Path, highest: float) -> float | None:
    """Return the speed at which a recording is to be made again, because timers were too late in it.

    Args:
        results: Folder of the recording, `timeline.jsonl`.
        highest: The highest speed that it was made with.

    Returns:
        None where it is good, or cannot be made with less.
    """
    late = _lateness(results / "timeline.jsonl")
    if late <= TOO_LATE or highest <= 1:
        return None
    again = max(1.0, highest / _SLOWER)
    print_message(
        f"A timer of an engine was late by {late:.1f} s of cluster time, because this machine was busy; Karpenter may "
        f"have decided otherwise for it. Once more, at {again:g} times real time at most."
    )
    return again


def _lateness(timeline: Path) -> float:
    """Return the worst lateness that a recorder wrote down at its end, in seconds of cluster time; 0 without."""
    try:
        with timeline.open("rb") as file:
            file.seek(max(0, timeline.stat().st_size - _LAST_BYTES))
            line = json.loads(file.readlines()[-1])
        return float((line.get("clock") or {}).get("late", 0))
    except (OSError, ValueError, IndexError, AttributeError):  # what cannot be read is judged by who reads it
        return 0.0


def supported() -> bool:
    """Whether the engines on this machine can follow a clock that is not its own."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


def next_speed(speed: float, highest: float, busiest: float, late: float) -> float:
    """Return the speed of the next period.

    Args:
        speed: The speed of the last one.
        highest: What may not be exceeded.
        busiest: Cores that the busiest engine wanted in it.
        late: Seconds of real time by which a timer was late at most.
    """
    wanted = min(highest, speed * _STEP)
    if busiest > 0:
        wanted = min(wanted, speed * _BUSY / busiest)
    if late > 0:
        wanted = min(wanted, _LATE / late)
    return max(1.0, wanted)


class Governor:
    """Sets the speed of one rehearsal's clock.

    Args:
        pids: Returns the process ids of the engines.
    """

    def __init__(self, page: clock.Page, highest: float, pids: Callable[[], list[int]]) -> None:
        self._page = page
        self._highest = self._ceiling = highest
        self._pids = pids
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._speed = 1.0
        self._used: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run, name="speed", daemon=True)

    def start(self) -> None:
        """Begin to set the speed."""
        self._thread.start()

    def stop(self) -> None:
        """Return to real time."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def skip(self, seconds: float) -> None:
        """Let time jump ahead, and return when the engines have done what became due.

        For who knows that nothing is under way: whatever is waited for meanwhile is over at once, an answer to a
        request too. So time runs as the machine's until the engines rest, before the jump and after it. From the first
        skip on, time may also run eight times as fast as before between two of them.
        """
        self._ceiling = min(HIGHEST, _IN_DAYS * self._highest)
        with self._lock:  # which keeps the speed, too
            self._speed = 1.0
            self._page.set_speed(1.0)
            self._wait_for_rest()
            self._page.skip(seconds, 1.0)
            self._wait_for_rest()

    def _wait_for_rest(self) -> None:
        until = time.monotonic() + _LONGEST_REST
        while time.monotonic() < until and not self._rest():
            pass

    def _rest(self) -> bool:
        """Whether the engines do next to nothing for a period."""
        pids = [os.getpid(), *self._pids()]
        before, begun = [_processor_clock(pid) for pid in pids], time.monotonic()
        time.sleep(_PERIOD)
        used = sum(max(0.0, _processor_clock(pid) - was) for pid, was in zip(pids, before, strict=True))
        return used < _RESTING * (time.monotonic() - begun)

    def _run(self) -> None:
        measured = time.monotonic()
        while not self._stopped.wait(_LOOK):
            now = time.monotonic()
            if not self._page.is_waited_for():
                self._set(1.0)
            elif now - measured >= _PERIOD:
                busiest, late = self._busiest(now - measured), self._page.take_lateness()
                self._page.note_lateness(late * self._speed)
                self._set(next_speed(self._speed, min(self._ceiling, self._page.limit), busiest, late))
                measured = now
        self._set(1.0)

    def _set(self, speed: float) -> None:
        if speed == self._speed or (speed > 1 and abs(speed / self._speed - 1) < _NOTABLE):
            return
        with self._lock:
            self._speed = speed
            self._page.set_speed(speed)

    def _busiest(self, seconds: float) -> float:
        """Return how many cores the busiest process of the rehearsal wanted since the last call."""
        before = self._used
        self._used = {pid: _demand(pid) for pid in (os.getpid(), *self._pids())}
        return max((taken - before.get(pid, taken) for pid, taken in self._used.items()), default=0.0) / seconds


def _processor_clock(pid: int) -> float:
    """Return the seconds of processor time of a process; 0 if it has ended."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3), as glibc makes it of CPUCLOCK_SCHED
    except OSError:
        return 0.0


def _demand(pid: int) -> float:
    """Return the seconds for which the threads of a process computed, or waited for a core to compute; 0 without one.

    On a busy machine a process that computes without a pause gets little processor time, and is not idle for that.
    """
    total = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # it has ended
                # https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat
                computed, waited, _ = (thread / "schedstat").read_text(encoding="ascii").split()
                total += int(computed) + int(waited)
    except OSError:
        return 0.0
    return total / 1e9
