"""Several changes at once: each in a process of its own, side by side as far as the memory reaches."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from karpstack.rehearsal.host.processes import with_parent
from karpstack.rehearsal.session.terminal import print_message
from karpstack.text.packaged import IMPORT_ROOT

# Of a rehearsed stack with a thousand pods, its engines and its playbook.
_BYTES_EACH: Final = 2 * 2**30
_LOOK_SECONDS: Final = 0.5
_GRACE: Final = 60.0


@dataclass
class _Running:
    name: str
    process: subprocess.Popen[bytes]
    started: float


def side_by_side(wanted: int) -> int:
    """How many rehearsals this machine holds at once, one at least."""
    return max(1, min(wanted, psutil.virtual_memory().available // _BYTES_EACH))


def rehearse_all(
    commands: Sequence[tuple[str, Sequence[str], Path]], at_once: int | None = None, minutes: float | None = None
) -> dict[str, int]:
    """Run the what-if of each candidate; name -> exit code of those that ended in time.

    Args:
        commands: Name of a candidate, the arguments of its own `karpstack`, and its folder.
        at_once: How many run at the same time; None for as many as the memory allows.
        minutes: After how many minutes those that still run are interrupted, and no other begins; None for no limit.
    """
    at_once = at_once or side_by_side(len(commands))
    ends = None if minutes is None else time.monotonic() + minutes * 60
    waiting, running, codes = list(commands), list[_Running](), dict[str, int]()
    try:
        while waiting or running:
            if ends is not None and time.monotonic() >= ends:
                print_message(f"{minutes:g} minutes are over: {len(waiting) + len(running)} what-ifs have not ended.")
                break
            while waiting and len(running) < at_once:
                name, arguments, folder = waiting.pop(0)
                folder.mkdir(parents=True, exist_ok=True)
                running.append(_start(name, arguments, folder / "rehearsal.log"))
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                codes[one.name] = one.process.returncode
                print_message(
                    f"{one.name}: ended with {one.process.returncode} after {time.monotonic() - one.started:.0f} s."
                )
            time.sleep(_LOOK_SECONDS)
    finally:
        _end(running)
    return codes


def _start(name: str, arguments: Sequence[str], log: Path) -> _Running:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*with_parent(signal.SIGINT), sys.executable, "-m", "karpstack", *arguments],
            cwd=IMPORT_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
    print_message(f"{name}: begun, and tells how it goes in {log}")
    return _Running(name, process, time.monotonic())


def _end(running: Sequence[_Running]) -> None:
    """Interrupt what runs still, and wait until it has cleaned up."""
    for one in running:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
    for one in running:
        try:
            one.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            one.process.kill()
