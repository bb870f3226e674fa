"""One loopback port: an HTTP proxy that is itself what lies behind it.

A client that is told to use it (`HTTPS_PROXY`) asks for a tunnel to one of Azure's hosts; the tunnel ends here, in TLS
with a certificate of the rehearsal's authority, and the requests in it are answered by `routes`. A tunnel to any other
host is refused, so nothing of a rehearsal can reach a real cloud. Requests without a tunnel go to the managed identity
endpoint or, with one of its tokens, to Azure Resource Manager: for clients that have its address and need no proxy.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Collection
from http.server import ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.wire.certificates import create
from karpstack.rehearsal.azure.wire.routes import HOSTS, HttpRequest, HttpResponse, Routes
from karpstack.rehearsal.host.guard import LOOPBACK, GuardedHandler, OwnUserServer
from karpstack.rehearsal.host.loopback import Loopback

_FAILED: Final = "The rehearsal's Azure failed at this request: {error}; its logs/daemon.log says more"
_log = logging.getLogger(__name__)


class Server:
    """The port of one subscription."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._loopback: Loopback | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._authority = Path()
        self.refused: list[str] = []

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`: the proxy's URL.

        Raises:
            RuntimeError: It does not listen.
        """
        if self._loopback is None:
            raise RuntimeError("the subscription is not on the wire: call start() first")
        return self._loopback.url

    @property
    def authority(self) -> Path:
        """PEM file of the authority that clients must trust."""
        return self._authority

    def start(self, folder: Path | None = None) -> None:
        """Listen on a free port of the loopback interface.

        Args:
            folder: Where the certificates go, made when it is missing; a temporary folder when None.
        """
        if folder is None:
            self._folder = TemporaryDirectory(prefix="rehearsal-azure-")
            folder = Path(self._folder.name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._authority, context = create(folder, HOSTS)
        self._loopback = Loopback(_Tunnels(self._routes, context, self.refused), "azure")
        self._loopback.start()

    def stop(self) -> None:
        """Close the port and remove the certificates; safe to call twice."""
        if self._loopback is not None:
            self._loopback.stop()
            self._loopback = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class _Tunnels(OwnUserServer, ThreadingHTTPServer):
    daemon_threads = True
    # Clients keep their tunnels open: nobody waits for them to close.
    block_on_close = False

    def __init__(self, routes: Routes, context: ssl.SSLContext, refused: list[str]) -> None:
        self.routes = routes
        self.context = context
        self.refused = refused
        super().__init__((LOOPBACK, 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no event."""
        _log.debug("a connection from %s broke", client_address, exc_info=True)


class _Handler(GuardedHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave in two writes; without this, each answer waits for the client's delayed acknowledgement.
    disable_nagle_algorithm = True
    server: _Tunnels
    _host = ""

    def hosts(self) -> Collection[str]:
        """In a tunnel the host that it leads to."""
        return (self._host, f"{self._host}:443") if self._host else super().hosts()

    def do_CONNECT(self) -> None:  # noqa: N802 - the name that http.server looks for
        """Open a tunnel to one of Azure's hosts, and answer what comes through it."""
        host, _, port = self.path.rpartition(":")
        if host.lower() not in HOSTS or port != "443" or self._host:
            self.server.refused.append(self.path)
            _log.warning("a tunnel to %s was refused", self.path)
            self.send_error(403, "Forbidden", f"The rehearsal lets nobody out to {self.path}")
            self.close_connection = True
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        self.wfile.flush()
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb")
        self._host = host.lower()
        self.close_connection = False

    def finish(self) -> None:
        """Close the tunnel too: the server knows only the socket that it was made from."""
        super().finish()
        self.connection.close()

    def _answer(self) -> None:
        request = HttpRequest(
            self.command,
            self._host,
            self.path,
            {key.lower(): value for key, value in self.headers.items()},
            self.rfile.read(self.content_length),
        )
        try:
            response = self.server.routes.answer(request)
        except Exception as error:
            _log.exception("%s %s%s", self.command, self._host, self.path)
            response = HttpResponse(500, ArmError("InternalServerError", _FAILED.format(error=repr(error)[:200])).body)
        _log.debug("%s %s%s %d", self.command, self._host, self.path, response.status)
        self._send(response)

    def _send(self, response: HttpResponse) -> None:
        body = b"" if response.body is None else json.dumps(response.body).encode()
        self.send_response(response.status)
        if body:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        if response.status != 204:
            self.send_header("Content-Length", str(len(body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, template: str, *args: Any) -> None:
        """`_answer` logs."""
