"""Removes the resource groups of a subscription that have the tag of a run, with all that is in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from re import IGNORECASE, escape, fullmatch
from typing import Final

from azure.core import PipelineClient
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.core.rest import HttpRequest, HttpResponse
from urllib3.exceptions import HTTPError

from karpstack.karpenter import clock
from karpstack.preflight.answers import OTHER_SHAPE, parse, read
from karpstack.preflight.azure.api_versions import RESOURCES
from karpstack.preflight.azure.asking import Azure, Patience, is_absent
from karpstack.preflight.azure.credentials import Login, transport
from karpstack.preflight.finding import NotAskedError
from karpstack.text.answers import begins
from karpstack.text.proxies import proxies_for

from .leftovers import TAG, Stays

_LIST: Final = "Microsoft.Resources/subscriptions/resourceGroups/read"
_PATIENCE, _BETWEEN = 3600.0, 15.0
_LOOKS: Final = 20
_TRIES: Final = 4
_NO_ANSWER, _NO_LOGIN = 0, 1  # instead of a status


def remove(azure: Azure, login: Login, run: str, *, between: float = _BETWEEN) -> Iterator[str]:
    """Delete the groups, wait for their end, and yield a line for each; the cluster's own group goes with the cluster.

    Raises:
        NotAskedError: The groups cannot be listed.
    """
    client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
        login.endpoint,
        policies=[Patience(), BearerTokenCredentialPolicy(login.credential, login.scope)],
        transport=transport(connection_timeout=5, read_timeout=30),
    )

    def send(method: str, url: str) -> tuple[int, bytes]:
        ask = partial(
            client.send_request,
            HttpRequest(method, url),
            stream=True,
            enforce_https=not azure.is_local,
            proxies=proxies_for(url),
        )
        try:
            answer, content = read(f"{method} of a resource group", ask, attrgetter("_internal_response.raw"), None)
        except ClientAuthenticationError as error:  # also where only the network fails
            return _NO_LOGIN, str(error).partition("\n")[0].encode()
        except (AzureError, HTTPError, NotAskedError) as error:  # the other groups go all the same
            return _NO_ANSWER, str(error).encode()
        return answer.status_code, content

    going: dict[str, str] = {}
    for group in azure.all(_LIST, f"{azure.scope}/resourcegroups", RESOURCES):
        # A managed group goes with what manages it.
        if (group.get("tags") or {}).get(TAG) != run or group.get("managedBy"):
            continue
        # Otherwise the address might be another server's, which would get the token, or something else would go.
        if not fullmatch(rf"{escape(azure.scope)}/resourceGroups/[\w()-][\w.()-]*", str(group["id"]), IGNORECASE):
            yield Stays(f"resource group {group['name']} stays: its id is {group['id']!r:.200}")
            continue
        url = f"{login.endpoint}{group['id']}?api-version={RESOURCES}"
        for attempt in range(_TRIES):
            status, content = send("DELETE", url)
            if status not in (_NO_ANSWER, _NO_LOGIN) or attempt == _TRIES - 1:
                break
            clock.sleep(between)
        if is_absent(_LIST, status, content):
            continue
        if not 200 <= status < 300:
            code = "" if status in (_NO_ANSWER, _NO_LOGIN) else f"{status} "
            again = "mend that, and run the command again"
            yield Stays(f"resource group {group['name']} stays: {code}{begins(content)}; {again}")
            continue
        yield f"resource group {group['name']} goes"
        going[group["name"]] = url
    until = clock.monotonic() + _PATIENCE
    for name, url in going.items():
        looks = 0  # in a row that saw it there and not being deleted, or got another answer that is no outage
        while not is_absent(_LIST, *(seen := send("GET", url))):
            is_outage = seen[0] in (_NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS) or seen[0] >= 500
            looks = 0 if is_outage or _is_going(seen[1]) else looks + 1
            if seen[0] in (401, 403) or looks == _LOOKS or clock.monotonic() > until:
                why = begins(seen[1]) if seen[0] in (_NO_ANSWER, _NO_LOGIN) else seen[0]
                yield Stays(f"resource group {name} was not seen to go ({why}): look at it in the portal")
                break
            clock.sleep(between)


def _is_going(content: bytes) -> bool:
    """Whether an answer about a group says that it is being deleted."""
    try:
        return bool(parse(_LIST, content)["properties"]["provisioningState"] == "Deleting")
    except (NotAskedError, *OTHER_SHAPE):
        return False
