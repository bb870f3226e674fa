"""The lock of a rehearsed stack: one at a time works on it. A real stack has none.

`karpstack env` names the file. Whoever holds the kernel's lock on it tells in `lock-holder.json` beside it
who that is: name, pid, started (in seconds: since the machine's start on Linux, since the epoch elsewhere).
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

_HOLDER = "lock-holder.json"
# Whoever only looks holds the lock for a moment too.
_PATIENCE = 0.5
# Has the locked file open for as long as the process runs whose id is the argument.
_KEEPER = "import psutil, sys; psutil.Process(int(sys.argv[1])).wait()"


class BusyError(RuntimeError):
    """Somebody else works on the stack; the text says who, and what to do."""


def take(path: Path, owner: int) -> None:
    """Take the lock for a process: it is free again when that has ended, however it did.

    Args:
        path: The file.
        owner: Id of the process.

    Raises:
        BusyError: Somebody else holds it.
    """
    with path.open("a") as file:
        _lock(file.fileno(), path.with_name(_HOLDER))
        _tell(path.with_name(_HOLDER), owner)
        subprocess.Popen(
            # -P: a psutil.py in the folder where the playbook was started is none of ours.
            [sys.executable, "-P", "-c", _KEEPER, str(owner)],
            pass_fds=[file.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _lock(descriptor: int, holder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BusyError(_busy(holder)) from error
        time.sleep(0.02)


def _tell(path: Path, owner: int) -> None:
    import psutil  # the rehearsal brings it; on a real cluster, where there is no lock, it may be missing

    # On Linux by the machine's start: a time of day would move whenever the clock is set.
    started = psutil.Process(owner).create_time() - (psutil.boot_time() if psutil.LINUX else 0.0)
    record = {"name": "ansible-playbook", "pid": owner, "started": started}
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(record), encoding="utf-8")
    partial.replace(path)


def _busy(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"`{holder['name']}` (process {holder['pid']}{_since(int(holder['pid']))})"
        end = f" (kill -INT {int(holder['pid'])})"
    except (OSError, ValueError, TypeError, KeyError):
        who, end = "another command", ""
    return (
        f"{who} is working on this rehearsed stack, and a scale test beside it would be judged by the other's nodes; "
        f"wait until it has ended, or end it{end}"
    )


def _since(pid: int) -> str:
    import psutil

    try:
        return f", since {datetime.fromtimestamp(psutil.Process(pid).create_time()):%H:%M:%S}"
    except (psutil.Error, OverflowError):  # a holder of another machine's, or an old record
        return ""
