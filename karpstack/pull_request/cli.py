"""The command line: `karpstack pull-request stacks|rehearse|comment|summary`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from karpstack.text import shown
from karpstack.text.names import is_stack_name
from karpstack.text.projects import find_stack_files

from . import outcome, stacks, text
from .given import ENDINGS
from .job import Job, JobError, job
from .outcome import Outcome, OutcomeError, Told
from .rehearse import Question, rehearse
from .stacks import Change, StacksError, Touched

PROJECT: Final = Path(__file__).resolve().parents[2]
_RESULTS: Final = Path("build") / "pull-request"
_AUTHOR: Final = "github-actions[bot]"
#: Of the what-if; it says itself what they mean, and what is wrong with them.
_PASSED_ON: Final = (*ENDINGS, "wait-factor", "at", "patience")
_WRONG: Final = 2
_ALL: Final = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0; of `rehearse` 1 where something is refused; 2 where something has no answer, or what was given cannot be
        used.
    """
    given = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except (JobError, OutcomeError, StacksError) as error:
        return _wrong(error)
    except BrokenPipeError:
        raise  # nobody reads the rest: see `output.run`
    except OSError as error:
        return _wrong(
            OutcomeError(
                f"{error.filename}: cannot be written ({error.strerror}), so nothing came of it; give another folder "
                "with --results"
            )
        )


