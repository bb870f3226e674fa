"""What a job knows about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pull_request.job import JobError, job

OURS = {"repo": {"full_name": "ours/karpstack"}, "sha": "abc"}
THEIRS = {"repo": {"full_name": "theirs/karpstack"}, "sha": "abc"}


def environment(tmp_path: Path, event: Any = None, **more: str) -> dict[str, str]:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    return {"GITHUB_REPOSITORY": "ours/karpstack", "GITHUB_EVENT_PATH": str(path), **more}


@pytest.mark.parametrize(
    ("head", "actor", "reads_only"),
    [
        (OURS, "mona", False),
        (THEIRS, "mona", True),
        ({"repo": None, "sha": "abc"}, "mona", True),
        (OURS, "dependabot[bot]", True),
    ],
)
def test_a_fork_and_dependabot_may_only_read(head: Any, actor: str, reads_only: bool, tmp_path: Path) -> None:
    event = {"pull_request": {"number": 7, "head": head, "base": OURS}}
    found = job(environment(tmp_path, event, GITHUB_ACTOR=actor))
    assert (found.number, found.commit, found.reads_only) == (7, "abc", reads_only)


def test_a_push_is_of_no_pull_request(tmp_path: Path) -> None:
    found = job(environment(tmp_path, {"ref": "refs/heads/main"}, GITHUB_SHA="def"))
    assert (found.number, found.commit, found.reads_only, found.page) == (None, "def", False, "")


def test_the_run_has_a_page(tmp_path: Path) -> None:
    found = job(environment(tmp_path, {}, GITHUB_SERVER_URL="https://github.com", GITHUB_RUN_ID="7"))
    assert found.page == "https://github.com/ours/karpstack/actions/runs/7"


@pytest.mark.parametrize("repository", ["", "karpstack", "a/b/c", "a/b?x=", "../b c"])
def test_a_repository_that_is_none_is_refused(repository: str) -> None:
    with pytest.raises(JobError, match=r"GITHUB_REPOSITORY is .* no owner/name"):
        job({"GITHUB_REPOSITORY": repository})


def test_an_event_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("{")
    with pytest.raises(JobError, match=r"GITHUB_EVENT_PATH .* give --number"):
        job({"GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
