"""Which processes of this machine are still there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

#: Linux has a folder of each process there; macOS has none.
_PROCESSES: Final = Path("/proc")
_ENDED: Final = "Z"


def is_gone(pid: int) -> bool:
    """Whether there is no process of this number, or one that has ended and is only not yet waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _status(pid)[:1] == [_ENDED]


def started(pid: int) -> str:
    """Start of a process, which tells it from a later one with the same number; empty if it has ended."""
    if (_PROCESSES / "self" / "stat").exists():
        status = _status(pid)
        return "" if not status or status[0] == _ENDED else status[19]
    # The time of day, which moves if the clock is set.
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    state, _, began = said.strip().partition(" ")
    return "" if state.startswith(_ENDED) else began.strip()


def _status(pid: int) -> list[str]:
    """What Linux says of a process after its name: first its state, and as the 20th its start; empty if nothing."""
    try:
        return (_PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
