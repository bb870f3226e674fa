"""What GitHub tells a job about itself: in its environment, and in the event that started it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
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
    pull_request = _event(environment).get("pull_request")
    known = pull_request if isinstance(pull_request, dict) else {}
    number = known.get("number")
    head = known.get("head") if isinstance(known.get("head"), dict) else {}
    return Job(
        repository,
        number if isinstance(number, int) else None,
        str((head or {}).get("sha") or environment.get("GITHUB_SHA", "")),
        bool(known) and (_is_fork(known) or environment.get("GITHUB_ACTOR") == _DEPENDABOT),
        _page(environment, repository),
    )


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise JobError(
            f"GITHUB_EVENT_PATH {path!r} cannot be read ({error}), so the pull request is not known; in a workflow "
            "GitHub writes it, elsewhere unset it and give --number"
        ) from error
    return found if isinstance(found, dict) else {}


def _is_fork(pull_request: Mapping[str, Any]) -> bool:
    """A head without a repository is of a fork that was deleted."""
    head, base = (((pull_request.get(side) or {}).get("repo") or {}).get("full_name") for side in ("head", "base"))
    return head is None or head != base


def _page(environment: Mapping[str, str], repository: str) -> str:
    server, run = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_RUN_ID", "")
    return f"{server}/{repository}/actions/runs/{run}" if server.startswith("https://") and run.isdigit() else ""
