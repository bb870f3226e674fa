"""Who the environment and a profile of the AWS CLI log in as: the same as for Pulumi's provider.

Its SDK chooses in another order than botocore, which would ask another account where several are named.
https://github.com/aws/aws-sdk-go-v2/blob/main/config/resolve_credentials.go
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import boto3.session
from botocore.credentials import EnvProvider
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError
from botocore.parsers import ResponseParserError
from botocore.session import Session

#: What a question to AWS may raise: a refusal, a program or file of the login that fails, an answer of another shape.
FAILURES: Final = (
    *(ClientError, BotoCoreError, ResponseParserError, OSError, EOFError, RuntimeError),
    *(AttributeError, LookupError, TypeError, ValueError),
)
_PROFILES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
_OF_ENVIRONMENT: Final = "AWS_WEB_IDENTITY_TOKEN_FILE"
_ROLE, _WEB_IDENTITY, _PROCESS = "assume-role", "assume-role-with-web-identity", "custom-process"
#: Seconds that the provider's SDK gives a `credential_process` (aws-sdk-go-v2, credentials/processcreds/provider.go).
_OF_PROCESS: Final = 60.0
_STATIC: Final = ("shared-credentials-file", "config-file")
#: What counts first, by botocore's names; what is not here follows in botocore's order.
_ORDER: Final = ("env", _ROLE, _WEB_IDENTITY, *_STATIC, "sso", "login", _PROCESS)


class CoreSession(Session):  # type: ignore[misc]  # botocore has no types
    """botocore's session, for boto3's, with the logins in the provider's order. An empty variable names no profile."""

    def __init__(self, process_seconds: float = _OF_PROCESS) -> None:
        """`process_seconds` is how long a `credential_process` may take."""
        self._process_seconds = process_seconds
        super().__init__({"profile": (None, [name for name in _PROFILES if os.environ.get(name)], None, None)})

    def _create_credential_resolver(self) -> Any:
        # As late as botocore itself: what logs in takes over the session's `create_client` and region here.
        made: Any = super()._create_credential_resolver()
        # Of a profile that is named in the program, the environment changes nothing.
        is_first = bool(os.environ.get(_OF_ENVIRONMENT)) and self.instance_variables().get("profile") is None
        providers = [
            each
            for one in made.providers
            for each in (_of_environment() if one.METHOD == EnvProvider.METHOD else [one])
        ]
        made.providers = _ordered(providers, *([_WEB_IDENTITY] if is_first else []))
        builder = made.get_provider(_ROLE)._profile_provider_builder  # for a role's `source_profile`
        of_source = builder.providers
        builder.providers = lambda **given: self._bounded(_ordered(of_source(**given)))
        self._bounded(made.providers)
        return made

    def _bounded(self, providers: list[Any]) -> list[Any]:
        for one in providers:
            if one.METHOD == _PROCESS:
                one._popen = partial(_Process, self._process_seconds)
        return providers


class _Process(subprocess.Popen[bytes]):
    """A `credential_process`, for which botocore would wait without end."""

    def __init__(self, seconds: float, *args: Any, **given: Any) -> None:
        self._seconds = seconds
        super().__init__(*args, **given)

    def communicate(self, input: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        try:
            return super().communicate(input, timeout or self._seconds)
        except subprocess.TimeoutExpired as error:
            self.kill()
            self.wait()
            why = f"credential_process has not ended after {self._seconds:g} s; it may wait for a person"
            raise CredentialRetrievalError(provider=_PROCESS, error_msg=why) from error


def client(service: str, region: str) -> Any:
    """Return boto3's client of a service, with the login of the environment. Each client logs in by itself."""
    return boto3.session.Session(botocore_session=CoreSession(), region_name=region).client(service)


def _of_environment() -> list[EnvProvider]:
    """Return what takes keys from the environment, by the names that the provider knows; nothing if one is missing."""
    names = (("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"), ("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"))
    access, secret = (next((name for name in each if os.environ.get(name)), "") for each in names)
    mapping = {"access_key": access, "secret_key": secret, "token": "AWS_SESSION_TOKEN"}
    return [EnvProvider(mapping=mapping)] if access and secret else []


def _ordered(providers: Iterable[Any], *before_role: str) -> list[Any]:
    order = ["env", *before_role, *_ORDER]
    return sorted(providers, key=lambda one: order.index(one.METHOD) if one.METHOD in order else len(order))
