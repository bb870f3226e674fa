"""Questions to Azure Resource Manager. Each is a GET, or a POST that answers with credentials; none changes anything.

Plain REST over azure-core's pipeline: docs/decisions/0020-azure-is-asked-by-rest.md says why.
"""

from __future__ import annotations

import base64
import json
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy, UserAgentPolicy
from azure.core.rest import HttpRequest, HttpResponse
from urllib3.exceptions import HTTPError

from karpstack.text.answers import PAGES, SECONDS, Allowance, begins
from karpstack.text.deadlines import within
from karpstack.text.proxies import is_loopback, proxies_for

from ..answers import OTHER_SHAPE, items, parse, read
from ..finding import NotAskedError
from .credentials import Login, transport

#: Codes with which Azure says that there is no such thing.
_ABSENT: Final = frozenset({"NotFound", "ParentResourceNotFound", "ResourceGroupNotFound", "ResourceNotFound"})
_PATIENCE: Final = 20  # seconds before a question is asked again
SECONDS_IN_ALL: Final = 300.0


class Azure:
    """A subscription, as one login sees it. Each question is asked once, and none after `SECONDS_IN_ALL`.

    Attributes:
        subscription: Its id.
        words: Whose login it is, for people.
        is_local: Whether the resource manager is on this machine, as a rehearsal's is.
    """

    def __init__(self, subscription: str, login: Login) -> None:
        self.subscription = subscription
        self.words = login.words
        self._endpoint = login.endpoint
        self.is_local = is_loopback(login.endpoint)
        self._client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
            login.endpoint,
            policies=[
                UserAgentPolicy("karpstack-preflight"),
                Patience(retry_total=3, retry_backoff_max=_PATIENCE, timeout=SECONDS),
                BearerTokenCredentialPolicy(login.credential, login.scope),
            ],
            transport=transport(connection_timeout=5, read_timeout=30),
        )
        self._answers: dict[str, Any] = {}
        self._allowance = Allowance(SECONDS_IN_ALL)
        self._login = login

    def tenant(self, seconds: float = SECONDS) -> str:
        """Return the tenant of the login's token in lower case; empty if the token does not say it, or come in time."""
        try:
            token = within(seconds, lambda: self._login.credential.get_token(self._login.scope).token)
            claims = token.split(".")[1]
            return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["tid"]).lower()
        except (AzureError, TimeoutError, *OTHER_SHAPE):
            return ""

    @property
    def scope(self) -> str:
        """The subscription's own resource ID."""
        return f"/subscriptions/{self.subscription}"

    def group(self, name: str) -> str:
        """Resource ID of a resource group of the subscription."""
        return f"{self.scope}/resourceGroups/{name}"

    def ask(self, action: str, path: str, version: str, **query: str) -> dict[str, Any]:
        """The answer to one GET.

        Args:
            action: The right that it takes, `Microsoft.Compute/skus/read`; findings are told by it.
            path: Below the endpoint, `/subscriptions/<id>/...`.
            version: API version.
            query: More parameters; `filter` is sent as `$filter`.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        found = self.find(action, path, version, **query)
        if found is None:
            raise NotAskedError(action, f"Azure knows no {path}", refused=False)
        return found

    def find(self, action: str, path: str, version: str, **query: str) -> dict[str, Any] | None:
        """The same; None where there is no such thing.

        Raises:
            NotAskedError: It is refused, or fails in another way.
        """
        if not path.startswith("/"):  # of an answer; with the endpoint's address, it would be another server's
            raise NotAskedError(action, f"{path!r:.200} is no resource ID", refused=False)
        parameters = {"api-version": version, **{f"${name}": value for name, value in query.items()}}
        key = json.dumps([path.lower(), parameters], sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._get(action, f"{self._endpoint}{path}", parameters)
        found: dict[str, Any] | None = self._answers[key]
        return found

    def all(self, action: str, path: str, version: str, **query: str) -> list[dict[str, Any]]:
        """What all pages of a list hold; nothing where what should hold it does not exist.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        page = self.find(action, path, version, **query)
        values: list[dict[str, Any]] = []
        seen: set[str] = set()
        while page is not None:
            values += items(action, page, "value")
            following = str(page.get("nextLink") or "")
            if not following:
                break
            if not is_below(following, self._endpoint):
                raise NotAskedError(action, f"the next page is elsewhere, at {following}", refused=False)
            if following in seen or len(seen) == PAGES:
                raise NotAskedError(action, "its pages have no end", refused=False)
            seen.add(following)
            page = self._get(action, following, {})
            if page is None:
                raise NotAskedError(action, f"its list goes on at {following}, where nothing is", refused=False)
        return values

    def credentials(self, action: str, path: str, version: str, **query: str) -> dict[str, Any]:
        """The answer to one POST that lists credentials, which makes none; `query` is sent as it is.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        url = f"{self._endpoint}{path}"
        found = self._get(action, url, {"api-version": version, **query}, "POST")
        if found is None:
            raise NotAskedError(action, f"Azure knows no {path}", refused=False)
        return found

    def _get(self, action: str, url: str, parameters: dict[str, str], method: str = "GET") -> dict[str, Any] | None:
        request = HttpRequest(method, url, params=parameters)
        try:
            # azure-core itself takes any text for a proxy, and prints it in its errors.
            proxies = proxies_for(url)
            ask = partial(
                self._client.send_request, request, stream=True, enforce_https=not self.is_local, proxies=proxies
            )
            response, content = read(action, ask, attrgetter("_internal_response.raw"), self._allowance)
        except (AzureError, HTTPError, ValueError) as error:
            # One line: the credential's own advice, and where it was looked up, follow on more.
            raise NotAskedError(action, str(error).partition("\n")[0], refused=False) from error
        except OTHER_SHAPE as error:  # azure-identity takes an answer for that of the server of a managed identity
            what = f"the server of the login answers otherwise than Azure's ({type(error).__name__}: {error})"
            raise NotAskedError(action, what, refused=False) from error
        if response.status_code == HTTPStatus.OK:
            return parse(action, content)
        if is_absent(action, response.status_code, content):
            return None
        code, text = _refusal(action, content)
        raise NotAskedError(
            action,
            f"{response.status_code} {code} {text}".replace("  ", " ").strip(),
            refused=response.status_code == HTTPStatus.FORBIDDEN,
        )


class Patience(RetryPolicy[HttpRequest, HttpResponse]):
    """Waits as long as an answer asks it to, and no longer than a look can take."""

    def get_retry_after(self, response: Any) -> float | None:
        """Return the seconds that an answer asks to wait, bounded; None if it asks for none."""
        try:
            asked: float | None = super().get_retry_after(response)
        except (TypeError, ValueError):  # neither a number nor a date
            return None
        return min(asked, _PATIENCE) if asked else asked


def is_below(url: str, endpoint: str) -> bool:
    """Whether an address is of a server that was asked; Azure's own next pages may name the usual port, too."""
    try:
        address, own = urlsplit(url), urlsplit(endpoint)
    except ValueError:
        return False
    return _server(address) == _server(own) and address.path.startswith(f"{own.path}/")


def _server(address: SplitResult) -> tuple[str, str]:
    usual = {"https": ":443", "http": ":80"}.get(address.scheme, "")
    user, at, place = address.netloc.rpartition("@")  # another user or password is another server
    return address.scheme, f"{user}{at}{place.lower().removesuffix(usual)}"


def is_absent(action: str, status: int, content: bytes) -> bool:
    """Whether Azure says that there is no such thing. A proxy, or a subscription that is refused, is a 404, too."""
    return status == HTTPStatus.NOT_FOUND and _refusal(action, content)[0] in _ABSENT


def _refusal(action: str, content: bytes) -> tuple[str, str]:
    """Azure's code and text; no code, and how it begins, where something else than Azure answered."""
    try:
        said = parse(action, content).get("error")
    except NotAskedError:
        said = None
    return (
        (str(said.get("code", "")), str(said.get("message", ""))) if isinstance(said, dict) else ("", begins(content))
    )
