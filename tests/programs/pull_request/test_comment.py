"""One comment on a pull request, by an API that refuses what GitHub's refuses."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from karpstack.pull_request import outcome
from karpstack.pull_request.comment import post
from karpstack.pull_request.github import GitHub, GitHubError, NoRightsError, UnclearError
from karpstack.pull_request.outcome import Outcome
from karpstack.pull_request.text import LONGEST_COMMENT, marker
from tests.programs.pull_request.github_server import (
    BOT,
    NUMBER,
    READS,
    RENAMED,
    REPOSITORY,
    SEES_NOTHING,
    WRITES,
    GitHubServer,
    Trouble,
    served,
)

ROOT = Path(__file__).resolve().parents[3]
LIST = f"GET /repos/{REPOSITORY}/issues/{NUMBER}/comments?per_page=100"
CREATE = f"POST /repos/{REPOSITORY}/issues/{NUMBER}/comments"
TEXT = f"{marker()}\nnow"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with served() as server:
        yield server


def api(github: GitHubServer, token: str = WRITES, patience: float = 900.0) -> GitHub:
    return GitHub(github.url, token, patience=patience, sleep=github.sleep)


def posted(github: GitHubServer, repository: str = REPOSITORY, **more: Any) -> Any:
    return post(api(github), repository, NUMBER, TEXT, author=BOT, **more)


def test_the_first_time_it_is_made_and_then_it_is_changed(github: GitHubServer) -> None:
    github.add("Looks good to me", "mona")
    first = post(api(github), REPOSITORY, NUMBER, f"{marker()}\nbefore", author=BOT)
    second = posted(github)
    assert first
    assert (first.new, second.new, second.others) == (True, False, 0)
    assert first.page == second.page == github.comments[1]["html_url"]
    assert [comment["body"] for comment in github.comments] == ["Looks good to me", TEXT]
    assert github.requests == [LIST, CREATE, LIST, f"PATCH /repos/{REPOSITORY}/issues/comments/1001"]


@pytest.mark.parametrize("before", [0, 99, 100, 101, 250])
def test_it_is_found_behind_any_number_of_others(before: int, github: GitHubServer) -> None:
    for _ in range(before):
        github.add("and another thing", "mona")
    github.add(f"{marker()}\nbefore")
    assert not posted(github).new
    assert github.comments[before]["body"] == TEXT
    assert len(github.comments) == before + 1


@pytest.mark.parametrize(
    ("body", "login"),
    [
        (f"{marker()}\nedit me", "mona"),
        (f"{marker()}\nedit me", "github-actions"),
        (f"> {marker()}\n> before\n\nindeed", BOT),
        (f"about {marker()}", BOT),
        ("", BOT),
    ],
)
def test_somebody_elses_comment_stays_whatever_it_begins_with(body: str, login: str, github: GitHubServer) -> None:
    github.add(body, login)
    assert posted(github).new
    assert [comment["body"] for comment in github.comments] == [body, TEXT]


def test_a_comment_of_a_user_who_is_gone_is_passed_over(github: GitHubServer) -> None:
    github.add(f"{marker()}\nbefore")["user"] = None
    assert posted(github).new


def test_of_two_of_ours_the_older_is_changed_and_the_other_is_told_of(github: GitHubServer) -> None:
    github.add(f"{marker()}\none")
    github.add(f"{marker()}\ntwo")
    assert posted(github).others == 1
    assert [comment["body"] for comment in github.comments] == [TEXT, f"{marker()}\ntwo"]


def test_two_jobs_of_a_pull_request_have_a_comment_each(github: GitHubServer, tmp_path: Path) -> None:
    """Such as one for each group of clusters: the second hid what the first refused."""
    folder = results(tmp_path, "eks")
    for name in ("prod --> <clusters>", "rehearsal", "prod --> <clusters>", "rehearsal"):
        assert run(github, tmp_path, folder, WRITES, REPOSITORY, "--name", name).returncode == 0
    named, plain = (comment["body"] for comment in github.comments)
    assert named.splitlines()[:4] == [
        "<!-- karpstack: the rehearsal of this pull request: prod%20--%3E%20%3Cclusters%3E -->",
        "**prod --&#62; &#60;clusters&#62;**",
        "",
        "## Rehearsed: nothing is in the way",
    ]
    assert plain.startswith(f"{marker()}\n## Rehearsed")


def test_where_nothing_is_to_be_said_none_is_made(github: GitHubServer) -> None:
    assert posted(github, create=False) is None
    assert github.comments == []
    github.add(f"{marker()}\nbefore")
    assert posted(github, create=False)
    assert github.comments[0]["body"] == TEXT


def test_a_repository_with_a_new_name_is_followed(github: GitHubServer) -> None:
    assert posted(github, RENAMED).new
    assert not posted(github, RENAMED).new
    assert len(github.comments) == 1


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize(
    ("trouble", "waited"),
    [
        (Trouble(403, {"Retry-After": "30"}, "You have exceeded a secondary rate limit", wait=30), 30),
        (Trouble(429, {"Retry-After": "7"}, "Too many requests", wait=7), 7),
        (Trouble(403, {}, "You have exceeded a secondary rate limit. Please wait a few minutes", wait=60), 60),
        (Trouble(429, {}, "Too many requests", wait=60), 60),
        (Trouble(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "{reset}"}, "API rate limit", wait=119), 120),
        (Trouble(403, {"X-RateLimit-Remaining": "0"}, "API rate limit exceeded", wait=60), 60),
    ],
)
def test_a_limit_is_waited_for(trouble: Trouble, waited: float, method: str, github: GitHubServer) -> None:
    if method == "PATCH":
        github.add(f"{marker()}\nbefore")
    headers = {name: value.format(reset=int(time.time()) + 120) for name, value in trouble.headers.items()}
    github.troubles = [Trouble(trouble.status, headers, trouble.message, method, trouble.wait)]
    posted(github)
    assert [comment["body"] for comment in github.comments] == [TEXT]
    assert github.troubles == []
    assert github.impatient == 0
    assert waited - 1 <= github.passed <= waited + 2


def test_a_secondary_limit_that_lasts_is_waited_for_longer_each_time(github: GitHubServer) -> None:
    limit = "You have exceeded a secondary rate limit"
    github.troubles = [Trouble(403, {}, limit, wait=seconds) for seconds in (60, 120, 240)]
    posted(github)
    assert (github.impatient, github.passed) == (0, 420)


def test_patience_ends(github: GitHubServer) -> None:
    github.troubles = [Trouble(403, {"Retry-After": "3600"}, "You have exceeded a secondary rate limit")]
    with pytest.raises(GitHubError, match=r"3600 s more of patience and 900 s are left of --patience"):
        posted(github)
    assert (github.passed, github.comments) == (0, [])


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Trouble(502, {}, "Server Error"), "GitHub failed at GET .*: 502 Server Error"),
        (Trouble(0), "GitHub cannot be reached: .*"),
        (Trouble(429, {}, "Slow down"), "GitHub refuses GET .*: 429 Slow down"),
        (Trouble(502, {}, "Server Error", method="POST"), "GitHub failed at POST .*: 502 Server Error"),
        (Trouble(201, {"Content-Encoding": "gzip"}, method="POST"), "GitHub .*"),
    ],
)
def test_where_patience_ends_the_last_failure_is_named(trouble: Trouble, said: str, github: GitHubServer) -> None:
    github.troubles = [trouble] * 5
    with pytest.raises(GitHubError, match=rf"{said}\. The next attempt needs \d+ s more of patience and 0 s are left"):
        post(api(github, patience=0.5), REPOSITORY, NUMBER, TEXT, author=BOT)


def test_and_so_do_attempts(github: GitHubServer) -> None:
    github.troubles = [Trouble(502, {}, "Server Error")] * 20
    with pytest.raises(UnclearError, match=r"GitHub failed at GET .*: 502 Server Error"):
        posted(github)
    assert len(github.troubles) == 14


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize("status", [0, 500, 502, 503])
@pytest.mark.parametrize("done", [True, False])
def test_after_a_failure_there_is_one_comment_done_or_not(
    status: int, method: str, done: bool, github: GitHubServer
) -> None:
    if method == "PATCH":
        github.add(f"{marker()}\nbefore")
    github.troubles = [Trouble(status, {}, "Server Error", method, done=done)] * 2
    posted(github)
    assert [comment["body"] for comment in github.comments] == [TEXT]


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (READS, r"GitHub refuses POST .*: 403 Resource not accessible by integration.*pull-requests: write"),
        (SEES_NOTHING, r"GitHub refuses GET .*: 404 Not Found.*pull-requests: write"),
        ("ghs_CANARYexpired", r"GitHub refuses GET .*: 401 Bad credentials.*pull-requests: write"),
    ],
)
def test_a_token_without_rights_is_told_which(token: str, said: str, github: GitHubServer) -> None:
    with pytest.raises(NoRightsError, match=said):
        post(api(github, token), REPOSITORY, NUMBER, TEXT, author=BOT)
    assert (github.comments, github.passed) == ([], 0)


def test_what_github_finds_wrong_is_told(github: GitHubServer) -> None:
    with pytest.raises(GitHubError, match=r"422 Validation Failed: Body is too long \(maximum is 65536 characters\)"):
        post(api(github), REPOSITORY, NUMBER, "x" * (LONGEST_COMMENT + 1), author=BOT)


def test_a_page_of_another_server_is_not_asked_for(github: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(101):
        github.add("and another thing", "mona")
    client = api(github)
    github.url = "http://localhost:1"  # which the links have from now on
    with pytest.raises(GitHubError, match=r"another server for the next page"):
        post(client, REPOSITORY, NUMBER, TEXT, author=BOT)


def test_a_page_of_more_than_was_asked_for_is_not_read(github: GitHubServer) -> None:
    github.troubles = [Trouble(200, content=[{}] * 101)]
    with pytest.raises(GitHubError, match="lists 101 comments on a page of 100"):
        post(api(github), REPOSITORY, NUMBER, TEXT, author=BOT)


@pytest.mark.parametrize(
    "url",
    [
        *("http://api.github.com", "ftp://api.github.com", "api.github.com", ""),
        *("http://[::1", "https://[::1", "https://", "https://u:CANARY@a:99999", "https://CANARY:CANARY@[::zz]"),
    ],
)
def test_the_token_does_not_go_over_the_network_as_it_is(url: str) -> None:
    with pytest.raises(GitHubError, match=r"GITHUB_API_URL .* not encrypted") as refused:
        GitHub(url, WRITES)
    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize("token", ["", " ", "ghs_CANARY\nX-Evil: 1", "ghs_CANARY\x00", "ghs_CANARYé"])
def test_what_no_header_can_hold_is_refused_unseen(token: str) -> None:
    with pytest.raises(GitHubError, match=r"GITHUB_TOKEN is (not set|no token)") as refused:
        GitHub("https://api.github.com", token)
    assert "CANARY" not in str(refused.value)


def test_without_a_server_it_ends_with_an_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        waits: list[float] = []
        with pytest.raises(UnclearError, match=r"GitHub cannot be reached") as failed:
            post(GitHub(url, WRITES, sleep=waits.append), REPOSITORY, NUMBER, TEXT, author=BOT)
    assert waits == [1, 2, 4, 8, 16]
    assert "CANARY" not in str(failed.value)


@pytest.mark.parametrize(
    ("headers", "content", "said"),
    [
        ({"Link": '<{url}/a>; rel="next"'}, [], r"more than 100 pages"),
        ({"Link": '<http://[>; rel="next"'}, [], r"another server for the next page"),
        ({}, [1, 2, None], r"no list of objects"),
        ({}, {"a": 1}, r"no list of objects"),
        ({}, [{"body": TEXT, "user": {"login": BOT}}], r"without an id"),
    ],
)
def test_a_list_that_github_would_not_send_is_an_error(
    headers: dict[str, str], content: Any, said: str, github: GitHubServer
) -> None:
    headers = {name: value.format(url=github.url) for name, value in headers.items()}
    github.troubles = [Trouble(200, headers, content=content)] * 101
    with pytest.raises(GitHubError, match=said):
        posted(github)
    assert github.comments == []


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("location", ["http://[::1/x", "http://[::zz]/x"])
def test_a_redirect_to_what_is_no_address_is_an_error(location: str, method: str, github: GitHubServer) -> None:
    github.troubles = [Trouble(307, {"Location": location}, method=method)] * 3
    with pytest.raises(UnclearError, match=rf"no usable answer to {method}: the answer cannot be read"):
        posted(github)
    assert github.comments == []


@pytest.mark.parametrize("headers", [{"Retry-After": "²"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "²"}])
def test_a_wait_that_is_no_number_is_not_believed(headers: dict[str, str], github: GitHubServer) -> None:
    github.troubles = [Trouble(429, headers)]
    assert posted(github).new
    assert github.passed == 60


def test_a_user_that_is_text_is_nobody(github: GitHubServer) -> None:
    github.add(TEXT)["user"] = BOT
    assert posted(github).new


def test_answers_take_patience_too(github: GitHubServer) -> None:
    github.troubles = [Trouble(200, {}, content=[], lasts=5)]
    started = time.monotonic()
    with pytest.raises(UnclearError, match=r"takes longer than 0\.3"):
        post(api(github, patience=0.3), REPOSITORY, NUMBER, TEXT, author=BOT)
    github.troubles = [Trouble(200, {"Link": f'<{github.url}/a>; rel="next"'}, content=[], lasts=0.2)] * 10
    with pytest.raises(UnclearError, match=r"takes longer than 0\.|took all of --patience"):
        post(api(github, patience=0.5), REPOSITORY, NUMBER, TEXT, author=BOT)
    assert time.monotonic() - started < 4


def test_an_answer_that_takes_all_patience_is_the_last(github: GitHubServer) -> None:
    with pytest.raises(UnclearError, match=r"GET: the answers before it took all of --patience$"):
        post(api(github, patience=0), REPOSITORY, NUMBER, TEXT, author=BOT)
    assert github.requests == []


# The stand-in refuses what it has to refuse.


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("User-Agent", "", 403),
        ("Accept", "text/html", 415),
        ("X-GitHub-Api-Version", "2019-01-01", 400),
        ("Authorization", "", 401),
    ],
)
def test_the_server_refuses_as_github_does(header: str, value: str, status: int, github: GitHubServer) -> None:
    headers = {"User-Agent": "x", "Accept": "application/vnd.github+json", "Authorization": f"Bearer {WRITES}"}
    url = f"{github.url}/repos/{REPOSITORY}/issues/{NUMBER}/comments"
    assert urllib3.request("GET", url, headers=headers).status == 200
    assert urllib3.request("GET", url, headers={**headers, header: value}).status == status
    assert urllib3.request("GET", f"{url}/", headers=headers).status == 404


# The command.


def results(tmp_path: Path, *stacks: str, review: str = "## The review\n") -> Path:
    folder = tmp_path / "results"
    for stack in stacks:
        outcome.write(Outcome(stack, "passed", "within limits"), folder / stack)
        for file, text in (("review/review.md", review), ("whatif/working-tree/whatif.md", "## The answer\n")):
            (folder / stack / file).parent.mkdir(parents=True)
            (folder / stack / file).write_text(text)
    return folder


def event(tmp_path: Path, head: str = REPOSITORY) -> Path:
    sides = {
        side: {"repo": {"full_name": name}, "sha": "a" * 40} for side, name in (("head", head), ("base", REPOSITORY))
    }
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"pull_request": {"number": NUMBER, **sides}}))
    return path


def run(
    github: GitHubServer, tmp_path: Path, folder: Path, token: str = WRITES, head: str = REPOSITORY, *more: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "karpstack.pull_request", "comment", "--results", str(folder), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "GITHUB_API_URL": github.url,
            "GITHUB_TOKEN": token,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_PATH": str(event(tmp_path, head)),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "42",
        },
    )
    summary = (tmp_path / "summary.md").read_text() if (tmp_path / "summary.md").exists() else ""
    for seen in (done.stdout, done.stderr, summary, *(comment["body"] for comment in github.comments)):
        assert "CANARY" not in seen
    return done


def test_a_name_of_a_folder_begins_no_line_that_github_obeys(github: GitHubServer, tmp_path: Path) -> None:
    folder = results(tmp_path, "eks")
    (folder / "x\n::add-mask::eks").mkdir()
    (folder / "x\n::add-mask::eks" / "outcome.json").write_text("{}")
    done = run(github, tmp_path, folder)
    assert done.returncode == 2
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == ["error:"]


def test_the_command_writes_the_comment_and_prints_its_page(github: GitHubServer, tmp_path: Path) -> None:
    github.troubles = [Trouble(403, {"Retry-After": "1"}, "You have exceeded a secondary rate limit", wait=1)]
    done = run(github, tmp_path, results(tmp_path, "aks-nap", "eks"))
    assert (done.returncode, done.stderr) == (0, "The comment is there.\n")
    assert done.stdout == f"{github.comments[0]['html_url']}\n"
    assert github.impatient == 0
    said = github.comments[0]["body"]
    assert said.startswith(f"{marker()}\n## Rehearsed: nothing is in the way\n")
    assert said.count("## The answer") == said.count("## The review") == 2
    assert "https://github.com/ours/karpstack/actions/runs/42" in said
    assert "Of commit aaaaaaaaaaaa." in said
    assert not (tmp_path / "summary.md").exists()


@pytest.mark.parametrize(
    "page",
    [
        "::error file=x::pwned\n::add-mask::e\n\x1b[2J\u202e",
        *("https://a/\n::error::pwned", "https://a/\x1b[2J", "https://a/\u202e", "javascript:alert(1)"),
        *("http://github.com/a", "https://[::1/a", "https:///a", "https://a:99999/", f"https://a/{WRITES}\n", None),
    ],
)
def test_an_address_that_is_none_is_not_printed(page: object, github: GitHubServer, tmp_path: Path) -> None:
    content = {"id": 1000, "html_url": page}
    github.troubles = [Trouble(201, {}, method="POST", done=True, content=content)]
    done = run(github, tmp_path, results(tmp_path, "eks"))
    assert (done.returncode, done.stdout, len(github.comments)) == (0, "", 1)
    assert "The comment is there.\nGitHub's answer names no usable address of the comment" in done.stderr


@pytest.mark.parametrize("page", ["http://127.0.0.1:1/a#b", f"https://a/{WRITES}", "https://a/##[error]b"])
def test_an_address_is_printed_without_the_token_and_without_commands(
    page: str, github: GitHubServer, tmp_path: Path
) -> None:
    github.troubles = [Trouble(201, {}, method="POST", content={"html_url": page})]
    done = run(github, tmp_path, results(tmp_path, "eks"))
    shown = page.replace(WRITES, "***").replace("##[", r"##\x5b")
    assert (done.returncode, done.stdout) == (0, f"{shown}\n")


def test_what_is_too_long_is_shortened_and_taken(github: GitHubServer, tmp_path: Path) -> None:
    done = run(github, tmp_path, results(tmp_path, "eks", review="a row\n\n" * 20_000))
    assert done.returncode == 0
    assert "**Shortened: of Review of eks, " in github.comments[0]["body"]


def test_of_a_fork_the_summary_tells_and_nothing_fails(github: GitHubServer, tmp_path: Path) -> None:
    done = run(github, tmp_path, results(tmp_path, "eks"), READS, "theirs/karpstack")
    assert (done.returncode, done.stdout, github.comments) == (0, "", [])
    assert "may only read" in done.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "## The answer" in summary
    assert marker() not in summary


def test_a_fork_whose_token_may_write_gets_its_comment(github: GitHubServer, tmp_path: Path) -> None:
    assert run(github, tmp_path, results(tmp_path, "eks"), WRITES, "theirs/karpstack").returncode == 0
    assert len(github.comments) == 1


def test_where_the_permission_is_missing_it_fails_and_the_summary_tells(github: GitHubServer, tmp_path: Path) -> None:
    done = run(github, tmp_path, results(tmp_path, "eks"), READS)
    assert done.returncode == 3
    assert "permissions: pull-requests: write" in done.stderr
    assert "## The answer" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("token", [SEES_NOTHING, "ghs_CANARYexpired", "ghs_CANARY\r\nX: y"])
def test_the_token_is_in_no_error_even_where_the_server_repeats_it(
    token: str, github: GitHubServer, tmp_path: Path
) -> None:
    github.parrot = True
    done = run(github, tmp_path, results(tmp_path, "eks"), token)
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")


def test_a_pull_request_that_touches_nothing_changes_what_stands_and_makes_nothing(
    github: GitHubServer, tmp_path: Path
) -> None:
    assert run(github, tmp_path, tmp_path / "none", WRITES, REPOSITORY, "--stacks=[]").returncode == 0
    assert github.comments == []
    github.add(f"{marker()}\nbefore")
    assert run(github, tmp_path, tmp_path / "none", WRITES, REPOSITORY, "--stacks=[]").returncode == 0
    assert "touches no stack" in github.comments[0]["body"]


def test_without_results_the_comment_stays_unless_the_stacks_are_told(github: GitHubServer, tmp_path: Path) -> None:
    """With a misspelt folder, the refusal of an earlier push was replaced by "touches no stack"."""
    github.add(f"{marker()}\nbefore")
    done = run(github, tmp_path, tmp_path / "none")
    assert done.returncode == 2
    assert "has no results, and without --stacks" in done.stderr
    assert github.comments[0]["body"].endswith("before")


def test_the_number_can_be_given(github: GitHubServer, tmp_path: Path) -> None:
    done = run(github, tmp_path, results(tmp_path, "eks"), WRITES, REPOSITORY, "--number", "8")
    assert done.returncode == 3
    assert "404 Not Found" in done.stderr
