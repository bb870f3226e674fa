"""GitHub's REST API, as far as comments need it.

https://docs.github.com/en/rest/issues/comments, and of limits and errors
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from karpstack.text import answers
from karpstack.text.answers import AnswerError
from karpstack.text.pools import pool_for
from karpstack.text.proxies import ProxyError, is_loopback
from karpstack.text.shown import visible

_HEADERS: Final = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "karpstack",
    "X-GitHub-Api-Version": "2022-11-28",
}
#: Connections; what GitHub answers is for us to judge.
_RETRIES: Final = urllib3.Retry(total=None, connect=3, redirect=False, read=False, status=False, other=False)
_MOVED: Final = (301, 302, 307, 308)
_REDIRECTS: Final = 3
_TIMEOUT: Final = urllib3.Timeout(connect=30.0, read=30.0)
_ATTEMPTS: Final = 6
#: A pull request has at most 2,500 comments.
_PAGES: Final = 100
_PER_PAGE: Final = 100
#: At least, where a secondary limit does not say how long; doubled each time.
_SECONDARY_SECONDS: Final = 60.0
_NEXT: Final = re.compile(r'<([^<>]*)>; rel="next"')
_LONGEST_MESSAGE: Final = 300
#: What a header can hold; the error of the library for anything else would have the token in it.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_ADDRESS: Final = re.compile(r"[\x21-\x7e]+")
_Value = TypeVar("_Value")


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class GitHubError(Exception):
    """GitHub did not do what was asked; the text says what it answered, and never holds the token."""


class NoRightsError(GitHubError):
    """The token may not do that."""


class UnclearError(GitHubError):
    """Whether something was done is not known: there was no answer, or one of a server that failed."""


class GitHub:
    """The API, called with a token.

    Requests go out one after another. One that GitHub turns away because there were too many is sent again when
    GitHub says so; one that failed at GitHub is sent again where that changes nothing.
    """

    def __init__(
        self, url: str, token: str, *, patience: float = 900.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """The API of a server.

        Args:
            url: Its address: https://api.github.com, or https://HOST/api/v3.
            token: Sent to this address alone.
            patience: Seconds that all answers and waits together may take.
            sleep: Waits some seconds.

        Raises:
            GitHubError: There is no usable token or proxy, or the token would go over the network as it is.
        """
        if not _TOKEN.fullmatch(token):
            raise GitHubError(
                f"GITHUB_TOKEN is {'no token' if token else 'not set'}, so GitHub would not know who writes; in a "
                "workflow: `env: GITHUB_TOKEN: ${{ github.token }}`"
            )
        if not _is_secure(url):
            raise GitHubError(
                f"GITHUB_API_URL {url.rpartition('@')[2]!r} is no address, or not encrypted, so everybody on the way "
                "could read the token; give an address with https://"
            )
        self._url = url.rstrip("/")
        self._token = token
        self._left = patience
        self._sleep = sleep
        try:
            self._pool = pool_for(url, _RETRIES, _TIMEOUT)
        except ProxyError as error:
            raise GitHubError(str(error)) from error

    def pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        """What a path lists, page by page.

        Raises:
            GitHubError: See the class's errors.
        """
        url = f"{self._url}{path}?per_page={_PER_PAGE}"
        for _ in range(_PAGES):
            answer = self._answered("GET", url, None)
            page = self._used(_list, answer)
            if len(page) > _PER_PAGE:
                raise GitHubError(
                    f"GitHub lists {len(page):,} comments on a page of {_PER_PAGE} at most. Nothing is read."
                )
            yield page
            found = _NEXT.search(answer.headers.get("Link", ""))
            if not found:
                return
            url = self._same_server(url, found[1], "the next page")
        raise GitHubError(f"GitHub lists more than {_PAGES} pages of comments, so the rest was not read")

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create (POST) or change (PATCH) something; what it is then.

        Raises:
            NoRightsError: The token may not.
            UnclearError: There was no answer, or one of a server that failed; what was to be created may be there.
            GitHubError: Anything else that GitHub refuses.
        """
        return self._used(answers.parse, self._answered(method, f"{self._url}{path}", body))

    def page(self, item: Mapping[str, Any]) -> str:
        """Return the address of an item's web page, for people; empty if GitHub names none that is secure."""
        url = str(item.get("html_url", ""))
        return self._shown(url) if _ADDRESS.fullmatch(url) and _is_secure(url) else ""

    def pause(self, seconds: float, failure: GitHubError) -> None:
        """Wait before the next attempt.

        Args:
            seconds: How long.
            failure: Why the last attempt failed.

        Raises:
            GitHubError: All waits together would take too long; the text begins with the failure.
        """
        if seconds > self._left:
            raise GitHubError(
                f"{failure}. The next attempt needs {seconds:.0f} s more of patience and {max(0, self._left):.0f} s "
                "are left of --patience, so the command stops; run the job again later, or be more patient"
            ) from failure
        self._left -= seconds
        self._sleep(seconds)

    def _answered(self, method: str, url: str, body: Mapping[str, Any] | None) -> _Answer:
        attempt = redirects = 0
        while True:
            try:
                answer = self._ask(method, url, body)
            except AnswerError as error:
                raise UnclearError(self._shown(f"GitHub gave no usable answer to {method}: {error}")) from error
            except HTTPError as error:
                failure: GitHubError = UnclearError(self._shown(f"GitHub cannot be reached: {error}"))
                wait: float | None = 2.0**attempt
            else:
                if answer.status < 300:
                    return answer
                if answer.status in _MOVED and redirects < _REDIRECTS:
                    redirects += 1
                    url = self._same_server(url, answer.headers.get("Location", ""), "what has moved")
                    continue
                failure, wait = self._failure(method, url, answer), _wait(answer, attempt)
            attempt += 1
            # What was to be created may be there; only who looks can know.
            maybe_done = method == "POST" and isinstance(failure, UnclearError)
            if wait is None or maybe_done or attempt == _ATTEMPTS:
                raise failure
            self.pause(wait, failure)

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> _Answer:
        if self._left <= 0:
            raise AnswerError("the answers before it took all of --patience")
        headers = {**_HEADERS, "Authorization": f"Bearer {self._token}"}
        started = time.monotonic()
        try:
            response, content = answers.read(
                lambda: self._pool.request(method, url, json=body, headers=headers, preload_content=False),
                lambda response: response,
                self._left,
            )
        finally:
            self._left -= time.monotonic() - started
        return _Answer(response.status, response.headers, content)

    def _failure(self, method: str, url: str, answer: _Answer) -> GitHubError:
        said = self._shown(f"{answer.status} {_message(answer)}")
        what = self._shown(f"{method} {urlsplit(url).path}")
        if answer.status >= 500:
            return UnclearError(f"GitHub failed at {what}: {said}")
        if answer.status in (401, 403, 404) and _wait(answer, 0) is None:
            return NoRightsError(f"GitHub refuses {what}: {said}")
        return GitHubError(f"GitHub refuses {what}: {said}")

    def _same_server(self, base: str, url: str, what: str) -> str:
        """Return an address, which may be relative to a base, if the token may go there."""
        try:
            whole = urljoin(base, url)
            is_same = urlsplit(whole)[:2] == urlsplit(self._url)[:2]
        except ValueError:
            is_same = False
        if not is_same:
            raise GitHubError(self._shown(f"GitHub names another server for {what}, {url}: not asked"))
        return whole

    def _used(self, parse: Callable[[bytes], _Value], answer: _Answer) -> _Value:
        try:
            return parse(answer.body)
        except AnswerError as error:
            what = f"GitHub answered {answer.status}, but {error}; is GITHUB_API_URL that of an API?"
            raise GitHubError(self._shown(what)) from error

    def _shown(self, text: str) -> str:
        """A text for people: on one line, not too long, and without the token, even where a server repeats it."""
        flat = visible(" ".join(text.split()))
        return flat.replace(self._token, "***")[:_LONGEST_MESSAGE]


