"""Sessions of AWS accounts: each client has the proxy that was checked, and reads no more than an answer may have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

import boto3.session
from botocore.config import Config
from botocore.httpsession import URLLib3Session
from urllib3.exceptions import HTTPError

from karpstack.text.answers import Allowance
from karpstack.text.aws_login import CoreSession
from karpstack.text.proxies import proxies_for

from ..answers import read
from ..finding import NotAskedError

_SECONDS: Final = 2  # until a server beside the machine answers, as botocore has it
_CONFIG: Final = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "max_attempts": 4})


def session(profile: str, region: str, *, is_short: bool = True) -> boto3.session.Session:
    """Return boto3's session.

    Args:
        profile: Of the AWS CLI; the environment's credentials if empty.
        region: Where the stack is.
        is_short: Whether all answers to one client together are limited in size and time, too.

    Raises:
        BotoCoreError: There is no such profile.
    """
    core = CoreSession()
    # Also of the clients with which botocore takes a role before it asks.
    core.create_client = partial(_client, core.create_client, Allowance if is_short else lambda: None)
    made = boto3.session.Session(botocore_session=core, profile_name=profile or None, region_name=region)
    logins = core.get_component("credential_provider")
    for fetcher in (logins.get_provider("container-role")._fetcher, logins.get_provider("iam-role")._role_fetcher):
        # No clients: botocore asks who has the credentials of a container or instance otherwise. That is a server on
        # the machine or beside it, which no proxy is asked for.
        fetcher._session = URLLib3Session(timeout=_SECONDS)
        _bound(fetcher._session, "the credentials of this container or instance", None)
    return made


def _client(
    make: Callable[..., Any],
    allowance: Callable[[], Allowance | None],
    service: str,
    *args: Any,
    config: Config | None = None,
    **keys: Any,
) -> Any:
    asked = _CONFIG.merge(config or Config())
    # Only a client knows its endpoint. botocore itself takes any text for a proxy, prints it in its errors, and does
    # not know ALL_PROXY.
    endpoint = make(service, *args, config=asked, **keys).meta.endpoint_url
    made = make(service, *args, config=asked.merge(Config(proxies=proxies_for(endpoint))), **keys)
    _bound(made._endpoint.http_session, service, allowance())
    return made


def _bound(http: Any, service: str, allowance: Allowance | None) -> None:
    """Limit the answers to botocore, which itself reads as much, and for as long, as a server likes."""
    http.send = partial(_bounded, http.send, service, allowance)


def _bounded(send: Callable[[Any], Any], service: str, allowance: Allowance | None, request: Any) -> Any:
    request.stream_output = True
    try:
        response, content = read(service, partial(send, request), attrgetter("raw"), allowance)
    except HTTPError as error:
        raise NotAskedError(service, f"the answer breaks off: {error}", refused=False) from error
    response._content = content
    return response
