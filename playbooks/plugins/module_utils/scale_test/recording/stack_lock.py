"""The lock of a rehearsed stack: one at a time works on it. A real stack has none.

`python -m rehearsal env` names the file. Whoever holds the kernel's lock on it tells in `lock-holder.json` beside it
who that is: name, pid, started (seconds since the epoch).
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLDER = "lock-holder.json"
# Whoever only looks holds the lock for a moment too.
_PATIENCE = 0.5


class BusyError(RuntimeError):
    """Somebody else works on the stack; the text says who, and what to do."""


@contextmanager
def held(path: Path, owner: int) -> Iterator[None]:
    """Hold the lock.

    Args:
        path: The file.
        owner: Id of the process on whose behalf: the playbook.

    Raises:
        BusyError: Somebody else holds it.
    """
    with _taken(path):
        _tell(path.with_name(_HOLDER), owner)
        yield


def check(path: Path) -> None:
    """See that nobody works on the stack.

    Raises:
        BusyError: Somebody does.
    """
    with _taken(path):
        pass


@contextmanager
def _taken(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise BusyError(_busy(path.with_name(_HOLDER))) from error
            time.sleep(0.02)
        yield


def _tell(path: Path, owner: int) -> None:
    import psutil  # the rehearsal brings it; on a real cluster, where there is no lock, it may be missing

    record = {"name": "ansible-playbook", "pid": owner, "started": psutil.Process(owner).create_time()}
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(record), encoding="utf-8")
    partial.replace(path)


def _busy(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"`{holder['name']}` (process {holder['pid']})"
    except (OSError, ValueError, TypeError, KeyError):
        who = "another command"
    return (
        f"{who} is working on this rehearsed stack, and a scale test beside it would be judged by the other's nodes; "
        "wait until it has ended, or end it"
    )
