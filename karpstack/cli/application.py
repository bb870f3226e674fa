"""The application: all groups of commands, signals, and what is said about wrong words."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.exceptions import Exit, TyperException

from karpstack.text.codes import Code
from karpstack.text.projects import ProjectError
from karpstack.text.shown import visible

from . import snapshot, stories, whatif
from .options import option
from .shape import group

_NAME: Final = "karpstack"
_EXAMPLE: Final = "karpstack up eks          # a simulated stack on this machine"
_COMPLETE: Final = "_KARPSTACK_COMPLETE"
app = group(
    _NAME,
    "Ask what Karpenter will do, before it costs money: rehearse stacks on this machine, review and check them, and "
    "judge scale tests.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from karpstack.scale_test.version import version

        print(f"karpstack {version()}")
        raise Exit(Code.GOOD)


_Version = Annotated[
    bool, option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
]


@app.callback(epilog=_EXAMPLE)
def _all(version: _Version = False) -> None:
    pass


for _each in (whatif.app, snapshot.app):
    app.add_typer(_each)
stories.add(app)


@cache
def built() -> Any:
    """Return the application as the parser has it."""
    return typer.main.get_command(app)


def run(words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    _listen()
    if os.environ.get(_COMPLETE):
        built().main(args=words, prog_name=_NAME, complete_var=_COMPLETE)
    try:
        with built().make_context(_NAME, list(words)) as context:
            return int(built().invoke(context) or Code.GOOD)
    except Exit as ended:
        return ended.exit_code
    except TyperException as error:
        return _refuse(error)
    except ProjectError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return Code.WRONG
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return Code.INTERRUPTED


def _listen() -> None:
    """Let every signal that ends a command be the end of a Ctrl-C, which cleans up."""
    # A shell that started this in the background has SIGINT ignored, and Python would leave it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A CI job that is cancelled, a terminal that is closed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def _refuse(error: TyperException) -> int:
    """Say what is wrong with the words, how the command is used, and an example of it."""
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # its class is private
        print(error.format_message(), file=sys.stderr)
        return Code.WRONG
    message = error.format_message().replace("Value error, ", "")
    lines = [f"error: {visible(message)}"]
    if context is not None:
        lines += [context.get_usage(), f"Help: {context.command_path} --help"]
        lines += [f"Example: {context.command.epilog.splitlines()[0]}"] if context.command.epilog else []
    print(*lines, sep="\n", file=sys.stderr)
    return Code.WRONG
