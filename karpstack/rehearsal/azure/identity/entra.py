"""Entra: who exists in the tenant, and which pod gets a token.

A token is given for a service account's token only: the assertion's issuer, subject and audience must match a
federated credential of the managed identity with the client id that asks, and the cluster with that issuer must vouch
for the token (TokenReview), which stands for the check of its signature against the issuer's keys. Codes and texts of
refusals are Entra's (AADSTS...). The tokens that are handed out are opaque and known to this module alone.

Absent: people who sign in, applications with secrets or certificates, groups' members.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from karpstack.karpenter import clock

TENANT_ID = "11111111-2222-3333-4444-555555555555"
TOKEN_AUDIENCE = "api://AzureADTokenExchange"
MANAGEMENT = "https://management.azure.com"
LOGIN = "https://login.microsoftonline.com"
TOKEN_SECONDS = 3600
#: Object id of whoever deploys, who is the subscription's owner.
DEPLOYER = "99999999-8888-7777-6666-555555555555"

#: The names under which Azure Resource Manager is asked for.
_AUDIENCES = frozenset({MANAGEMENT, "https://management.core.windows.net"})

_REFUSALS: Final = yaml.load(Path(__file__).with_name("entra.yaml").read_bytes(), yaml.CSafeLoader)


class TokenReviewer(Protocol):
    """What this module needs of a running cluster."""

    def review_token(self, token: str, audience: str) -> str | None:
        """`system:serviceaccount:<namespace>:<name>`, or None when the token is not good."""
        ...


class EntraError(Exception):
    """No token.

    Attributes:
        number: Entra's number, 700213 for example.
        error: The OAuth error code.
        status: HTTP status.
        mend: Which resource to look at, for the rehearsal's log: Entra itself names none.
    """

    def __init__(self, number: int, *, mend: str = "", **words: str) -> None:
        """`words` are those of Entra's text."""
        self.error, self.status, text = _REFUSALS[number]
        super().__init__(f"AADSTS{number}: {text.format(**words)}")
        self.number = number
        self.mend = mend

    @property
    def body(self) -> dict[str, Any]:
        """The answer's JSON body."""
        trace, correlation = str(uuid.uuid4()), str(uuid.uuid4())
        moment = clock.utcnow().strftime("%Y-%m-%d %H:%M:%SZ")
        return {
            "error": self.error,
            "error_description": f"{self} Trace ID: {trace} Correlation ID: {correlation} Timestamp: {moment}",
            "error_codes": [self.number],
            "timestamp": moment,
            "trace_id": trace,
            "correlation_id": correlation,
            "error_uri": f"{LOGIN}/error?code={self.number}",
        }


@dataclass(frozen=True)
class Principal:
    """Somebody who can be given a role.

    Attributes:
        object_id: GUID in the directory: `principalId` in ARM.
        kind: `ServicePrincipal`, `User` or `Group`.
        name: For texts.
        client_id: GUID of the application; empty for people and groups.
        resource: Id of the managed identity or the cluster that it belongs to; empty for others.
    """

    object_id: str
    kind: str
    name: str
    client_id: str = ""
    resource: str = ""


@dataclass(frozen=True)
class FederatedCredential:
    """What a federated credential of an identity says.

    Attributes:
        issuer: URL, compared letter by letter, the slash at its end included.
        subject: `system:serviceaccount:<namespace>:<name>`.
        audiences: Usually `api://AzureADTokenExchange` alone.
        id: Its resource id, for messages.
    """

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    id: str = ""

    def __str__(self) -> str:
        return (
            f"the federated credential {self.id} has the issuer '{self.issuer}', the subject '{self.subject}' and the "
            f"audience '{','.join(self.audiences)}'"
        )


@dataclass
class _Token:
    principal: Principal
    expires: float


