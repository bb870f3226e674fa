"""Programs of which somebody reads only the beginning, as with `| head`, end without a traceback."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

from .codes import Code


def run(program: Callable[[], int]) -> int:
    """Run a program; its exit code, or `Code.UNREAD`."""
    try:
        try:
            return program()
        finally:
            sys.stdout.flush()  # here, where it is known whether somebody reads it
    except BrokenPipeError:
        if not unread():
            raise
        return Code.UNREAD


def unread() -> bool:
    """Whether nobody reads what is printed; what is left of it goes nowhere then."""
    output = select.poll()
    output.register(sys.stdout, 0)  # for what the kernel says unasked: that the other end is closed
    if not output.poll(0):
        return False
    # Python writes the rest at its end, and would complain. https://docs.python.org/3/library/signal.html
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return True
