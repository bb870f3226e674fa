"""The command line, called within the test's process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from typer.core import TyperGroup

from karpstack.cli import main
from karpstack.cli.application import built


def karpstack(*first: str) -> Callable[[Sequence[str]], int]:
    """Return what runs `karpstack` with these words before others, and returns the exit code."""
    return lambda words: main([*first, *words])


def parsed(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Parse a command line and run nothing.

    Returns:
        The command with its groups, and its arguments and options.

    Raises:
        typer.exceptions.TyperException: The words fit no command.
    """
    context = built().make_context("karpstack", list(words))
    while isinstance(context.command, TyperGroup):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command
        context = command.make_context(name, rest, parent=context)
    return context.command_path, context.params
