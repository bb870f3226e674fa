"""Questions to an AWS account. Each call reads; none changes anything."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from karpstack.text.answers import PAGES
from karpstack.text.proxies import ProxyError

from ..answers import OTHER_SHAPE
from ..finding import NotAskedError, UnknowableError
from .sessions import session

_REFUSALS: Final = frozenset(
    {"AccessDenied", "AccessDeniedException", "AuthorizationError", "NotAuthorized", "UnauthorizedOperation"}
)
#: What policies call services that boto3 calls otherwise.
_PREFIXES: Final[Mapping[str, str]] = {
    "elb": "elasticloadbalancing",
    "elbv2": "elasticloadbalancing",
    "service-quotas": "servicequotas",
}
#: What botocore raises if it cannot use a file or program that a profile names for the login, if the profile wants a
#: code and there is no terminal, or if the login that it gets has ended already. For the network, it has errors of its
#: own. Errors that are also in `OTHER_SHAPE` are not failed logins.
LOGIN_FAILED: Final = (OSError, EOFError, RuntimeError)
_SESSION: Final = "karpstack-preflight"

#: For all questions of a look together: an account that is slow, or throttles each of them, must not hold it up.
SECONDS_IN_ALL: Final = 300.0


class Aws:
    """An account in one region. Each question is asked once, and none after `SECONDS_IN_ALL`."""

    def __init__(self, region: str, client: Callable[[str], Any]) -> None:
        """`client` makes boto3's client of a service."""
        self.region = region
        self._until = time.monotonic() + SECONDS_IN_ALL
        self._client = client
        self._clients: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}

    @classmethod
    def connect(cls, region: str, profile: str = "", roles: Sequence[Mapping[str, str]] = ()) -> Aws:
        """The account as the stack's provider sees it.

        Args:
            region: Where the stack is.
            profile: Of the AWS CLI; the environment's credentials if empty.
            roles: What `sts:AssumeRole` is given: the first role is taken with these credentials, each further one
                with the role before.

        Raises:
            UnknowableError: There is no such profile, or a role cannot be taken.
        """
        try:
            found = session(profile, region)
        except BotoCoreError as error:
            named = f"aws:profile = {profile!r}" if profile else "AWS_PROFILE"
            raise UnknowableError(
                f"{named}: {error}, so the account cannot be asked as the stack's provider would; "
                "write the profile into ~/.aws/config, or take it out of the stack's configuration"
            ) from error
        own = cls(region, found.client)
        for role in roles:
            own = cls(region, partial(found.client, **own._taken(role)))
        return own

    def fresh(self) -> Aws:
        """Return the same account with no answers yet, and with all the time for them."""
        return type(self)(self.region, self._client)

    def _taken(self, role: Mapping[str, str]) -> dict[str, str]:
        """Credentials of a role, as boto3 calls them."""
        try:
            taken = self.ask("sts", "AssumeRole", **{"RoleSessionName": _SESSION, **role}).get("Credentials") or {}
        except NotAskedError as error:
            raise UnknowableError(
                f"aws:assumeRoles = {role['RoleArn']}: {error.call}: {error}, so the account can't be asked as the "
                "stack's provider would; let these credentials take the role, or take it out of the stack's "
                "configuration"
            ) from error
        if not taken.keys() >= {"AccessKeyId", "SecretAccessKey", "SessionToken"}:
            raise UnknowableError(
                f"aws:assumeRoles = {role['RoleArn']}: sts:AssumeRole answers without credentials, so the account "
                "can't be asked as the stack's provider would; see what is between: a proxy, AWS_ENDPOINT_URL"
            )
        return {
            "aws_access_key_id": taken["AccessKeyId"],
            "aws_secret_access_key": taken["SecretAccessKey"],
            "aws_session_token": taken["SessionToken"],
        }

    def ask(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        """The answer to one call, `ask("iam", "GetRole", RoleName="x")`.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        answer = self.find(service, operation, (), **given)
        return {} if answer is None else answer

    def find(self, service: str, operation: str, absent: tuple[str, ...], **given: Any) -> dict[str, Any] | None:
        """The same; None where AWS says with one of the error codes `absent` that there is no such thing.

        Raises:
            NotAskedError: It is refused, or fails in another way.
        """
        key = json.dumps([service, operation, given], sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._call(service, operation, absent, given)
        found: dict[str, Any] | None = self._answers[key]
        return found

    def all(self, service: str, operation: str, result: str, **given: Any) -> list[Any]:
        """What all pages of an answer have under the key `result`.

        Raises:
            NotAskedError: It is refused, or fails.
        """
        key = json.dumps([service, operation, result, given], sort_keys=True)
        if key not in self._answers:
            self._answers[key] = self._call(service, operation, (), given, result)
        found: list[Any] = self._answers[key]
        return found

    def _call(
        self, service: str, operation: str, absent: tuple[str, ...], given: Mapping[str, Any], result: str = ""
    ) -> Any:
        name = xform_name(operation)
        self._see_the_time(call(service, operation))
        try:
            client = self._client_of(service, call(service, operation))
            if not result:
                return _answer(call(service, operation), getattr(client, name)(**given))
            pages = (
                client.get_paginator(name).paginate(**given)
                if client.can_paginate(name)
                else _pages(getattr(client, name), given)
            )
            return self._all(call(service, operation), pages, result)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in absent:
                return None
            text = str(error.response.get("Error", {}).get("Message") or error)
            raise NotAskedError(call(service, operation), text, refused=code in _REFUSALS) from error
        except (BotoCoreError, ProxyError, ResponseParserError) as error:
            raise NotAskedError(call(service, operation), str(error), refused=False) from error
        except OTHER_SHAPE as error:  # botocore's own parsers take an answer for AWS's
            kind = type(error).__name__
            what = f"the answer is not as AWS's are ({kind}: {error}); a proxy or a login page may be between"
            raise NotAskedError(call(service, operation), what, refused=False) from error
        except LOGIN_FAILED as error:
            raise NotAskedError(call(service, operation), login_failure(error), refused=False) from error

    def _client_of(self, service: str, asked: str) -> Any:
        if service not in self._clients:
            try:
                self._clients[service] = self._client(service)
            except ProxyError:
                raise
            except OTHER_SHAPE as error:  # of what botocore asks for credentials
                what = (
                    f"no client can be made ({type(error).__name__}: {error}): AWS_ENDPOINT_URL is no address, or the "
                    "profile's credential_process or the server of this container's credentials answers with no login"
                )
                raise NotAskedError(asked, what, refused=False) from error
        return self._clients[service]

    def _all(self, asked: str, pages: Iterable[Any], result: str) -> list[Any]:
        """What pages have under a key; AWS leaves the key out where there is nothing."""
        found: list[Any] = []
        for number, page in enumerate(pages):
            if number == PAGES:
                raise NotAskedError(asked, f"there are more than {PAGES} pages", refused=False)
            self._see_the_time(asked)
            listed = _answer(asked, page).get(result, [])
            if not isinstance(listed, list):
                raise NotAskedError(asked, f"the answer has no list under {result}", refused=False)
            found += listed
        return found

    def _see_the_time(self, asked: str) -> None:
        if time.monotonic() > self._until:
            raise NotAskedError(
                asked,
                f"{asked} was not answered: AWS took more than {SECONDS_IN_ALL:.0f} s for all before",
                refused=False,
            )


def _pages(operation: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[Any]:
    """The pages of an answer for which boto3 has no paginator."""
    token: dict[str, str] = {}
    while True:
        page = operation(**given, **token)
        yield page
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


def _answer(asked: str, answer: Any) -> dict[str, Any]:
    """An answer that is AWS's, which has a request's id. A network's login page would pass for one without content."""
    metadata = answer.get("ResponseMetadata") or {}
    if metadata and not metadata.get("RequestId"):
        page = "html" in str((metadata.get("HTTPHeaders") or {}).get("content-type", ""))
        what = "a web page" if page else "something without a request's id"
        raise NotAskedError(asked, f"{what} answered, and not AWS", refused=False)
    found: dict[str, Any] = answer
    return found


def login_failure(error: BaseException) -> str:
    """What an error of `LOGIN_FAILED` means, for people."""
    if isinstance(error, EOFError):
        return "the profile wants a code (`mfa_serial`), which only a terminal can be asked for"
    return f"what the profile or the environment names for the login cannot be used ({error})"


def call(service: str, operation: str) -> str:
    """A call by the name that policies have for it."""
    return f"{_PREFIXES.get(service, service)}:{operation}"
