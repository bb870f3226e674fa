"""Programs end without a traceback if their output is read only in part, as with `| head`, or cannot be written."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable

from .codes import NO_ROOM, Code


def run(program: Callable[[], int]) -> int:
    """Run a program; its exit code, or `Code.UNREAD`, or `Code.UNKNOWN` if the disk is full."""
    if sys.stdout is None:  # it is closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has the lines of tables
    try:
        try:
            return program()
        finally:
            sys.stdout.flush()  # here, where it is known whether somebody reads it
    except BrokenPipeError:
        if not unread():
            raise
        return Code.UNREAD
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _discard()
        print(f"error: not everything could be written ({error.strerror}); make room, and try again", file=sys.stderr)
        return Code.UNKNOWN


def unread() -> bool:
    """Whether nobody reads what is printed; what is left of it goes nowhere then."""
    output = select.poll()
    output.register(sys.stdout, 0)  # for what the kernel says unasked: that the other end is closed
    if not output.poll(0):
        return False
    _discard()
    return True


def _discard() -> None:
    # Python writes the rest at its end, and would complain. https://docs.python.org/3/library/signal.html
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
