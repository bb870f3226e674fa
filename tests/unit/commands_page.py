"""Write the reference of the command line from the declarations of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from typer.core import TyperArgument

from karpstack.cli.application import built
from karpstack.cli.shape import DEFAULT
from tests.unit.example_stack import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "commands.md"
_HEAD: Final = """\
# Command line

<!-- Written by `make goldens` from karpstack/cli; do not edit. -->

`--help` after a command prints the same text. `STACK` is the name of a stack: `eks` for `Pulumi.eks.yaml`. All
commands have the same [exit codes](exit-codes.md).
"""


def page() -> str:
    """Return the page."""
    root = built()
    context = root.context_class(root, info_name="karpstack")
    return "\n".join([_HEAD, *_contents(root), *_commands(root, context, 2)]).rstrip() + "\n"


def _contents(root: Any) -> Iterator[str]:
    yield "| command | what it does |\n| --- | --- |"
    for name, command in root.commands.items():
        if not command.hidden:
            yield f"| [`karpstack {name}`](#karpstack-{name}) | {_cell(_first(command.help))} |"
    yield ""


def _commands(group: Any, context: Any, depth: int) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        inner = command.context_class(command, info_name="" if name == DEFAULT else name, parent=context)
        if hasattr(command, "commands"):
            yield f"{'#' * depth} karpstack {name}\n\n{_text(command.help)}\n"
            yield from _commands(command, inner, depth + 1)
        else:
            title = context.command_path if name == DEFAULT else inner.command_path
            yield f"{'#' * depth} {title}{' STACK' if name == DEFAULT else ''}\n"
            yield from _command(command, inner, title)


def _command(command: Any, context: Any, title: str) -> Iterator[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"{_text(command.help)}\n\n    {title} {pieces}\n"
    arguments = [one for one in command.get_params(context) if isinstance(one, TyperArgument)]
    options = [one for one in command.get_params(context) if one not in arguments]
    rows = [(one.display_name_raw.upper(), one.help or "") for one in arguments]
    rows += [record for one in options if "--help" not in one.opts and (record := one.get_help_record(context))]
    if rows:
        yield "| argument or option | meaning |\n| --- | --- |"
        yield from (f"| `{name.replace('|', ', ')}` | {_cell(said)} |" for name, said in rows)
        yield ""
    if command.epilog:
        yield "Example:\n"
        yield from (f"    {line}" for line in command.epilog.splitlines())
        yield ""


def _first(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _text(text: str | None) -> str:
    return "\n\n".join(" ".join(one.split()) for one in (text or "").replace("\b", "").split("\n\n")).strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
