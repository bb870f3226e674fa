"""Whom the stack's provider acts as, and in which of Azure's clouds: found as pulumi-azure-native finds it.

The provider takes each value from the stack's configuration, `azure-native:clientId`, or else from the environment,
`ARM_CLIENT_ID`. What the configuration holds as a secret stays closed here: the environment must have it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from azure.core.credentials import TokenCredential
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import (
    AzureAuthorityHosts,
    AzureCliCredential,
    CertificateCredential,
    ClientAssertionCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
)

from karpstack.text.proxies import ProxyError, proxies_for

from ..answers import read
from ..finding import InputError, NotAskedError, UnknowableError
from ..stack import CLOSED

#: The endpoint of Azure Resource Manager instead of the cloud's, as Azure's providers for Terraform have it too.
ENDPOINT: Final = "ARM_RESOURCE_MANAGER_ENDPOINT"


@dataclass(frozen=True)
class Cloud:
    """One of Azure's clouds: where its resource manager is, and who signs its users in."""

    resource_manager: str
    authority: str


_PUBLIC: Final = Cloud("https://management.azure.com", AzureAuthorityHosts.AZURE_PUBLIC_CLOUD)
_CLOUDS: Final[Mapping[str, Cloud]] = {
    "public": _PUBLIC,
    "usgovernment": Cloud("https://management.usgovcloudapi.net", AzureAuthorityHosts.AZURE_GOVERNMENT),
    "china": Cloud("https://management.chinacloudapi.cn", AzureAuthorityHosts.AZURE_CHINA),
}


@dataclass(frozen=True)
class Login:
    """How to ask.

    Attributes:
        credential: Gives tokens.
        words: Whose it is, for people.
        endpoint: URL of Azure Resource Manager.
        scope: What tokens are asked for.
    """

    credential: TokenCredential
    words: str
    endpoint: str
    scope: str


