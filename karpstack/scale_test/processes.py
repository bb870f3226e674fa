"""Whether the playbook that has started something is still there."""

from __future__ import annotations

import os


def is_gone(pid: int) -> bool:
    """Whether there is no process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
