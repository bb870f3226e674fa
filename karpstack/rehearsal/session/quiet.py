"""Runs a Python program, its path and arguments given as arguments, without a traceback when it is interrupted.

Ansible handles an interrupt once it has loaded all of itself; a Ctrl-C before that would print where it was.
"""

from __future__ import annotations

import runpy
import sys
from types import TracebackType

_shown = sys.excepthook


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _shown(kind, error, trace)


if __name__ == "__main__":
    sys.excepthook = _hook
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