def login(raw: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Login:
    """As the provider of a stack would sign in.

    Args:
        raw: The stack's configuration, with `azure-native:` keys.
        environment: The process's variables.

    Raises:
        UnknowableError: A value is missing, or is none that the provider takes.
    """

    def value(name: str, variable: str) -> str:
        given = raw.get(f"azure-native:{name}")
        if given is not CLOSED:
            return str(given or environment.get(variable) or "")
        if opened := environment.get(variable):
            return opened
        raise UnknowableError(
            f"azure-native:{name} is {CLOSED}, and {variable} is not set, so the subscription would be asked as "
            f"somebody else than the stack's provider; set {variable} to it"
        )

    name = value("environment", "ARM_ENVIRONMENT") or "public"
    cloud = _CLOUDS.get(name.lower())
    if cloud is None:
        raise InputError(
            f"azure-native:environment = {name!r} is none of {', '.join(_CLOUDS)}, so it is not known whom to ask; "
            "set it to one of them, or leave it out"
        )
    _refuse_other_cloud(value, cloud)
    tenant, client = value("tenantId", "ARM_TENANT_ID"), value("clientId", "ARM_CLIENT_ID")
    certificate = value("clientCertificatePath", "ARM_CLIENT_CERTIFICATE_PATH")
    secret = value("clientSecret", "ARM_CLIENT_SECRET")
    application = f"the application {client}"
    asked: dict[str, Any] = {"authority": cloud.authority, "transport": _transport()}
    try:
        credential: TokenCredential
        if value("useDefaultAzureCredential", "ARM_USE_DEFAULT_AZURE_CREDENTIAL").lower() == "true":
            credential, words = DefaultAzureCredential(**asked), "Azure's default credential"
        elif certificate:
            password = value("clientCertificatePassword", "ARM_CLIENT_CERTIFICATE_PASSWORD") or None
            credential = CertificateCredential(tenant, client, certificate, password=password, **asked)
            words = f"{application}, by its certificate"
        elif secret:
            credential = ClientSecretCredential(tenant, client, secret, **asked)
            words = f"{application}, by its secret"
        elif value("useOidc", "ARM_USE_OIDC").lower() == "true":
            token = _federated_token(value)
            credential = ClientAssertionCredential(tenant, client, lambda: token, **asked)
            words = f"{application}, by a federated token"
        elif value("useMsi", "ARM_USE_MSI").lower() == "true":
            if value("msiEndpoint", "ARM_MSI_ENDPOINT"):
                raise InputError(
                    "azure-native:msiEndpoint (or ARM_MSI_ENDPOINT) is not followed here, so another identity would be "
                    "asked for than the stack's provider does; unset it for this command, or sign in otherwise"
                )
            credential = ManagedIdentityCredential(client_id=client or None, transport=asked["transport"])
            words = "this machine's managed identity"
        else:
            credential, words = AzureCliCredential(tenant_id=tenant), "whoever az login signed in"
    except (OSError, TypeError, ValueError) as error:  # the second without the password of a certificate
        raise UnknowableError(
            f"azure-native's credentials: {error}, so the subscription can't be asked as the stack's provider would; "
            "give tenant, client and its proof as ARM_TENANT_ID, ARM_CLIENT_ID and ARM_CLIENT_SECRET, or az login"
        ) from error
    endpoint = (environment.get(ENDPOINT) or cloud.resource_manager).rstrip("/")
    return Login(credential, words, endpoint, f"{cloud.resource_manager}/.default")


def _refuse_other_cloud(value: Callable[[str, str], str], cloud: Cloud) -> None:
    if value("metadataHost", "ARM_METADATA_HOSTNAME") not in ("", urlsplit(cloud.resource_manager).hostname):
        raise InputError(
            "azure-native:metadataHost (or ARM_METADATA_HOSTNAME) is not followed here, so another cloud would be "
            f"asked than the stack's provider does; give the address of its resource manager as {ENDPOINT}, and unset "
            "it for this command"
        )


def _federated_token(value: Callable[[str, str], str]) -> str:
    file = value("oidcTokenFilePath", "ARM_OIDC_TOKEN_FILE_PATH")
    if not (file or value("oidcToken", "ARM_OIDC_TOKEN")):
        raise UnknowableError(
            "azure-native:useOidc is true, and there is no token: the look does not ask for one by "
            "ACTIONS_ID_TOKEN_REQUEST_URL, as the stack's provider does, so the subscription can't be asked as "
            "it would; give the token as ARM_OIDC_TOKEN, or its file as ARM_OIDC_TOKEN_FILE_PATH"
        )
    return value("oidcToken", "ARM_OIDC_TOKEN") or _content(file)


def transport(**timeouts: float) -> RequestsTransport:
    """Return what Azure is asked with: through a proxy that was checked, and none of the environment's own.

    requests itself would take a login from ~/.netrc in the token's place, and another proxy than NO_PROXY says. Of the
    environment, it takes only the certificates that it trusts.
    """
    trusted = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
    return RequestsTransport(use_env_settings=False, connection_verify=trusted, **timeouts)


def _transport() -> RequestsTransport:
    """Return what azure-identity asks with, within the limits of all answers."""
    # azure-identity's warnings have a server's answer to a failed login in them, as it is; without a handler, Python
    # prints them.
    logging.getLogger("azure").addHandler(logging.NullHandler())
    made = transport()
    made.send = partial(_bounded, made.send)
    return made


def _bounded(send: Callable[..., Any], request: Any, **options: Any) -> Any:
    address = urlsplit(request.url)
    call = f"the login at {address.hostname}"
    try:
        # Without TLS, it is a server beside the machine, which gives tokens of a managed identity: no proxy is asked.
        proxies = proxies_for(request.url) if address.scheme == "https" else {}
    except ProxyError as error:  # which is a ValueError, for which azure-identity has words of its own
        raise NotAskedError(call, str(error), refused=False) from error
    options |= {"proxies": proxies, "stream": True}
    response, content = read(call, partial(send, request, **options), attrgetter("internal_response.raw"), None)
    # As requests itself keeps an answer that it has read.
    response.internal_response._content, response.internal_response._content_consumed = content, True
    return response


def subscription(raw: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> str:
    """Id of the subscription that the provider works in; empty where nothing says it."""
    given = raw.get("azure-native:subscriptionId")
    return str((given if given is not CLOSED else "") or environment.get("ARM_SUBSCRIPTION_ID") or "")


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UnknowableError(
            f"ARM_OIDC_TOKEN_FILE_PATH = {path!r} can't be read ({error.strerror}), so there is no token to sign in "
            "with; give the token's file, or the token as ARM_OIDC_TOKEN"
        ) from error
