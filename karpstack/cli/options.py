"""Arguments and options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

import typer

from karpstack.text.names import stack_name
from karpstack.text.projects import stack_names


def option(*names: str, help: str, **more: Any) -> Any:
    """Return an option whose default, if it has one, is named by the help text."""
    return typer.Option(*names, help=help, show_default=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Return a positional argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


def parsed(place: str) -> Callable[[str], Any]:
    """Return what parses an option's text by a function that is imported when it is needed.

    Args:
        place: `module:function`.
    """

    def parse(text: str) -> Any:
        return resolve_name(place)(text)

    return parse


def stacks(incomplete: str) -> list[str]:
    """Return the names of stacks that begin so."""
    return [name for name in stack_names() if name.startswith(incomplete)]


def stack(parser: Callable[[str], str] | None = stack_name) -> Any:
    """Return the argument STACK."""
    return argument(
        "STACK", "name of the stack, for example eks for Pulumi.eks.yaml", autocompletion=stacks, parser=parser
    )


def _chosen(verbosity: str) -> Callable[[bool], bool]:
    """Return what hands a flag on to this command, and to the commands that it starts."""

    def choose(wanted: bool) -> bool:
        if wanted:
            os.environ["KARPSTACK_VERBOSITY"] = verbosity
        return wanted

    return choose


Quiet = Annotated[bool, option("--quiet", "-q", callback=_chosen("quiet"), help="print errors and the answer only")]
Verbose = Annotated[
    bool,
    option(
        "--verbose", "-v", callback=_chosen("verbose"), help="print all that Pulumi prints, also without a terminal"
    ),
]
Stack = Annotated[str, stack()]
#: As Pulumi names it, `organization/project/eks` too.
PulumiStack = Annotated[str, stack(None)]
ConfigFile = Annotated[
    Path | None,
    option(
        "--config-file", metavar="FILE", help="configuration of the stack (default: Pulumi.<stack>.yaml of the project)"
    ),
]
Project = Annotated[
    Path | None,
    option(
        "--project",
        metavar="FOLDER",
        help="folder with Pulumi.yaml (default: the nearest one upward from the current folder)",
    ),
]
Program = Annotated[
    Path | None,
    option(
        "--program",
        metavar="FOLDER",
        help="folder of a Pulumi program in Python, also one that is not karpstack's (default: the nearest folder with "
        "Pulumi.yaml upward from the current one)",
    ),
]
State = Annotated[
    Path | None,
    option(
        "--state",
        metavar="FOLDER",
        help="folder with the state of all simulated stacks (default: .rehearsal)",
    ),
]
Speed = Annotated[
    float | None,
    option(
        "--speed",
        metavar="N",
        parser=parsed("karpstack.rehearsal.session.speed:parse"),
        help="how many times faster than real time the cluster's clock may run while the command waits; 1 is real time "
        "(default: $REHEARSAL_SPEED, else 8)",
    ),
]
PolicyPackConfig = Annotated[
    str | None,
    option(
        "--policy-pack-config",
        metavar="FILE",
        help="configuration of the policy pack, or `baseline` for none (default: policies/<stack>.json, and baseline "
        "where that is missing)",
    ),
]
Format = Annotated[Literal["text", "json"], option("--format", help="how the answer is printed (default: text)")]
