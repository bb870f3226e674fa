"""`python -m karpstack.pull_request`: the commands of `karpstack pull-request` on a bare Python.

The jobs of the action run it before anything is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from karpstack.text.output import run

from . import commands
from .inputs import AUTHOR, ENDINGS, NAME, PATIENCE, RESULTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = given.command
    return command(given)


def parser() -> argparse.ArgumentParser:
    """What the commands take."""
    made = argparse.ArgumentParser(
        prog="python -m karpstack.pull_request",
        description="Rehearse a pull request: review and what-if of the stacks that it touches, in one comment.",
    )
    subparsers = made.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], said: str) -> argparse.ArgumentParser:
        added = subparsers.add_parser(name, help=said, description=said)
        added.set_defaults(command=command)
        return added

    asking = add("stacks", _stacks, "Print which stacks a change touches, as a JSON list of names.")
    rehearsing = add(
        "rehearse",
        _rehearse,
        "Review the stacks that a change touches, and rehearse the change of each. Exit code 0: no problem; "
        "1: a mandatory rule is violated, or a limit is exceeded; 3: something has no answer.",
    )
    commenting = add(
        "comment",
        _comment,
        "Write the results into one comment on the pull request, by GitHub's API, with the token in GITHUB_TOKEN. "
        "If the token may only read, as for a pull request from a fork, the results go into the job's summary.",
    )
    summing = add(
        "summary", _summary, "Write the results into the job's summary ($GITHUB_STEP_SUMMARY), or print them."
    )
    for one in (asking, rehearsing):
        one.add_argument(
            "--base", required=True, metavar="REF", help="commit before the change, for example origin/main"
        )
        one.add_argument("--head", default="HEAD", metavar="REF", help="commit with the change (default: HEAD)")
        one.add_argument(
            "--project", type=Path, help="folder with the stack files (default: the current folder's repository)"
        )
        one.add_argument(
            "--stacks", default="", help="names, separated by commas, or `all` (default: those that it touches)"
        )
        one.add_argument(
            "--manifests",
            default="",
            metavar="FOLDERS",
            help="folders of NodePools and node classes instead of stacks, separated by commas",
        )
    asking.add_argument("--workloads", default="", help="with --manifests: as for `rehearse`")
    asking.add_argument("--files", action="store_true", help="print the names of their files instead, on one line")
    rehearsing.add_argument(
        "--whatif",
        choices=("true", "false"),
        default="true",
        help="whether the change is rehearsed too (default: true)",
    )
    for name in commands.PASSED_ON:
        folder = f"; or a folder with STACK{ENDINGS[name][0]} for each stack" if name in ENDINGS else ""
        rehearsing.add_argument(f"--{name}", default="", help=f"as of `karpstack whatif`{folder}")
    for one in (rehearsing, commenting, summing):
        one.add_argument(
            "--results",
            type=Path,
            default=RESULTS,
            metavar="FOLDER",
            help=f"folder of the results (default: {RESULTS})",
        )
    for one in (commenting, summing):
        one.add_argument(
            "--stacks",
            default="",
            metavar="JSON",
            help="output of `stacks`: a stack in it without a result counts as failed",
        )
    commenting.add_argument("--number", type=int, help="of the pull request (default: the event's)")
    commenting.add_argument(
        "--author",
        default=AUTHOR,
        help=f"login of whose token it is (default: {AUTHOR}, as of a workflow's)",
    )
    commenting.add_argument(
        "--name",
        default=NAME,
        help=f"of the comment: each name has its own, which the next run changes (default: {NAME})",
    )
    commenting.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="SECONDS",
        help="how long to wait for GitHub in all (default: 900)",
    )
    return made


def _touching(given: argparse.Namespace) -> commands.AffectedStacks:
    return commands.AffectedStacks(
        given.base, given.head, given.project, given.stacks, given.manifests, given.workloads
    )


def _stacks(given: argparse.Namespace) -> int:
    return commands.touched_stacks(_touching(given), files=given.files)


def _rehearse(given: argparse.Namespace) -> int:
    passed_on = {name: getattr(given, name.replace("-", "_")) for name in commands.PASSED_ON}
    return commands.rehearse(_touching(given), given.results, whatif=given.whatif == "true", passed_on=passed_on)


def _comment(given: argparse.Namespace) -> int:
    return commands.comment(
        given.results,
        given.stacks,
        number=given.number,
        author=given.author,
        name=given.name,
        patience=given.patience,
    )


def _summary(given: argparse.Namespace) -> int:
    return commands.summary(given.results, given.stacks)


if __name__ == "__main__":
    sys.exit(run(main))
