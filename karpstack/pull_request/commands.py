"""What `karpstack pull-request stacks|rehearse|comment|summary` do: each function returns the exit code.

Standard library only: the jobs of the action run them on a bare Python, by `python -m karpstack.pull_request`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from karpstack.text import shown
from karpstack.text.codes import Code, reported
from karpstack.text.names import is_stack_name
from karpstack.text.packaged import IMPORT_ROOT
from karpstack.text.projects import find_stack_files

from . import manifests, outcome, stacks, text
from .inputs import AUTHOR, ENDINGS, NAME, PATIENCE, RESULTS
from .job import Job, JobError, job
from .outcome import Outcome, OutcomeError, OutcomeTexts
from .rehearse import Question
from .rehearse import rehearse as rehearse_all
from .stacks import AffectedStack, Change, StacksError

#: Of the what-if; it says itself what they mean, and what is wrong with them.
PASSED_ON: Final = (*ENDINGS, "wait-factor", "at", "patience")
_ALL: Final = "all"
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_CODES: Final[Mapping[type[BaseException], Code]] = {
    JobError: Code.WRONG,
    OutcomeError: Code.WRONG,
    StacksError: Code.WRONG,
    OSError: Code.WRONG,
}


def _print_error(error: BaseException) -> None:
    if isinstance(error, OSError):
        why = f"{error.filename or 'the output'}: cannot be written ({error.strerror}), so nothing came of it"
        of_summary = error.filename == os.environ.get(_SUMMARY)
        fix = f"set {_SUMMARY} to a file that can be" if of_summary else "give another folder with --results"
        _write_log(f"error: {why}; {fix}")
    else:
        _write_log(f"error: {error}")


@dataclass(frozen=True)
class AffectedStacks:
    """A change, and the stacks to rehearse for it.

    Attributes:
        base: A git ref of the commit before the change.
        head: A git ref of the commit with the change.
        project: Folder with the stack files; that of the current folder if None.
        stacks: Names, separated by commas, or `all`; those that the change touches if empty.
        manifests: Folders of NodePools and node classes, separated by commas, instead of stacks.
        workloads: A snapshot of the cluster of the manifests, or a folder of them.
    """

    base: str
    head: str = "HEAD"
    project: Path | None = None
    stacks: str = ""
    manifests: str = ""
    workloads: str = ""


@reported(_CODES, _print_error)
def touched_stacks(touching: AffectedStacks, *, files: bool = False) -> int:
    """Print which stacks a change touches, as a JSON list of names; or the names of their files on one line."""
    _, _, touched = _touched(touching)
    if files:
        print(" ".join(dict.fromkeys(f"Pulumi.{one.like or one.stack}.yaml" for one in touched)))
    else:
        print(json.dumps([one.stack for one in touched]))
    return Code.GOOD


def _touched(touching: AffectedStacks) -> tuple[Path, Change, list[AffectedStack]]:
    """Return the folder that the paths of the change are below, the change, and what it touches."""
    project = (touching.project or find_stack_files()).resolve()
    if touching.manifests:
        return _touched_manifests(touching, manifests.root(project))
    changed = stacks.change(project, touching.base, touching.head)
    stacks.check_stack_files(project, changed)
    names = [name.strip() for name in touching.stacks.split(",") if name.strip()]
    touched = changed.named(changed.after if names == [_ALL] else names) if names else changed.touched()
    for path in stacks.unnamed(changed):
        _write_log(f"{shown.value(path)} names no stack that Pulumi would take, and is skipped.")
    for stack in stacks.removed(changed):
        _write_log(f"{stack}: is no more, so there is nothing to rehearse.")
    _explain(touched)
    return project, changed, touched


def _touched_manifests(touching: AffectedStacks, repository: Path) -> tuple[Path, Change, list[AffectedStack]]:
    changed = stacks.change(repository, touching.base, touching.head)
    workloads = Path(touching.workloads).resolve() if touching.workloads else None
    every = touching.stacks.strip() == _ALL
    touched = manifests.affected(repository, changed, touching.manifests, workloads, every=every)
    _explain(touched)
    return repository, changed, touched


@reported(_CODES, _print_error)
def rehearse(
    touching: AffectedStacks,
    results: Path = RESULTS,
    *,
    whatif: bool = True,
    passed_on: Mapping[str, str] | None = None,
) -> int:
    """Review the stacks that a change touches, and rehearse the change of each.

    Args:
        touching: The change, and which stacks are meant.
        results: Folder of the results.
        whatif: Whether the change is rehearsed too.
        passed_on: More options of the what-if, by their names in `PASSED_ON`.
    """
    outcome.remove_earlier(results)  # also if the change is refused, or touches nothing
    folder, changed, touched = _touched(touching)
    if not touching.manifests and changed.head != stacks.commit(folder, "HEAD", "--head"):
        raise StacksError(
            f"--head {shown.value(touching.head)}: another commit is checked out, and its files would be judged, so "
            "nothing is rehearsed; check it out, and leave --head out"
        )
    # With manifests, nothing that the repository has is run.
    project = IMPORT_ROOT if touching.manifests else folder
    if not (project / "karpstack" / "__main__.py").is_file():
        raise StacksError(
            f"--project {project}: is no copy of karpstack, whose program and policies the pull request's stacks "
            "would have, so nothing is rehearsed; compare its stack files there, one stack at a time: "
            f"karpstack whatif STACK --project {shlex.quote(str(project))} --base {changed.base[:12]}"
        )
    if not whatif:
        touched = [replace(one, whatif="off") for one in touched]
    values = {name: value for name, value in (passed_on or {}).items() if value}
    if touching.manifests:
        manifests.check_kept(folder, changed, touched, values)
        manifests.check_results(folder, changed.head, results)
    question = Question(
        project,
        changed.base,
        results.resolve(),
        {name: Path(values[name]).resolve() for name in ENDINGS if name in values},
        [part for name, value in values.items() if name not in ENDINGS for part in (f"--{name}", value)],
    )
    outcomes = rehearse_all(question, touched)
    for one in outcomes:
        _write_log(f"{one.stack}: review {one.review}; what-if {one.whatif}")
    return outcome.code(outcomes)


@reported(_CODES, _print_error)
def comment(
    results: Path = RESULTS,
    printed: str = "",
    *,
    number: int | None = None,
    author: str = AUTHOR,
    name: str = NAME,
    patience: float = PATIENCE,
) -> int:
    """Write the results into one comment on the pull request.

    Args:
        results: Folder of the results.
        printed: What `stacks` printed: one of these stacks of which nothing came is told as failed.
        number: The pull request; the event's if None.
        author: Login of whose token it is.
        name: Of the comment: each name has one of its own.
        patience: Seconds for which GitHub may make the command wait in all.
    """
    from .comment import post
    from .github import GitHub, GitHubError, NoRightsError

    where, told = job(os.environ), _read_outcomes(results, _names(printed))
    if not told and not printed:
        raise JobError(
            f"{shown.value(results)} has no results, and without --stacks it is not known whether there should be "
            "some, so the comment stays as it is; give what `karpstack pull-request stacks` printed, [] for none"
        )
    number = number or where.number
    if number is None:
        raise JobError(
            "the event that started the job is of no pull request, so there is nothing to comment on; run it on "
            "`pull_request`, or give --number"
        )
    said = text.comment(told, commit=where.commit, page=where.page, name=name)
    try:
        url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
        api = GitHub(url, os.environ.get("GITHUB_TOKEN", ""), patience=patience)
        posted = post(api, where.repository, number, said, author=author, create=bool(told))
    except NoRightsError as error:
        _summarise(told, where)
        if where.reads_only:
            _write_log(
                "The token of such a pull request may only read (a fork's, or Dependabot's): see the job's summary."
            )
            return Code.GOOD
        return _unanswered(error)
    except GitHubError as error:
        _summarise(told, where)
        return _unanswered(error)
    if posted is None:
        _write_log("The pull request touches no stack and no NodePools, and there is no comment to change.")
        return Code.GOOD
    _write_log(f"The comment is {'there' if posted.new else 'changed'}.")
    if posted.others:
        _write_log(f"{posted.others} more comments of {author} begin as this one does; they stay as they are.")
    if posted.page:
        print(posted.page)
    else:
        _write_log("GitHub's answer names no usable address of the comment.")
    return Code.GOOD


@reported(_CODES, _print_error)
def summary(results: Path = RESULTS, printed: str = "") -> int:
    """Write the results into the job's summary, or print them."""
    elsewhere = Job("", None, "", reads_only=False, page="")
    where = job(os.environ) if "GITHUB_REPOSITORY" in os.environ else elsewhere
    # Without results, `rehearse` may have been refused: `stacks`, or GitLab's job, says that nothing is touched.
    is_answered = bool(printed) or os.environ.get("CI_JOB_STATUS") == "success"
    _summarise(_read_outcomes(results, _names(printed)), where, is_answered=is_answered)
    return Code.GOOD


