"""Runs the stages of a real run, and ends them: with one SIGINT, for Pulumi gives up what it creates at the second."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Literal

from karpstack.scale_test.processes import started

#: In the run's folder: process id of the stage that began last, the time of its start, and its name.
STAGE: Final = "stage"
#: The names of all stages that have begun.
BEGUN: Final = "begun"
#: It is there when a stage was killed, which a lock of Pulumi's may outlive.
KILLED: Final = "killed"
#: It is there when no more stages may begin.
ENDING: Final = "ending"
#: It is there when the playbook may not destroy either, because another process does: two would be in each other's way.
TAKEN_OVER: Final = "taken-over"
UP, DESTROY = "up", "destroy"
#: As `timeout` has it.
LATE: Final = 124
#: Seconds in which a stage may end what it has begun: a cluster that is being created is not in Pulumi's state yet.
GRACE: Final = 900.0
#: Seconds that a destroy may take.
_LONGEST: Final = 5400.0
_PAUSE: Final = 1.0


def run(folder: Path, name: str, command: Sequence[str], seconds: float, project: Path) -> int:
    """Run a stage; its exit code, or `LATE`.

    Args:
        folder: The run's, in which its output becomes NAME.log.
        name: The stage's.
        command: With its arguments.
        seconds: After them it is broken off.
        project: Where it runs.

    Raises:
        OSError: The program is not there, or the folder cannot be written; on a full disk, everything but `up` runs.
    """
    end(folder)  # one before it whose module was killed
    with suppress(OSError):  # on a full disk
        folder.mkdir(parents=True, exist_ok=True)
    if (name != DESTROY and (folder / ENDING).exists()) or (folder / TAKEN_OVER).exists():
        return LATE
    must = name == UP  # the guard ends `up` and destroys by these files
    _note(folder / BEGUN, f"{name}\n", must=must)
    with open_log(folder / f"{name}.log", "wb", must=must) as log:
        process = begin(command, project, log)
    try:
        _note(folder / STAGE, f"{process.pid}|{started(process.pid)}|{name}", "w", must=must)
    except OSError:
        _stop(process, folder)
        raise
    # The order matters: the guard first creates ENDING, then reads STAGE.
    may_begin = name == DESTROY or not (folder / ENDING).exists()
    if (may_begin and _ends_within(process, seconds)) or not _is_first_to_end(process.pid, folder):
        return process.wait()
    return _stop(process, folder)


def begin(command: Sequence[str], project: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Begin a program that no Ctrl-C of the terminal reaches."""
    # Of a playbook in the background of a script, it would be ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=project, stdin=nothing, stdout=log, stderr=log, start_new_session=True)


def wait(process: subprocess.Popen[bytes], seconds: float, folder: Path) -> int:
    """Wait for the end of a program; its exit code, or `LATE`: then it was broken off."""
    return process.wait() if _ends_within(process, seconds) else _stop(process, folder)


def _stop(process: subprocess.Popen[bytes], folder: Path) -> int:
    os.killpg(process.pid, signal.SIGINT)
    if not _ends_within(process, GRACE):
        _kill(process.pid, folder)
        process.wait()
    return LATE


def _kill(pid: int, folder: Path) -> None:
    _note(folder / KILLED, f"{pid}\n")
    os.killpg(pid, signal.SIGKILL)


def end(folder: Path) -> None:
    """Break off the stage that still runs, unless it destroys or is broken off already, and wait for its end."""
    try:
        who, start, name = (folder / STAGE).read_text().split("|")
        pid = int(who)
    except (OSError, ValueError):
        return
    begun, is_told = time.monotonic(), False
    patience = _LONGEST if name == DESTROY else 0.0
    with suppress(ProcessLookupError):  # it has ended meanwhile
        while start and started(pid) == start:
            waited = time.monotonic() - begun
            if waited >= patience and not is_told:
                is_told = True
                if _is_first_to_end(pid, folder):
                    os.killpg(pid, signal.SIGINT)
            elif waited > patience + GRACE:
                _kill(pid, folder)
            time.sleep(_PAUSE)


def open_log(path: Path, mode: Literal["ab", "wb"] = "ab", *, must: bool = False) -> IO[bytes]:
    """Open a log; where it cannot be made, nothing is kept, unless it must be.

    Raises:
        OSError: It must be, and cannot.
    """
    try:
        return path.open(mode, buffering=0)
    except OSError:
        if must:
            raise
        return Path(os.devnull).open(mode, buffering=0)


def _note(path: Path, text: str, mode: Literal["a", "w"] = "a", *, must: bool = False) -> None:
    """Write a text into a file. On a full disk it is not there, unless it must be."""
    try:
        with path.open(mode) as file:
            file.write(text)
    except OSError:
        if must:
            raise


def _is_first_to_end(pid: int, folder: Path) -> bool:
    """Whether the caller is the first to interrupt the stage. A second SIGINT would make Pulumi give up."""
    try:
        (folder / f"broken-off-{pid}").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        pass  # on a full disk
    return True


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
