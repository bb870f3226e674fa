"""One at a time works on a stack: `up`, `run`, `review`, `down`, or a scale test that is run by hand.

The kernel's lock (flock) on a file in the state folder, which it frees however its holder ends; a record beside it
tells who that is. The scale test's playbook takes the same lock (see `VARIABLE`) and writes the same record.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import psutil

from karpstack.rehearsal.host.processes import ProcessRecord, ends, start_time
from karpstack.rehearsal.session import hints
from karpstack.rehearsal.state import records
from karpstack.rehearsal.state.folder import StackFolder

#: Tells a scale test by hand where the lock is; one that `run` starts has none, because `run` holds the lock itself.
VARIABLE = "KARPSTACK_REHEARSAL_LOCK"


class BusyError(Exception):
    """Somebody else works on the stack; the text says who, since when, and what to do."""


@contextmanager
def held(folder: StackFolder, command: str, patience: float = 0.5) -> Iterator[None]:
    """Hold the stack's lock.

    Args:
        folder: The stack's folder, which exists.
        patience: Seconds for which it is asked again; whoever only looks holds it for a moment, too.

    Raises:
        BusyError: Somebody else holds it.
    """
    with _opened(folder) as descriptor:
        deadline = time.monotonic() + patience
        while not _taken(descriptor):
            if time.monotonic() > deadline:
                raise BusyError(_busy(folder, holder(folder)))
            time.sleep(0.02)
        pid = os.getpid()
        with suppress(OSError):  # who wants the lock reads it; a full disk must not keep anybody from `down`
            folder.holder.unlink(missing_ok=True)  # of who held it before
            records.write(folder.holder, ProcessRecord(command, pid, start_time(psutil.Process(pid))))
        yield


def holder(folder: StackFolder) -> ProcessRecord | None:
    """Who holds the stack's lock; None where nobody does."""
    if not folder.lock.exists():
        return None
    with _opened(folder) as descriptor:
        if _taken(descriptor):
            return None
    return records.read(folder.holder, ProcessRecord)


def end_holder(folder: StackFolder, grace: float = 60.0) -> ProcessRecord | None:
    """Interrupt whoever holds the lock, as Ctrl-C does, and kill what is left after `grace` seconds; who, or None."""
    found = holder(folder)
    process = found.process() if found else None
    if process is None:
        return None
    family = [process, *process.children(recursive=True)]
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGINT)
    ends(process, grace)
    # Also where it has ended: Ansible leaves the module behind that was waiting.
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(family, 5)
    return found


def described(found: ProcessRecord) -> str:
    """Who holds a lock, for people."""
    process = found.process()
    since = f", since {datetime.fromtimestamp(process.create_time()):%H:%M:%S}" if process else ""
    return f"`{found.name}` (process {found.pid}{since})"


def _busy(folder: StackFolder, found: ProcessRecord | None) -> str:
    who = described(found) if found else "another command"
    return (
        f"{who} is working on {folder.stack}, and two at once would undo each other's work; wait until it has ended, "
        f"or end it{f' (kill -INT {found.pid})' if found else ''}. To give up the stack with it: "
        f"{hints.command('down --force', folder)}"
    )


@contextmanager
def _opened(folder: StackFolder) -> Iterator[int]:
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