def _read_outcomes(results: Path, names: Sequence[str]) -> list[OutcomeTexts]:
    """Return the outcome of each stack; a stack whose job ended early has none."""
    found = outcome.read(results)
    missing = sorted(set(names) - {one.outcome.stack for one in found})
    return sorted(
        [*found, *(OutcomeTexts(Outcome(stack, "failed", "failed"), "", {}) for stack in missing)],
        key=lambda one: one.outcome.stack,
    )


def _names(written: str) -> list[str]:
    try:
        names = json.loads(written or "[]")
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and is_stack_name(name) for name in names):
        raise JobError(
            f"--stacks {shown.value(written)} is no JSON list of names of stacks, as "
            "`karpstack pull-request stacks` prints it"
        )
    return names


def _summarise(told: Sequence[OutcomeTexts], where: Job, *, is_answered: bool = True) -> None:
    said = text.summary(told, commit=where.commit, page=where.page, is_answered=is_answered)
    if file := os.environ.get(_SUMMARY):
        try:
            with Path(file).open("a", encoding="utf-8") as summary:
                summary.write(said)
        except OSError as error:  # one that comes late names no file
            raise OSError(error.errno, error.strerror, file) from error
    else:
        print(said, end="")


def _explain(touched: Sequence[AffectedStack]) -> None:
    for stack, reason in stacks.reasons(touched).items():
        _write_log(f"{stack}: {reason}")
    if not touched:
        _write_log("No stack and no NodePools are touched.")


def _unanswered(error: Exception) -> int:
    _write_log(f"error: {error}")
    return Code.UNKNOWN


def _write_log(said: str) -> None:
    """Beside what is read by programs; on one line, for GitHub obeys a line that begins with `::`."""
    print(shown.visible(" ".join(said.split())), file=sys.stderr)
