"""`karpstack real-run`: parts of playbooks/real_run.yml, which runs a stack in a real account."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .options import ConfigFile, Format, Stack, argument, option
from .shape import command, group

app = group(
    "real-run",
    "Compute the cost of a run in a real account, find and delete leftovers, compare the run with its rehearsal.",
)


@command(app, "cost", "karpstack real-run cost real-eks --report build/rehearsal/real-eks --ceiling 5")
def _cost(
    stack: Stack,
    report: Annotated[Path, option("--report", metavar="FOLDER", help="folder of the rehearsal's report")],
    ceiling: Annotated[float, option("--ceiling", metavar="USD", help="most that the run may cost (default: 3)")] = 3.0,
    scenarios: Annotated[
        str, option("--scenarios", metavar="NAMES", help="stories of the run, comma-separated (default: see --labels)")
    ] = "",
    labels: Annotated[
        str, option("--labels", metavar="LABELS", help="labels of these stories, comma-separated (default: any)")
    ] = "",
    config_file: ConfigFile = None,
    form: Format = "text",
) -> int:
    """Print what a run of the stack costs, and when it must end.

    Exit code 1: the ceiling is too low.
    """
    from karpstack.real_run import commands

    return commands.cost(
        stack, report, scenarios=scenarios, labels=labels, config_file=config_file, ceiling=ceiling, form=form
    )


@command(app, "left", "karpstack real-run left real-eks")
def _left(stack: Stack, config_file: ConfigFile = None, form: Format = "text") -> int:
    """List what is left of the stack in its account after `pulumi destroy`.

    Exit code 1: something is left.
    """
    from karpstack.real_run import commands

    return commands.list_leftovers(stack, config_file=config_file, form=form)


@command(app, "remove", "karpstack real-run remove real-eks --yes")
def _remove(
    stack: Stack,
    yes: Annotated[bool, option("--yes", help="delete it; without this option nothing is deleted")] = False,
    config_file: ConfigFile = None,
) -> int:
    """Delete everything that has the tag karpstack-run of the stack, if `pulumi destroy` cannot.

    Exit code 1: `--yes` is missing, and nothing was deleted; or something stays.
    """
    from karpstack.real_run import commands

    return commands.remove(stack, config_file=config_file, yes=yes)


@command(app, "compare", "karpstack real-run compare build/rehearsal/real-eks build/real-run/real-eks --output page.md")
def _compare(
    rehearsed: Annotated[Path, argument("REHEARSED", "folder of the rehearsal's report")],
    real: Annotated[Path, argument("REAL", "folder of the real run's report")],
    output: Annotated[Path, option("--output", metavar="FILE", help="the page to write, in Markdown")],
) -> int:
    """Write a page that compares a real run with its rehearsal."""
    from karpstack.real_run import commands

    return commands.compare(rehearsed, real, output)
