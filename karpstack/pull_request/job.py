"""What GitHub tells a job about itself: in its environment, and in the event that started it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karpstack.text import json_file

_REPOSITORY: Final = re.compile(r"(?!\.\.?/)[A-Za-z0-9_.-]+/(?!\.\.?$)[A-Za-z0-9_.-]+")
_COMMIT: Final = re.compile(r"[0-9a-f]{1,64}")
# Of an event; GitHub's have at most 25 MB. https://docs.github.com/webhooks/webhook-events-and-payloads
_MOST, _DEPTH, _VALUES = 25 * 2**20, 100, 1_000_000
_DEPENDABOT: Final = "dependabot[bot]"


class JobError(ValueError):
    """Something that a job is told is missing; the text names the variable."""


@dataclass(frozen=True)
class Job:
    """A job of a workflow.

    Attributes:
        repository: `owner/name`.
        number: Of the pull request; None where the job is for none.
        commit: The newest commit of the pull request, or what is checked out; empty where it is not known.
        reads_only: Whether GitHub gives such a job a token that cannot write, whatever its permissions say: for a
            pull request from a fork, and for Dependabot's.
        page: Address of the workflow's run; empty where it is not known.
    """

    repository: str
    number: int | None
    commit: str
    reads_only: bool
    page: str


def job(environment: Mapping[str, str]) -> Job:
    """The job of this environment.

    Raises:
        JobError: There is no repository, or the event cannot be read.
    """
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise JobError(
            f"GITHUB_REPOSITORY is {repository!r} and no owner/name, so there is no pull request to write to; in a "
            "workflow GitHub sets it, elsewhere set it yourself"
        )
    known = _inner(_event(environment), "pull_request")
    number = known.get("number")
    commit = str(_inner(known, "head").get("sha") or environment.get("GITHUB_SHA", ""))
    return Job(
        repository,
        number if isinstance(number, int) and number is not True and number > 0 else None,
        commit if _COMMIT.fullmatch(commit) else "",
        bool(known) and (_is_fork(known) or environment.get("GITHUB_ACTOR") == _DEPENDABOT),
        _page(environment, repository),
    )


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        found = json_file.read(Path(path), most=_MOST, depth=_DEPTH, values=_VALUES)
    except json_file.FileError as error:
        raise JobError(
            f"GITHUB_EVENT_PATH {path!r} cannot be read ({error}), so the pull request is not known; in a workflow "
            "GitHub writes it, elsewhere unset it and give --number"
        ) from error
    return found if isinstance(found, dict) else {}


def _is_fork(pull_request: Mapping[str, Any]) -> bool:
    """A head without a repository is of a fork that was deleted."""
    head, base = (_inner(_inner(pull_request, side), "repo").get("full_name") for side in ("head", "base"))
    return head is None or head != base


def _inner(outer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object in an object; an empty one where there is none."""
    found = outer.get(key)
    return found if isinstance(found, dict) else {}


def _page(environment: Mapping[str, str], repository: str) -> str:
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    return f"{server}/{repository}/actions/runs/{run}" if server.startswith("https://") and run.isdigit() else ""
