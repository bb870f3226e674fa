"""The exit codes of all commands, and how an error becomes one. docs/reference/exit-codes.md shows them.

Standard library only, as `files` is.
"""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, ParamSpec

from .shown import visible

Parameters = ParamSpec("Parameters")
#: Of an error of the system: the disk is full, or the user may not write more.
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Code(IntEnum):
    """The exit code of a command.

    Attributes:
        meaning: What it says, for the documentation.
    """

    meaning: str

    GOOD = 0, "Done, and the answer is good."
    NO = 1, "The answer is no: a blocker, a failed story, an exceeded limit, an update that failed."
    WRONG = 2, "An argument, an option or a file cannot be used. Nothing was started."
    UNKNOWN = 3, "There is no answer: no credentials, no cluster, no engine, or another command is at work."
    INTERRUPTED = 130, "The command was interrupted, and has cleaned up."
    UNREAD = 141, "Another program read only the beginning of the output, as `head` does."

    def __new__(cls, value: int, meaning: str) -> Code:
        """Return a member with its meaning."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


def words_of(error: BaseException) -> str:
    """Return what an error says; of one of the system that names a file, that first, and the fix."""
    if not isinstance(error, OSError) or error.filename is None or not error.strerror:
        return str(error)
    fix = f"{'make room there, or ' if error.errno in NO_ROOM else ''}give another path"
    return f"{error.filename}: {error.strerror}; {fix}"


def say_error(error: BaseException) -> None:
    """Print an error to stderr."""
    print(f"error: {visible(words_of(error))}", file=sys.stderr)


def reported(
    codes: Mapping[type[BaseException], Code], say: Callable[[BaseException], None] = say_error
) -> Callable[[Callable[Parameters, int]], Callable[Parameters, int]]:
    """Make errors of a command a sentence on stderr and an exit code.

    Args:
        codes: Error -> exit code; the first entry that fits counts.
        say: Prints the error.
    """

    def decorate(command: Callable[Parameters, int]) -> Callable[Parameters, int]:
        @functools.wraps(command)
        def run(*args: Parameters.args, **options: Parameters.kwargs) -> int:
            try:
                return command(*args, **options)
            except BrokenPipeError:
                raise  # the rest of the output is not read: see `output.run`
            except tuple(codes) as error:
                if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
                    raise  # the output is a file on a full disk: see `output.run`
                say(error)
                return next(code for kind, code in codes.items() if isinstance(error, kind))
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                say_error(error)  # of a file that the user names: even to ask whether it exists is an error
                return Code.WRONG

        return run

    return decorate
