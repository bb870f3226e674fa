"""What becomes of the errors of a command that rehearses: a sentence on stderr, and an exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final

from karpstack.rehearsal.engines.builder import BuildError
from karpstack.rehearsal.host import limits
from karpstack.rehearsal.session import daemon, lock
from karpstack.rehearsal.session.deployment import CommandError
from karpstack.rehearsal.session.stack_file import StackFileError
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.state import ancestors, ownership
from karpstack.text.codes import Code, Parameters, reported, words_of

_CODES: Final[Mapping[type[BaseException], Code]] = {
    CommandError: Code.NO,
    **dict.fromkeys((BuildError, limits.LimitError, daemon.DaemonError, lock.BusyError, TimeoutError), Code.UNKNOWN),
    **dict.fromkeys(
        (
            StackFileError,
            ancestors.ExposedError,
            ownership.OwnershipError,
            ValueError,
        ),
        Code.WRONG,
    ),
}
_Command = Callable[Parameters, int]


def say_error(error: BaseException) -> None:
    """Print an error to stderr."""
    print_message(words_of(error), heading="error:")


def rehearsing(failed: Code = Code.NO) -> Callable[[_Command[Parameters]], _Command[Parameters]]:
    """Make a function a command that rehearses: errors become sentences and exit codes.

    Args:
        failed: The exit code if Pulumi or Ansible failed: `Code.UNKNOWN` where the answer is a document.
    """

    def decorate(command: _Command[Parameters]) -> _Command[Parameters]:
        said = reported({**_CODES, CommandError: failed}, say_error)(command)

        @functools.wraps(command)
        def run(*args: Parameters.args, **options: Parameters.kwargs) -> int:
            limits.disable_core_dumps()
            try:
                return said(*args, **options)
            except BrokenPipeError:
                raise
            except (OSError, MemoryError) as error:
                if not (exhausted := limits.exhausted(error)):
                    raise
                print_message(exhausted, heading="error:")
                return Code.UNKNOWN

        return run

    return decorate
