"""How commands are shown and found: help without markup, an example in each, and groups with a default command.

`karpstack whatif STACK` stands beside `karpstack whatif report`, and `karpstack preflight STACK` beside
`karpstack preflight rights STACK`. Such a group has a default command, `stack`, for every first word that names none of
its commands. A stack that has the name of a command is reached by `karpstack whatif stack NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

#: The name of a group's default command.
DEFAULT: Final = "stack"
_WIDTH: Final = 110
_Function = TypeVar("_Function", bound=Callable[..., int])


class Command(TyperCommand):
    """A command whose help shows its arguments as they are written, and its example as it can be pasted."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the usage."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage; the name of a default command is left out."""
        formatter.write_usage(typed(ctx), " ".join(self.collect_usage_pieces(ctx)))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and then the options."""
        arguments = [one for one in self.get_params(ctx) if isinstance(one, TyperArgument)]
        rows = [(one.display_name_raw.upper(), one.help or "") for one in arguments]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        options = [one.get_help_record(ctx) for one in self.get_params(ctx) if one not in arguments]
        with formatter.section("Options"):
            formatter.write_dl([one for one in options if one])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, a line for each line."""
        _write_example(self.epilog, formatter)


class _Flag:
    """What Typer asks for the value of a flag; its own loads pydantic, which takes longer than the rest of `--help`."""

    def coerce(self, value: Any, **_: Any) -> Any:
        return value


class Group(TyperGroup):
    """A group of commands; words before the first command are an error that names the nearest."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, all of which are flags."""
        found: list[Any] = super().get_params(ctx)
        for option in found:
            option._runtime_param = _Flag()
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the whole first sentence of each."""
        with formatter.section("Commands"):
            formatter.write_dl(self.rows([name for name in self.commands if name != DEFAULT]))

    def rows(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return commands with the first paragraph of their help."""
        return [(name, (self.commands[name].help or "").split("\n\n")[0]) for name in names]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, as a command does."""
        _write_example(self.epilog, formatter)


class StackGroup(Group):
    """A group with a default command, which takes what names no other command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command's name before words that name no command."""
        completes = ctx.resilient_parsing and not args
        if not completes and (not args or args[0] not in {*self.commands, *ctx.help_option_names}):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the default command, and then the list of the others."""
        default = self.commands[DEFAULT]
        default.format_usage(ctx, formatter)
        default.format_help_text(ctx, formatter)
        default.format_options(ctx, formatter)
        default.format_epilog(ctx, formatter)
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete commands, and the first argument of the default command."""
        found = super().shell_complete(ctx, incomplete)
        for one in self.commands[DEFAULT].params:
            if isinstance(one, TyperArgument):
                return [*found, *one.shell_complete(ctx, incomplete)]
        return found


def typed(ctx: Any) -> str:
    """Return a command with its groups as a user types it: `karpstack whatif`, not `karpstack whatif stack`."""
    return str(ctx.command_path).removesuffix(f" {DEFAULT}")


def _write_example(example: str | None, formatter: Any) -> None:
    if example:
        with formatter.section("Example"):
            formatter.write("".join(f"  {line}\n" for line in example.splitlines()))


def group(name: str, text: str, cls: type[Group] = Group) -> typer.Typer:
    """Return a group of commands.

    Args:
        name: As it is typed.
        text: What its help says.
        cls: `StackGroup` for one with a default command.
    """
    return typer.Typer(
        name=name,
        help=text,
        cls=cls,
        no_args_is_help=cls is not StackGroup,
        add_completion=False,  # `karpstack completion` has it
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": _WIDTH},
    )


def command(of: typer.Typer, name: str, example: str) -> Callable[[_Function], _Function]:
    """Add a command to a group; its help is the function's docstring.

    Args:
        of: The group.
        name: As it is typed.
        example: A command line that can be pasted, or several lines.
    """
    return of.command(
        name,
        cls=Command,
        epilog=example,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": _WIDTH},
    )
