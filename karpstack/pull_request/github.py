"""GitHub's REST API, as far as comments need it.

https://docs.github.com/en/rest/issues/comments, and of limits and errors
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from karpstack.text.proxies import is_loopback, proxy_for
from karpstack.text.shown import visible

_HEADERS: Final = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "karpstack",
    "X-GitHub-Api-Version": "2022-11-28",
}
#: Connections and redirects; what GitHub answers is for us to judge.
_RETRIES: Final = urllib3.Retry(total=None, connect=3, redirect=3, read=False, status=False, other=False)
_SECONDS: Final = 30.0
_ATTEMPTS: Final = 6
#: At least, where a secondary limit does not say how long; doubled each time.
_SECONDARY_SECONDS: Final = 60.0
_NEXT: Final = re.compile(r'<([^<>]*)>; rel="next"')
_LONGEST_MESSAGE: Final = 300
#: What a header can hold; the error of the library for anything else would have the token in it.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_Kind = TypeVar("_Kind")


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
            patience: Seconds that all waits together may take.
            sleep: Waits some seconds.

        Raises:
            GitHubError: There is no usable token, or it would go over the network as it is.
        """
        if not _TOKEN.fullmatch(token):
            raise GitHubError(
                f"GITHUB_TOKEN is {'no token' if token else 'not set'}, so GitHub would not know who writes; in a "
                "workflow: `env: GITHUB_TOKEN: ${{ github.token }}`"
            )
        address = urlsplit(url)
        if address.scheme != "https" and not (address.scheme == "http" and is_loopback(url)):
            raise GitHubError(
                f"GITHUB_API_URL {url!r} is not encrypted, so everybody on the way could read the token; give an "
                "address with https://"
            )
        self._url = url.rstrip("/")
        self._token = token
        self._left = patience
        self._sleep = sleep
        proxy = proxy_for(url)
        self._pool = (
            urllib3.ProxyManager(proxy, retries=_RETRIES, timeout=_SECONDS)
            if proxy
            else urllib3.PoolManager(retries=_RETRIES, timeout=_SECONDS)
        )

    def pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        """What a path lists, page by page.

        Raises:
            GitHubError: See the class's errors.
        """
        url: str | None = f"{self._url}{path}?per_page=100"
        while url:
            response = self._answered("GET", url, None)
            yield _json(response, list)
            url = self._next(response)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create (POST) or change (PATCH) something; what it is then.

        Raises:
            NoRightsError: The token may not.
            UnclearError: There was no answer, or one of a server that failed; what was to be created may be there.
            GitHubError: Anything else that GitHub refuses.
        """
        return _json(self._answered(method, f"{self._url}{path}", body), dict)

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            GitHubError: All waits together would take too long.
        """
        if seconds > self._left:
            raise GitHubError(
                f"GitHub wants {seconds:.0f} s more of patience and {self._left:.0f} s are left of --patience, so "
                "nothing was written; run the job again later, or be more patient"
            )
        self._left -= seconds
        self._sleep(seconds)

    def _answered(self, method: str, url: str, body: Mapping[str, Any] | None) -> urllib3.BaseHTTPResponse:
        attempt = 0
        while True:
            try:
                response = self._pool.request(
                    method, url, json=body, headers={**_HEADERS, "Authorization": f"Bearer {self._token}"}
                )
            except HTTPError as error:
                failure: GitHubError = UnclearError(self._shown(f"GitHub cannot be reached: {error}"))
                wait: float | None = 2.0**attempt
            else:
                if response.status < 300:
                    return response
                failure, wait = self._failure(method, url, response), _wait(response, attempt)
            attempt += 1
            # What was to be created may be there; only who looks can know.
            maybe_done = method == "POST" and isinstance(failure, UnclearError)
            if wait is None or maybe_done or attempt == _ATTEMPTS:
                raise failure
            self.pause(wait)

    def _failure(self, method: str, url: str, response: urllib3.BaseHTTPResponse) -> GitHubError:
        said = self._shown(f"{response.status} {_message(response)}")
        what = f"{method} {urlsplit(url).path}"
        if response.status >= 500:
            return UnclearError(f"GitHub failed at {what}: {said}")
        if response.status in (401, 403, 404) and _wait(response, 0) is None:
            return NoRightsError(f"GitHub refuses {what}: {said}")
        return GitHubError(f"GitHub refuses {what}: {said}")

    def _next(self, response: urllib3.BaseHTTPResponse) -> str | None:
        found = _NEXT.search(response.headers.get("Link", ""))
        if not found:
            return None
        if urlsplit(found[1])[:2] != urlsplit(self._url)[:2]:
            raise GitHubError(self._shown(f"GitHub names another server for the next page, {found[1]}: not asked"))
        return found[1]

    def _shown(self, text: str) -> str:
        """A text for people: on one line, not too long, and without the token, even where a server repeats it."""
        flat = visible(" ".join(text.split()))
        return flat.replace(self._token, "***")[:_LONGEST_MESSAGE]


def _wait(response: urllib3.BaseHTTPResponse, attempt: int) -> float | None:
    """Seconds until a request may be sent again; None where that would change nothing."""
    if response.status >= 500:
        return 2.0**attempt
    if response.status not in (403, 429):
        return None
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return float(after)
    if response.headers.get("X-RateLimit-Remaining") == "0":
        reset = response.headers.get("X-RateLimit-Reset", "")
        return max(0.0, float(reset) - time.time()) + 1 if reset.isdigit() else _SECONDARY_SECONDS
    if response.status == 429 or "secondary rate limit" in _message(response).lower():
        return _SECONDARY_SECONDS * 2.0**attempt
    return None


def _message(response: urllib3.BaseHTTPResponse) -> str:
    try:
        found = response.json()
    except ValueError:
        return ""
    if not isinstance(found, dict):
        return ""
    errors = found.get("errors") if isinstance(found.get("errors"), list) else []
    more = [str(one["message"]) for one in errors or [] if isinstance(one, dict) and "message" in one]
    return ": ".join([str(found.get("message", "")), *more])


def _json(response: urllib3.BaseHTTPResponse, kind: type[_Kind]) -> _Kind:
    try:
        found = response.json()
    except ValueError as error:
        raise GitHubError(
            f"GitHub answered {response.status}, and no JSON; is GITHUB_API_URL that of an API?"
        ) from error
    if not isinstance(found, kind):
        raise GitHubError(f"GitHub answered {response.status} with something that is no {kind.__name__}")
    return found
