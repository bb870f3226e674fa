"""The one HTTP server of the simulated account, on a loopback port of its own.

It serves moto; the price list (a request signed for the service `pricing`, or addressed to its target); and the
Pod Identity agent of each cluster at `/pod-identity/<cluster>/v1/credentials`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.clouds.aws.identity import CredentialError
from rehearsal.loopback import Loopback

_PREFIX, _SUFFIX = "/pod-identity/", "/v1/credentials"
_PRICING_TARGET = "AWSPriceListService."
_log = logging.getLogger(__name__)

StartResponse = Callable[..., Any]


def credentials_path(cluster: str) -> str:
    """Path of a cluster's Pod Identity agent."""
    return f"{_PREFIX}{cluster}{_SUFFIX}"


class Server:
    """moto and its neighbours behind one port."""

    def __init__(
        self,
        get_products: Callable[[dict[str, Any]], dict[str, Any]],
        credentials: Callable[[str, str], dict[str, str]],
    ) -> None:
        self._get_products = get_products
        self._credentials = credentials
        self._loopback: Loopback | None = None
        self._moto: Any = None

    @property
    def endpoint(self) -> str:
        """`http://127.0.0.1:<port>`.

        Raises:
            RuntimeError: It does not listen.
        """
        if self._loopback is None:
            raise RuntimeError("the account is not on the wire: call start() first")
        return self._loopback.url

    def start(self) -> None:
        """Listen on a free port of the loopback interface."""
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        class Handler(MotoRequestHandler):
            """Without a line in the log for each request."""

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                _log.debug("%s %s", self.requestline, code)

        self._moto = DomainDispatcherApplication(create_backend_app)
        server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=Handler)
        self._loopback = Loopback(server, "aws")
        self._loopback.start()

    def stop(self) -> None:
        """Close the port; safe to call twice."""
        if self._loopback is not None:
            self._loopback.stop()
            self._loopback = None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Route one WSGI request."""
        path = environ.get("PATH_INFO", "")
        if path.startswith(_PREFIX) and path.endswith(_SUFFIX):
            cluster = path.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            return self._pod_identity(cluster, environ.get("HTTP_AUTHORIZATION", ""), start_response)
        if environ.get("HTTP_X_AMZ_TARGET", "").startswith(_PRICING_TARGET):
            return self._pricing(environ, start_response)
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer

    def _pod_identity(self, cluster: str, token: str, start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = json.dumps(self._credentials(cluster, token)).encode()
        except CredentialError as error:
            _log.warning("pod identity of %s: %s", cluster, error)
            return _send(start_response, f"{error.status} Refused", "text/plain", str(error).encode())
        return _send(start_response, "200 OK", "application/json", body)

    def _pricing(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        kind = "application/x-amz-json-1.1"
        action = environ["HTTP_X_AMZ_TARGET"].removeprefix(_PRICING_TARGET)
        request = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
        if action != "GetProducts":
            error = {"__type": "InvalidParameterException", "Message": f"The rehearsal has no pricing:{action}"}
            return _send(start_response, "400 Bad Request", kind, json.dumps(error).encode())
        return _send(start_response, "200 OK", kind, json.dumps(self._get_products(request)).encode())


def _send(start_response: StartResponse, status: str, kind: str, body: bytes) -> list[bytes]:
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]