def _is_secure(url: str) -> bool:
    """Whether others on the network cannot read what goes to an address: it has TLS, or is on this machine."""
    try:
        address = urlsplit(url)
        is_address = bool(address.hostname) and address.port != 0
    except ValueError:
        return False
    return is_address and (address.scheme == "https" or (address.scheme == "http" and is_loopback(url)))


def _list(content: bytes) -> list[dict[str, Any]]:
    return list(answers.items({"comments": answers.parse_any(content)}, "comments"))


def _wait(answer: _Answer, attempt: int) -> float | None:
    """Seconds until a request may be sent again; None where that would change nothing."""
    if answer.status >= 500:
        return 2.0**attempt
    if answer.status not in (403, 429):
        return None
    after = answer.headers.get("Retry-After", "")
    if after.isdecimal():
        return float(after)
    if answer.headers.get("X-RateLimit-Remaining") == "0":
        reset = answer.headers.get("X-RateLimit-Reset", "")
        return max(0.0, float(reset) - time.time()) + 1 if reset.isdecimal() else _SECONDARY_SECONDS
    if answer.status == 429 or "secondary rate limit" in _message(answer).lower():
        return _SECONDARY_SECONDS * 2.0**attempt
    return None


def _message(answer: _Answer) -> str:
    try:
        found = answers.parse(answer.body)
    except AnswerError:
        return ""
    errors = found.get("errors") if isinstance(found.get("errors"), list) else []
    more = [str(one["message"]) for one in errors or [] if isinstance(one, dict) and "message" in one]
    return ": ".join([str(found.get("message", "")), *more])