def parser() -> argparse.ArgumentParser:
    """What the commands take."""
    made = argparse.ArgumentParser(
        prog="karpstack pull-request",
        description="Rehearse a pull request: review and what-if of the stacks that it touches, in one comment.",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], said: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=said, description=said)
        added.set_defaults(command=command)
        return added

    asking = add("stacks", _stacks, "Print which stacks a change touches, as a JSON list of names.")
    rehearsing = add(
        "rehearse",
        _rehearse,
        "Review the stacks that a change touches, and rehearse the change of each. Exit code 0: nothing is in the way; "
        "1: a mandatory rule is broken, or a limit; 2: something has no answer.",
    )
    commenting = add(
        "comment",
        _comment,
        "Write what came of it into one comment on the pull request, by GitHub's API, with the token in GITHUB_TOKEN. "
        "Where that may only read, as for a pull request from a fork, it goes into the job's summary.",
    )
    summing = add(
        "summary", _summary, "Write what came of it into the job's summary ($GITHUB_STEP_SUMMARY), or print it."
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
    asking.add_argument("--files", action="store_true", help="print the names of their files instead, on one line")
    rehearsing.add_argument(
        "--whatif",
        choices=("true", "false"),
        default="true",
        help="whether the change is rehearsed too (default: true)",
    )
    for name in _PASSED_ON:
        folder = f"; or a folder with STACK{ENDINGS[name][0]} for each stack" if name in ENDINGS else ""
        rehearsing.add_argument(f"--{name}", default="", help=f"as of `karpstack whatif`{folder}")
    for one in (rehearsing, commenting, summing):
        one.add_argument(
            "--results", type=Path, default=_RESULTS, metavar="FOLDER", help=f"of what came of it (default: {_RESULTS})"
        )
    for one in (commenting, summing):
        one.add_argument(
            "--stacks",
            type=_names,
            default=[],
            metavar="JSON",
            help="output of `stacks`: a stack in it without a result counts as failed",
        )
    commenting.add_argument("--number", type=int, help="of the pull request (default: the event's)")
    commenting.add_argument(
        "--author", default=_AUTHOR, help=f"login of whose token it is (default: {_AUTHOR}, as of a workflow's)"
    )
    commenting.add_argument(
        "--patience",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="how long GitHub may make it wait in all (default: 900)",
    )
    return made


def _stacks(given: argparse.Namespace) -> int:
    _, touched = _touched(given)
    names = [one.stack for one in touched]
    print(" ".join(f"Pulumi.{name}.yaml" for name in names) if given.files else json.dumps(names))
    return 0


def _touched(given: argparse.Namespace) -> tuple[Change, list[Touched]]:
    given.project = (given.project or find_stack_files()).resolve()
    changed = stacks.change(given.project, given.base, given.head)
    names = [name.strip() for name in given.stacks.split(",") if name.strip()]
    touched = changed.named(changed.after if names == [_ALL] else names) if names else changed.touched()
    _explain(changed, touched)
    return changed, touched


def _rehearse(given: argparse.Namespace) -> int:
    changed, touched = _touched(given)
    if not (given.project / "karpstack" / "__main__.py").is_file():
        raise StacksError(
            f"--project {given.project}: is no copy of karpstack, whose program and policies the pull request's stacks "
            "would have, so nothing is rehearsed; compare its stack files there, one stack at a time: "
            f"karpstack whatif STACK --project {shlex.quote(str(given.project))} --base {changed.base[:12]}"
        )
    if given.whatif == "false":
        touched = [Touched(one.stack, one.why, "off") for one in touched]
    values = {name: value for name in _PASSED_ON if (value := getattr(given, name.replace("-", "_")))}
    question = Question(
        given.project,
        changed.base,
        given.results.resolve(),
        {name: Path(values[name]).resolve() for name in ENDINGS if name in values},
        [part for name, value in values.items() if name not in ENDINGS for part in (f"--{name}", value)],
    )
    outcomes = rehearse(question, touched)
    for one in outcomes:
        _tell(f"{one.stack}: review {one.review}; what-if {one.whatif}")
    return outcome.code(outcomes)


def _comment(given: argparse.Namespace) -> int:
    from .comment import post
    from .github import GitHub, GitHubError, NoRightsError

    where, told = job(os.environ), _told(given)
    number = given.number or where.number
    if number is None:
        raise JobError(
            "the event that started the job is of no pull request, so there is nothing to comment on; run it on "
            "`pull_request`, or give --number"
        )
    said = text.comment(told, commit=where.commit, page=where.page)
    try:
        url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
        api = GitHub(url, os.environ.get("GITHUB_TOKEN", ""), patience=given.patience)
        posted = post(api, where.repository, number, said, author=given.author, create=bool(told))
    except NoRightsError as error:
        _summarise(told, where)
        if where.reads_only:
            _tell("The token of such a pull request may only read (a fork's, or Dependabot's): see the job's summary.")
            return 0
        return _wrong(error)
    except GitHubError as error:
        _summarise(told, where)
        return _wrong(error)
    if posted is None:
        _tell("The pull request touches no stack, and there is no comment to change.")
        return 0
    _tell(f"The comment is {'there' if posted.new else 'changed'}.")
    if posted.others:
        _tell(f"{posted.others} more comments of {given.author} begin as this one does; they stay as they are.")
    print(posted.page)
    return 0


def _summary(given: argparse.Namespace) -> int:
    elsewhere = Job("", None, "", reads_only=False, page="")
    _summarise(_told(given), job(os.environ) if "GITHUB_REPOSITORY" in os.environ else elsewhere)
    return 0


def _told(given: argparse.Namespace) -> list[Told]:
    """What came of each stack; of some there may be nothing at all, as their job has not come that far."""
    found = outcome.read(given.results)
    missing = sorted(set(given.stacks) - {one.outcome.stack for one in found})
    return sorted(
        [*found, *(Told(Outcome(stack, "failed", "failed"), "", {}) for stack in missing)],
        key=lambda one: one.outcome.stack,
    )


def _names(written: str) -> list[str]:
    try:
        names = json.loads(written or "[]")
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and is_stack_name(name) for name in names):
        raise argparse.ArgumentTypeError(
            f"{shown.value(written)} is no JSON list of names of stacks, as `karpstack pull-request stacks` prints it"
        )
    return names


def _summarise(told: Sequence[Told], where: Job) -> None:
    said = text.summary(told, commit=where.commit, page=where.page)
    if file := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(said)
    else:
        print(said, end="")


def _explain(changed: Change, touched: Sequence[Touched]) -> None:
    for path in stacks.unnamed(changed):
        _tell(f"{shown.value(path)} names no stack that Pulumi would take, and is skipped.")
    for stack in stacks.removed(changed):
        _tell(f"{stack}: is no more, so there is nothing to rehearse.")
    for stack, reason in stacks.reasons(touched).items():
        _tell(f"{stack}: {reason}")
    if not touched:
        _tell("No stack is touched.")


def _wrong(error: Exception) -> int:
    _tell(f"error: {error}")
    return _WRONG


def _tell(said: str) -> None:
    """Beside what is read by programs."""
    print(said, file=sys.stderr)
