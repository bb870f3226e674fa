"""GitHub's API of comments on loopback, as documented: what GitHub would refuse, it refuses.

https://docs.github.com/en/rest/issues/comments
https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "ours/karpstack"
RENAMED = "ours/old-name"
NUMBER = 7
BOT = "github-actions[bot]"
LONGEST = 65_536
#: Of which each may do something else.
WRITES, READS, SEES_NOTHING = "ghs_CANARYwrites", "ghs_CANARYreads", "ghs_CANARYnothing"
_DOCUMENTATION = "https://docs.github.com/rest/issues/comments"


@dataclass(frozen=True)
class Trouble:
    """An answer instead of the one that is due.

    Attributes:
        status: 0 closes the connection without an answer.
        headers: Of the answer.
        message: GitHub's.
        method: What it is the answer to.
        wait: Seconds in which no other request may come.
        done: Whether what was asked is done all the same.
        content: The answer itself, instead of a message.
        lasts: Seconds until the answer comes.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    method: str = "GET"
    wait: float = 0
    done: bool = False
    content: Any = None
    lasts: float = 0


@dataclass
class GitHubServer:
    """One repository with one pull request.

    Attributes:
        comments: On the pull request, oldest first.
        troubles: What comes before anything else, in turn.
        requests: What was asked: method and path.
        impatient: Requests that came before they might.
        passed: Seconds by which the tests' clock is ahead, as nobody sleeps there.
        parrot: Whether a refusal repeats the token, as a bad proxy does.
    """

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    impatient: int = 0
    passed: float = 0
    parrot: bool = False
    _not_before: float = 0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.passed += seconds

    def add(self, body: str, login: str = BOT) -> dict[str, Any]:
        """A comment of somebody's."""
        number = 1000 + len(self.comments)
        page = f"https://github.com/{REPOSITORY}/pull/{NUMBER}#issuecomment-{number}"
        comment = {"id": number, "body": body, "html_url": page, "user": {"login": login}}
        self.comments.append(comment)
        return comment

    def turned_away(self, method: str) -> Trouble | None:
        """The trouble that this request meets."""
        now = time.monotonic() + self.passed
        if now < self._not_before:
            self.impatient += 1
        if self.troubles and self.troubles[0].method == method:
            trouble = self.troubles.pop(0)
            self._not_before = now + trouble.wait
            return trouble
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    github: GitHubServer

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the tests look at `requests`."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def _serve(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.github.requests.append(f"{self.command} {self.path}")
        trouble = self.github.turned_away(self.command)
        if trouble is None:
            return self._answer(*self._due(sent))
        if trouble.done:
            self._due(sent)
        if trouble.status == 0:
            self.close_connection = True
            return None
        time.sleep(trouble.lasts)
        content = {"message": trouble.message} if trouble.content is None else trouble.content
        return self._answer(trouble.status, content, trouble.headers)

    def _due(self, content: bytes) -> tuple[int, Any, dict[str, str]]:
        refused = self._refused()
        if refused:
            return refused
        url = urlsplit(self.path)
        if url.path.startswith(f"/repos/{RENAMED}/"):
            there = f"{self.github.url}/repos/{REPOSITORY}/{url.path.removeprefix(f'/repos/{RENAMED}/')}?{url.query}"
            return (301 if self.command == "GET" else 307), {"message": "Moved"}, {"Location": there.rstrip("?")}
        listed = {f"/repos/{REPOSITORY}/issues/{NUMBER}/comments", f"/repositories/1/issues/{NUMBER}/comments"}
        one = re.fullmatch(f"/repos/{REPOSITORY}/issues/comments/([0-9]+)", url.path)
        if self.command == "GET" and url.path in listed:
            return self._page(parse_qs(url.query))
        if self.command == "POST" and url.path in listed:
            return self._written(content, None)
        found = [comment for comment in self.github.comments if one and comment["id"] == int(one[1])]
        if self.command == "PATCH" and found:
            return self._written(content, found[0])
        return 404, {"message": "Not Found", "documentation_url": _DOCUMENTATION}, {}

    def _refused(self) -> tuple[int, Any, dict[str, str]] | None:
        if not self.headers.get("User-Agent"):
            return 403, {"message": "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"}, {}  # fmt: skip # noqa: E501
        if self.headers.get("Accept") not in ("application/vnd.github+json", "application/json"):
            return 415, {"message": "Unsupported 'Accept' header: Must accept 'application/json'."}, {}
        if self.headers.get("X-GitHub-Api-Version", "2022-11-28") != "2022-11-28":
            return 400, {"message": "Not a supported version"}, {}
        given = self.headers.get("Authorization", "")
        if given not in [f"Bearer {token}" for token in (WRITES, READS, SEES_NOTHING)]:
            return 401, {"message": f"Bad credentials {given if self.github.parrot else ''}"}, {}
        if given.endswith(SEES_NOTHING):
            return 404, {"message": f"Not Found {given if self.github.parrot else ''}"}, {}
        if given.endswith(READS) and self.command != "GET":
            permissions = {"X-Accepted-GitHub-Permissions": "issues=write; pull_requests=write"}
            return 403, {"message": "Resource not accessible by integration"}, permissions
        return None

    def _page(self, query: dict[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
        size, page = (int(query.get(key, [default])[0]) for key, default in (("per_page", "30"), ("page", "1")))
        size = min(size, 100)
        comments = self.github.comments[(page - 1) * size : page * size]
        if page * size >= len(self.github.comments):
            return 200, comments, {}
        last = -(-len(self.github.comments) // size)
        links = [
            f'<{self.github.url}/repositories/1/issues/{NUMBER}/comments?per_page={size}&page={number}>; rel="{name}"'
            for name, number in (("prev", page - 1), ("next", page + 1), ("last", last))
            if number
        ]
        return 200, comments, {"Link": ", ".join(links)}

    def _written(self, content: bytes, comment: dict[str, Any] | None) -> tuple[int, Any, dict[str, str]]:
        try:
            body = json.loads(content)["body"]
        except (ValueError, KeyError, TypeError):
            return 400, {"message": "Problems parsing JSON"}, {}
        if not isinstance(body, str) or len(body) > LONGEST:
            error = {
                "resource": "IssueComment",
                "code": "unprocessable",
                "field": "data",
                "message": f"Body is too long (maximum is {LONGEST} characters)",
            }
            return 422, {"message": "Validation Failed", "errors": [error]}, {}
        if comment is None:
            return 201, self.github.add(body), {}
        comment["body"] = body
        return 200, comment, {}

    def _answer(self, status: int, content: Any, headers: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served() -> Iterator[GitHubServer]:
    """GitHub, until the end of the block."""
    github = GitHubServer()
    handler = type("Handler", (_Handler,), {"github": github})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