@dataclass
class Directory:
    """The tenant.

    Attributes:
        tenant: Its id.
        credentials: Gives the federated credentials of a managed identity by resource id.
    """

    tenant: str = TENANT_ID
    credentials: Callable[[str], Iterable[FederatedCredential]] = lambda _: ()
    _principals: dict[str, Principal] = field(default_factory=dict)
    _issuers: dict[str, TokenReviewer] = field(default_factory=dict)
    _tokens: dict[str, _Token] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, principal: Principal) -> Principal:
        """Enter a principal."""
        with self._lock:
            self._principals[principal.object_id.lower()] = principal
        return principal

    def remove(self, object_id: str) -> None:
        """Strike a principal; its tokens end with it."""
        with self._lock:
            self._principals.pop(object_id.lower(), None)
            self._tokens = {
                text: token
                for text, token in self._tokens.items()
                if token.principal.object_id.lower() != object_id.lower()
            }

    def principal(self, object_id: str) -> Principal | None:
        """The principal of an object id."""
        return self._principals.get(object_id.lower())

    def by_client(self, client_id: str) -> Principal | None:
        """The principal of an application."""
        return next(
            (
                principal
                for principal in self._principals.values()
                if principal.client_id and principal.client_id.lower() == client_id.lower()
            ),
            None,
        )

    def trust(self, issuer: str, reviewer: TokenReviewer) -> None:
        """Tell which running cluster issues tokens under a URL."""
        with self._lock:
            self._issuers[issuer] = reviewer

    def distrust(self, issuer: str) -> None:
        """Forget an issuer; its tokens are not good any more."""
        with self._lock:
            self._issuers.pop(issuer, None)

    def exchange(self, tenant: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Answer a request for a token.

        Args:
            tenant: The tenant in the URL.
            form: Fields of the request.

        Raises:
            EntraError: With Entra's refusal.
        """
        if tenant.lower() != self.tenant:
            raise EntraError(90002, value=tenant)
        if form.get("grant_type") != "client_credentials":
            raise EntraError(70003, value=form.get("grant_type", ""))
        resource = _resource(form.get("scope", ""))
        if not self.is_management(resource):
            raise EntraError(500011, value=resource, tenant=tenant)
        client = form.get("client_id", "")
        principal = self.by_client(client)
        if principal is None:
            raise EntraError(700016, value=client, tenant=tenant)
        assertion = form.get("client_assertion", "")
        if not assertion:
            raise EntraError(7000216)
        self._check_assertion(principal, assertion)
        return {
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
            "ext_expires_in": TOKEN_SECONDS,
            "access_token": self.issue(principal),
        }

    def issue(self, principal: Principal) -> str:
        """A fresh token for Azure Resource Manager."""
        text = f"rehearsal.{secrets.token_urlsafe(32)}"
        with self._lock:
            self._tokens[text] = _Token(principal, clock.monotonic() + TOKEN_SECONDS)
        return text

    @staticmethod
    def is_management(resource: str) -> bool:
        """Whether a resource is Azure Resource Manager."""
        return resource.rstrip("/") in _AUDIENCES

    @staticmethod
    def is_deployer(principal: str) -> bool:
        """Whether an object id is of whoever deploys; callers in this process, who deploy, have none."""
        return principal.lower() in ("", DEPLOYER)

    def bearer(self, token: str) -> Principal | None:
        """Whose token this is; None when it is unknown, expired, or its principal is gone."""
        with self._lock:
            issued = self._tokens.get(token)
            if issued is None or issued.expires < clock.monotonic():
                return None
            return self._principals.get(issued.principal.object_id.lower())

    def openid_configuration(self, tenant: str) -> dict[str, str]:
        """What the tenant publishes about itself."""
        if tenant.lower() != self.tenant:
            raise EntraError(90002, value=tenant)
        base = f"{LOGIN}/{tenant}"
        return {
            "token_endpoint": f"{base}/oauth2/v2.0/token",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
            "issuer": f"{base}/v2.0",
            "jwks_uri": f"{base}/discovery/v2.0/keys",
        }

    def _check_assertion(self, principal: Principal, assertion: str) -> None:
        issuer, subject, audiences = _claims(assertion)
        candidates = list(self.credentials(principal.resource)) if principal.resource else []
        mend = "; ".join(map(str, candidates)) or f"{principal.resource or principal.name} needs a federated credential"
        if not candidates:
            raise EntraError(70025, mend=mend, value=principal.client_id, name=principal.name)
        candidates = [candidate for candidate in candidates if candidate.issuer == issuer]
        if not candidates:
            raise EntraError(700211, mend=mend, what="issuer", value=issuer)
        candidates = [candidate for candidate in candidates if candidate.subject == subject]
        if not candidates:
            raise EntraError(700213, mend=mend, what="subject", value=subject)
        shared = [audience for candidate in candidates for audience in candidate.audiences if audience in audiences]
        if not shared:
            raise EntraError(700212, mend=mend, what="audience", value=",".join(audiences))
        reviewer = self._issuers.get(issuer)
        if reviewer is None or reviewer.review_token(assertion, shared[0]) != subject:
            raise EntraError(50013, value=issuer)


def _resource(scope: str) -> str:
    """The resource in a scope, `https://management.azure.com` in `https://management.azure.com//.default openid`."""
    wanted = next((part for part in scope.split() if part.endswith("/.default")), "")
    return wanted.removesuffix("/.default").rstrip("/")


def _claims(token: str) -> tuple[str, str, tuple[str, ...]]:
    """Issuer, subject and audiences that an assertion claims."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        audience = claims["aud"]
        return (
            str(claims["iss"]),
            str(claims["sub"]),
            tuple(map(str, audience)) if isinstance(audience, list) else (str(audience),),
        )
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, binascii.Error):
        raise EntraError(50027) from None
