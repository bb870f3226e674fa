"""Whether the playbook that has started something is still there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def is_gone(pid: int) -> bool:
    """Whether there is no process of this number, or one that has ended and is only not yet waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    with suppress(OSError):  # where there is no /proc, or where it has gone meanwhile
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False
