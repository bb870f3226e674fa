"""What a job knows about itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from karpstack.pull_request.job import JobError, job
from karpstack.pull_request.outcome import Outcome, OutcomeTexts
from karpstack.pull_request.text import comment
from karpstack.text.shown import visible
from tests.mutations import mutations, taken

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


@pytest.mark.parametrize("number", [True, "7", 7.5, 0, -1, None])
def test_what_is_no_number_of_a_pull_request_is_none(number: object, tmp_path: Path) -> None:
    assert job(environment(tmp_path, {"pull_request": {"number": number}})).number is None


def test_a_push_is_of_no_pull_request(tmp_path: Path) -> None:
    found = job(environment(tmp_path, {"ref": "refs/heads/main"}, GITHUB_SHA="def"))
    assert (found.number, found.commit, found.reads_only, found.page) == (None, "def", False, "")


def test_the_run_has_a_page(tmp_path: Path) -> None:
    found = job(environment(tmp_path, {}, GITHUB_SERVER_URL="https://github.com", GITHUB_RUN_ID="7"))
    assert found.page == "https://github.com/ours/karpstack/actions/runs/7"


@pytest.mark.parametrize("repository", ["", "karpstack", "a/b/c", "a/b?x=", "../b c", "../..", "a/..", "./b"])
def test_a_repository_that_is_none_is_refused(repository: str) -> None:
    with pytest.raises(JobError, match=r"GITHUB_REPOSITORY is .* no owner/name"):
        job({"GITHUB_REPOSITORY": repository})


def test_an_event_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text("{")
    with pytest.raises(JobError, match=r"GITHUB_EVENT_PATH .* give --number"):
        job({"GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})


EVENT = {
    "action": "synchronize",
    "pull_request": {
        "number": 7,
        "title": "${{ secrets.GITHUB_TOKEN }} $(id) \x1b[2J @everyone",
        "labels": [{"name": "x" * 255}, {"name": "`id`"}],
        "head": {"ref": "b" * 255, "repo": {"full_name": "ours/karpstack"}, "sha": "a" * 40},
        "base": {"ref": "main", "repo": {"full_name": "ours/karpstack"}, "sha": "b" * 40},
    },
}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mutations(EVENT))
def test_whatever_an_event_holds_the_comment_has_nothing_of_it_but_a_number_and_a_commit(event: Any) -> None:
    with TemporaryDirectory() as folder:
        found = taken(lambda: job(environment(Path(folder), event)), JobError, names="GITHUB_EVENT_PATH")
    if found is None:
        return
    assert found.number is None or found.number > 0
    assert re.fullmatch("[0-9a-f]*", found.commit)
    said = comment([OutcomeTexts(Outcome("eks", "passed", "off"), "", {})], commit=found.commit, page=found.page)
    assert visible(said) == said
    assert not re.search(r"secrets|everyone|script|\$\(", said)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "[" + "{}," * 1_000_000 + "{}]", '{"a": 1, "a": 2}', "NaN"], ids=lambda it: it[:9]
)
def test_an_event_that_no_server_sends_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(content)
    with pytest.raises(JobError, match="cannot be read"):
        job({"GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")})
