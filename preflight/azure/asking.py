"""Questions to Azure Resource Manager. Each is a GET; none changes anything.

Plain REST over azure-core's pipeline: docs/decisions/0020-azure-is-asked-by-rest.md says why.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy, UserAgentPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse

from ..finding import NotAskedError
from .credentials import Login

#: Codes with which Azure says that there is no such thing.
_ABSENT: Final = frozenset({"NotFound", "ParentResourceNotFound", "ResourceGroupNotFound", "ResourceNotFound"})
_LOOPBACK: Final = "127.0.0.1"


class Azure:
    """A subscription, as one login sees it. Each question is asked once.

    Attributes:
        subscription: Its id.
        words: Whose login it is, for people.
    """

    def __init__(self, subscription: str, login: Login) -> None:
        self.subscription = subscription
        self.words = login.words
        self._endpoint = login.endpoint
        # A token goes over TLS, or does not leave the machine.
        self._https = urlsplit(login.endpoint).hostname != _LOOPBACK
        self._client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
            login.endpoint,
            policies=[
                UserAgentPolicy("karpstack-preflight"),
                RetryPolicy(retry_total=3, retry_backoff_max=20),
                BearerTokenCredentialPolicy(login.credential, login.scope),
            ],
            transport=RequestsTransport(connection_timeout=5, read_timeout=30),
        )
        self._answers: dict[str, Any] = {}

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
        while page:
            values += page.get("value", ())
            following = str(page.get("nextLink") or "")
            if not following:
                break
            if not following.startswith(f"{self._endpoint}/"):
                raise NotAskedError(action, f"the next page is elsewhere, at {following}", refused=False)
            page = self._get(action, following, {})
        return values

    def _get(self, action: str, url: str, parameters: dict[str, str]) -> dict[str, Any] | None:
        request = HttpRequest("GET", url, params=parameters)
        try:
            response = self._client.send_request(request, enforce_https=self._https)
            content = response.json()
        except (AzureError, ValueError) as error:
            # One line: the credential's own advice, and where it was looked up, follow on more.
            raise NotAskedError(action, str(error).partition("\n")[0], refused=False) from error
        if response.status_code == HTTPStatus.OK:
            found: dict[str, Any] = content
            return found
        refusal = content.get("error") if isinstance(content, dict) else None
        refusal = refusal if isinstance(refusal, dict) else {}
        code, text = str(refusal.get("code", "")), str(refusal.get("message", ""))
        if response.status_code == HTTPStatus.NOT_FOUND and code in _ABSENT:
            return None
        raise NotAskedError(
            action,
            f"{response.status_code} {code} {text}".strip(),
            refused=response.status_code == HTTPStatus.FORBIDDEN,
        )
