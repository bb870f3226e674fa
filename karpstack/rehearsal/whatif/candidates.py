"""Several changes at once: each in a process of its own, side by side as far as memory and CPUs reach."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from karpstack.rehearsal.host.processes import with_parent
from karpstack.rehearsal.session.terminal import print_message
from karpstack.text import files
from karpstack.text.codes import Code
from karpstack.text.packaged import IMPORT_ROOT

# Of a rehearsed stack with a thousand pods, its engines and its playbook.
_BYTES_EACH: Final = 2 * 2**30
_LOOK_SECONDS: Final = 0.5
_GRACE: Final = 60.0


@dataclass
class Outcome:
    """The ends of several what-ifs.

    Attributes:
        codes: Name -> exit code, of each that ended by itself.
        missing: Name -> why it did not end by itself.
        interrupted: Whether the command was interrupted.
    """

    codes: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


@dataclass
class _Started:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    since: float
    ended: bool = False
    stopped_after: float | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


def side_by_side(wanted: int) -> int:
    """Return how many rehearsals this machine holds at once, by its memory and its CPUs; at least one."""
    return max(1, min(wanted, psutil.virtual_memory().available // _BYTES_EACH, os.cpu_count() or 1))


def rehearse_all(
    commands: Sequence[tuple[str, Sequence[str], Path]],
    at_once: int | None = None,
    minutes: float | None = None,
    *,
    say: Callable[[str], object] = print_message,
    grace: float = _GRACE,
) -> Outcome:
    """Run the what-if of each candidate; an interrupt stops those that run, and keeps the others.

    Args:
        commands: Name of a candidate, the arguments of its own `karpstack`, and its folder.
        at_once: How many run at the same time; None for as many as memory and CPUs allow.
        minutes: The time limit of all; None for no limit.
        say: Prints progress.
        grace: Seconds in which those that are stopped may clean up.
    """
    at_once = at_once or side_by_side(len(commands))
    waiting, started, outcome = list(commands), list[_Started](), Outcome()
    end = None if minutes is None else time.monotonic() + minutes * 60
    why = ""
    try:
        why = _run(waiting, started, at_once, end, say)
    except KeyboardInterrupt:
        outcome.interrupted, why = True, "the command was interrupted"
    finally:
        _stop([one for one in started if one.process.poll() is None], say, grace)
    for one in started:
        if one.stopped_after is None or one.process.returncode in (Code.GOOD, Code.NO):
            outcome.codes[one.name] = one.process.returncode
        else:
            outcome.missing[one.name] = f"{why} {one.stopped_after:.0f} s after it started (log: {one.log})"
    outcome.missing |= {name: f"{why} before it started" for name, _, _ in waiting}
    return outcome


def _run(
    waiting: list[tuple[str, Sequence[str], Path]],
    started: list[_Started],
    at_once: int,
    end: float | None,
    say: Callable[[str], object],
) -> str:
    """Start what waits, side by side and in this order, until all have ended; return why some have not."""
    while waiting or not all(one.ended for one in started):
        if end is not None and time.monotonic() >= end:
            return "the time limit was reached"
        while waiting and sum(not one.ended for one in started) < at_once:
            name, arguments, folder = waiting[0]
            folder.mkdir(parents=True, exist_ok=True)
            started.append(_start(name, arguments, folder / "rehearsal.log"))
            say(f"{name}: started; log: {started[-1].log}")
            del waiting[0]
        for one in started:
            if not one.ended and one.process.poll() is not None:
                one.ended = True
                say(f"{one.name}: finished after {one.seconds:.0f} s, exit code {one.process.returncode}.")
        time.sleep(_LOOK_SECONDS)
    return ""


def _start(name: str, arguments: Sequence[str], log: Path) -> _Started:
    files.write(log, b"")  # a link there is replaced, not followed
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*with_parent(signal.SIGINT), sys.executable, "-m", "karpstack", *arguments],
            cwd=IMPORT_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
    return _Started(name, process, log, time.monotonic())


def _stop(running: Sequence[_Started], say: Callable[[str], object], grace: float) -> None:
    """Interrupt what-ifs and wait until they have cleaned up; a second interrupt kills them, and their engines end."""
    if not running:
        return
    for one in running:
        one.stopped_after = one.seconds
    end = time.monotonic() + grace
    try:
        say(f"Stopping, which can take a minute: {', '.join(one.name for one in running)}.")
        for one in running:
            one.process.send_signal(signal.SIGINT)
        for one in running:
            one.process.wait(max(0.0, end - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        for one in running:
            one.process.kill()
            one.process.wait()
