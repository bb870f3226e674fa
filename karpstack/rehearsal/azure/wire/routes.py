"""From HTTP to ARM and back: paths, tokens, status codes, and the headers of long-running operations.

Knows HTTP's side of ARM only; what is allowed and what it means is decided by `arm`, `access` and `entra`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.manager import Accepted, Arm
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.entra import LOGIN, MANAGEMENT, TOKEN_SECONDS, EntraError
from karpstack.rehearsal.azure.wire import graph
from karpstack.rehearsal.azure.wire.lookups import Lookups
from karpstack.text import json_file

MANAGEMENT_HOST = MANAGEMENT.removeprefix("https://")
LOGIN_HOST = LOGIN.removeprefix("https://")
PRICES_HOST = "prices.azure.com"
HOSTS = (MANAGEMENT_HOST, LOGIN_HOST, PRICES_HOST)
#: Path of the managed identity endpoint, outside of the proxy, as App Service has one.
IDENTITY_PATH = "/msi/token"

_OPERATIONS = "/providers/Microsoft.Compute/locations/{region}/operations/{id}"
_OPERATION = re.compile(
    r"/subscriptions/[^/]+/providers/Microsoft\.Compute/locations/[^/]+/operations/(?P<id>[^/]+)", re.IGNORECASE
)
_GRAPH = "/providers/microsoft.resourcegraph/resources"
_TOKEN = re.compile(r"/(?P<tenant>[^/]+)/oauth2/v2\.0/token")
_DISCOVERY = re.compile(r"/(?P<tenant>[^/]+)/v2\.0/\.well-known/openid-configuration")

#: Limits of a body: a managed cluster has some hundred values, eight levels deep.
_DEPTH: Final = 40
_VALUES: Final = 10_000
_JSON: Final = "application/json"

_log = logging.getLogger(__name__)

_UNAUTHENTICATED = "Authentication failed. The 'Authorization' header is missing."
_INVALID = "The access token is invalid."


@dataclass(frozen=True)
class HttpRequest:
    """One request, as far as it matters.

    Attributes:
        method: HTTP method.
        host: Host that is meant; empty for a request to the proxy itself.
        target: Path and query as sent.
        headers: By lower-case name.
        body: As sent.
    """

    method: str
    host: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """Path without its escapes."""
        return unquote(urlsplit(self.target).path)

    def query(self, name: str) -> str:
        """A parameter of the query; its name in any case."""
        values = parse_qs(urlsplit(self.target).query)
        return next((value[0] for key, value in values.items() if key.lower() == name.lower()), "")

    @property
    def json(self) -> dict[str, Any]:
        """The body as an object.

        Raises:
            ArmError: It is something else, of another content type, or larger or deeper than any that Azure takes.
        """
        kind = self.headers.get("content-type", "<null>")
        if self.body and kind.partition(";")[0].strip().lower() != _JSON:
            raise refused("UnsupportedMediaType", given=kind)
        try:
            body = json_file.parse(self.body or b"{}", Path("body"), depth=_DEPTH, values=_VALUES)
        except json_file.FileError:
            body = None
        if not isinstance(body, dict):
            raise refused("InvalidRequestContent/json")
        return body


@dataclass(frozen=True)
class HttpResponse:
    """One answer.

    Attributes:
        status: HTTP status.
        body: Written as JSON; no body when None.
        headers: Besides the usual ones.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Routes:
    """Answers requests to Azure's hosts."""

    def __init__(self, context: Context, arm: Arm, identity: Callable[[str], str | None]) -> None:
        """`identity` gives the object id of the managed identity behind a secret of the identity endpoint."""
        self._context = context
        self._arm = arm
        self._identity = identity
        self._lookups = Lookups(context, arm.access)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one request; every refusal is an answer too."""
        hosts = {
            MANAGEMENT_HOST: self._management,
            LOGIN_HOST: self._login,
            PRICES_HOST: self._prices,
            "": self._itself,
        }
        try:
            return hosts[request.host](request)
        except ArmError as error:
            return HttpResponse(error.status, error.body, error.headers)
        except EntraError as error:
            _log.warning("Entra gave no token: %s%s", error, f" To mend: {error.mend}" if error.mend else "")
            return HttpResponse(error.status, error.body)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if not request.body:
                raise
            # ARM has a schema for each body, and refuses another before anything reads it; here reading finds it out.
            _log.warning("A body of another shape: %s %s", request.method, request.path, exc_info=True)
            refusal = refused("InvalidRequestContent/value", error=error)
            return HttpResponse(refusal.status, refusal.body)

    def _login(self, request: HttpRequest) -> HttpResponse:
        if match := _DISCOVERY.fullmatch(request.path):
            return HttpResponse(200, self._context.directory.openid_configuration(match["tenant"]))
        match = _TOKEN.fullmatch(request.path)
        if match and request.method == "POST":
            form = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
            answer = self._context.directory.exchange(match["tenant"], form)
            return HttpResponse(200, answer)
        return HttpResponse(
            404,
            {
                "error": "not_found",
                "error_description": f"The rehearsal's Entra has no {request.method} {request.path}",
            },
        )

    def _prices(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/api/retail/prices":
            return HttpResponse(404, {"Error": {"Code": "NotFound", "Message": f"The rehearsal has no {request.path}"}})
        return HttpResponse(200, self._context.prices.retail_page(request.query("$filter")))

    def _itself(self, request: HttpRequest) -> HttpResponse:
        """What is asked of this address by its own name: identity endpoint and ARM, for clients of no proxy."""
        return self._endpoint(request) if request.path == IDENTITY_PATH else self._management(request)

    def _endpoint(self, request: HttpRequest) -> HttpResponse:
        """The managed identity endpoint: a token for whoever has the secret, for ARM only."""
        principal = self._context.directory.principal(
            self._identity(request.headers.get("x-identity-header", "")) or ""
        )
        if principal is None or not self._context.directory.is_management(request.query("resource")):
            return HttpResponse(
                400, {"statusCode": 400, "message": "No managed identity found for the specified secret and resource."}
            )
        return HttpResponse(
            200,
            {
                "access_token": self._context.directory.issue(principal),
                "resource": MANAGEMENT,
                "token_type": "Bearer",
                "expires_on": str(int(clock.now()) + TOKEN_SECONDS),
                "client_id": principal.client_id,
            },
        )

    def _management(self, request: HttpRequest) -> HttpResponse:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise ArmError("AuthenticationFailed", _UNAUTHENTICATED, 401, {"WWW-Authenticate": "Bearer"})
        principal = self._context.directory.bearer(token)
        if principal is None:
            raise ArmError(
                "InvalidAuthenticationToken", _INVALID, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        caller = principal.object_id
        answer = self._subscription_wide(request, caller)
        if answer is not None:
            return answer
        path, version = request.path, request.query("api-version")
        if request.method == "PUT":
            accepted = self._arm.begin_put(path, version, request.json, caller)
            return HttpResponse(201 if accepted.created else 200, accepted.body, self._waiting(accepted, version))
        if request.method == "DELETE":
            accepted = self._arm.begin_delete(path, version, caller)
            running = accepted.operation is not None and not accepted.operation.done
            return (
                HttpResponse(202, None, self._waiting(accepted, version))
                if running
                else HttpResponse(200 if accepted.operation else 204)
            )
        if request.method == "PATCH":
            return HttpResponse(200, self._arm.patch(path, version, request.json, caller))
        if request.method == "GET":
            # An id has pairs of types and names after its namespace; a collection ends in a type.
            rest = (
                path.lower().rpartition("/providers/")[2].split("/")
                if "/providers/" in path.lower()
                else path.strip("/").split("/")[1:]
            )
            if len(rest) % 2:
                return HttpResponse(200, self._arm.get(path, version, caller))
            return HttpResponse(200, {"value": self._arm.list(path, version, caller)})
        if request.method == "POST":
            identifier, _, name = path.rpartition("/")
            return HttpResponse(200, self._arm.post(identifier, name, version, request.json, caller))
        raise refused("MethodNotAllowed", method=request.method)

    def _subscription_wide(self, request: HttpRequest, caller: str) -> HttpResponse | None:
        """The catalogue, operations and Resource Graph; None for everything else."""
        path, context = request.path, self._context
        if path.lower() == _GRAPH and request.method == "POST":
            with context.store.lock:
                context.operations.settle()
                answer = graph.query(context.store, self._arm.access, caller, str(request.json.get("query", "")))
            return HttpResponse(200, answer)
        if request.method != "GET":
            return None
        if match := _OPERATION.fullmatch(path):
            return self._operation(match["id"])
        found = self._lookups.answer(path, request.query("api-version"), caller)
        return HttpResponse(200, found) if found is not None else None

    def _operation(self, identifier: str) -> HttpResponse:
        operation = self._context.operations.get(identifier)
        if operation is None:
            raise refused("NotFound", identifier=identifier)
        body: dict[str, Any] = {"id": identifier, "name": identifier, "status": operation.status}
        if operation.done and operation.error:
            body |= operation.error.body
        return HttpResponse(200, body, {} if operation.done else {"Retry-After": "1"})

    def _waiting(self, accepted: Accepted, version: str) -> dict[str, str]:
        if accepted.operation is None or (accepted.operation.done and not accepted.operation.error):
            return {}
        path = _OPERATIONS.format(region=self._context.region, id=accepted.operation.id)
        url = f"{MANAGEMENT}/subscriptions/{self._context.subscription}{path}?api-version={version}"
        return {"Azure-AsyncOperation": url, "Retry-After": "1"}
