"""The application: all groups of commands, signals, and what is said about wrong words."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal

import typer
from typer.exceptions import Exit, TyperException

from karpstack.text.codes import Code
from karpstack.text.names import StackNameError
from karpstack.text.projects import ProjectError
from karpstack.text.shown import visible

from . import (
    advise,
    assistance,
    engines,
    preflight,
    prices,
    pull_request,
    real_run,
    rehearsal,
    review,
    snapshot,
    stories,
    whatif,
)
from .options import argument, option
from .shape import Group, command, group, typed

_NAME: Final = "karpstack"
_EXAMPLE: Final = "karpstack up eks          # a simulated stack on this machine"
_COMPLETE: Final = "_KARPSTACK_COMPLETE"
#: Title of a section of `karpstack --help` -> its commands.
SECTIONS: Final = {
    "What a change does": ("whatif", "advise", "snapshot", "review", "pack", "pull-request"),
    "Stacks on this machine": ("up", "run", "down", "status", "env", "rights", "network"),
    "Your account": ("preflight", "facts", "prices", "real-run"),
    "Scale tests": ("scenario", "story", "report", "compare", "why"),
    "The tool": ("explain", "doctor", "engines", "completion", "version"),
}


class _Root(Group):
    """All commands, in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list for each section."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(self.rows(names))


app = group(
    _NAME,
    "Ask what Karpenter will do, before it costs money: rehearse stacks on this machine, review and check them, and "
    "judge scale tests.\n\nDocumentation: docs/index.md in the repository. Exit codes: docs/reference/exit-codes.md.",
    _Root,
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


rehearsal.add(app)
review.add(app)
app.add_typer(whatif.app)
advise.add(app)
preflight.add(app)
app.add_typer(snapshot.app)
stories.add(app)
for _each in (prices, pull_request, real_run, engines):
    app.add_typer(_each.app)
assistance.add(app)


@cache
def built() -> Any:
    """Return the application as the parser has it."""
    return typer.main.get_command(app)


def run(words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    _listen()
    if instruction := os.environ.get(_COMPLETE):
        return complete(instruction)
    try:
        with built().make_context(_NAME, list(words)) as context:
            return int(built().invoke(context) or Code.GOOD)
    except Exit as ended:
        return ended.exit_code
    except TyperException as error:
        return _refuse(error)
    except (ProjectError, StackNameError) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return Code.WRONG
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return Code.INTERRUPTED


def complete(instruction: str) -> int:
    """Print what a shell asks for: its script (`source_bash`), or what completes its line (`complete_bash`)."""
    from typer.completion import get_completion_inspect_parameters, shell_complete

    get_completion_inspect_parameters()  # makes the shells known
    return shell_complete(built(), {}, _NAME, _COMPLETE, instruction)


@command(app, "completion", 'eval "$(karpstack completion bash)"')
def _completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("SHELL", "bash, zsh or fish")],
) -> int:
    """Print the script that completes commands, options and names of stacks in a shell."""
    return complete(f"source_{shell}")


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
        lines += [context.get_usage(), f"Help: {typed(context)} --help"]
        lines += [f"Example: {context.command.epilog.splitlines()[0]}"] if context.command.epilog else []
    print(*lines, sep="\n", file=sys.stderr)
    return Code.WRONG
