"""`karpstack review` and `pack`: what is to be reviewed before a stack is updated, and the rules for it."""

from __future__ import annotations

import errno
import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from karpstack.text.codes import Code, say_error
from karpstack.text.packaged import POLICIES
from karpstack.text.shown import visible

from .options import ConfigFile, Format, PolicyPackConfig, Project, PulumiStack, State, argument, option
from .shape import command


def _review(
    stack: PulumiStack,
    live: Annotated[
        bool, option("--live", help="preview with your own account and Pulumi's state instead of a simulated account")
    ] = False,
    config_file: ConfigFile = None,
    policy_pack_config: PolicyPackConfig = None,
    output: Annotated[
        Path | None,
        option("--output", metavar="FOLDER", help="folder for the documents (default: build/review/<stack>)"),
    ] = None,
    only_configuration: Annotated[
        bool, option("--only-configuration", help="with --live: only check the configuration of the policy pack")
    ] = False,
    update: Annotated[
        Path | None,
        option(
            "--update",
            metavar="EVENTS",
            help="with --live: review a finished update instead of a preview; EVENTS is the file of "
            "`PULUMI_DEBUG_COMMANDS=true pulumi up --policy-pack policies --event-log EVENTS`",
        ),
    ] = None,
    project: Project = None,
    form: Format = "text",
    state: State = None,
) -> int:
    """Preview a stack with the policy pack, and write changes, findings, cost and permissions. Nothing is changed.

    The documents are review.html, review.md (for a pull request) and review.sarif (for code scanning). Exit code 1: a
    mandatory rule is violated; 3: the preview itself failed.
    """
    if live:
        return _live(
            stack,
            project=project,
            config_file=config_file,
            policy_pack_config=policy_pack_config,
            only_configuration=only_configuration,
            update=update,
            output=output,
            form=form,
        )
    if only_configuration or update:
        raise typer.BadParameter(
            "without --live they would have no effect; add --live", param_hint="--only-configuration and --update"
        )
    from karpstack.rehearsal import commands

    target = commands.Target(stack, state, config_file, "review", project)
    return commands.review(target, output=output, policy_pack_config=policy_pack_config or "", form=form)


def _module(name: str) -> Any:
    """Import a module of the review. The pack's folder is the root of the pack's imports, as the engine runs it."""
    sys.path.insert(0, str(POLICIES))
    return importlib.import_module(f"karpstack.review.{name}")


def _live(stack: str, **options: Any) -> int:
    try:
        code: int = _module("command").review(stack, **options)
        return code
    except KeyboardInterrupt:
        print("Stopped. Nothing was created or changed.", file=sys.stderr)
        return Code.INTERRUPTED


def _pack(folder: Annotated[Path, argument("FOLDER", "folder to make; it must not exist")]) -> int:
    """Make a folder with the policy pack for `pulumi up --policy-pack FOLDER`. It is run by the Python of this command.

    The folder has links to the installed rules. To publish the pack, use `make pack` in a checkout instead.
    """
    from karpstack.rehearsal.state import ancestors, ownership

    try:
        if folder.is_symlink():
            raise FileExistsError(errno.EEXIST, "is a link")
        place = ownership.unexposed(folder, "the policies, which Pulumi runs", "name another folder")
        _module("preview").link_pack(POLICIES, place)
    except ancestors.ExposedError as error:
        say_error(error)
        return Code.WRONG
    except OSError as error:
        print(f"error: {visible(folder)}: {error.strerror}; nothing was written, name another folder", file=sys.stderr)
        return Code.WRONG
    return Code.GOOD


def add(app: typer.Typer) -> None:
    """Add the commands to the application."""
    command(app, "review", "karpstack review eks")(_review)
    command(app, "pack", "karpstack pack build/policies")(_pack)
