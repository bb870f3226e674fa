"""Who may ask a server of the rehearsal: processes of its own user, and no web page.

A port of the loopback interface is open to every user of the machine and, by way of a browser, to every page that its
user looks at. Connections of other users are closed before a byte of them is read; a browser gives itself away by what
it adds to requests, and by the name of the host that it believes to ask.
"""

from __future__ import annotations

import json
import logging
import re
import socketserver
from collections.abc import Callable, Collection
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import grpc

from karpstack.rehearsal.host import peers

LOOPBACK: Final = "127.0.0.1"
#: Guards in words, for those who ask what listens.
OWN_USER: Final = "this user's processes only"
NO_BROWSER: Final = "no browser, no other host's name"

# Longer than clients keep a connection that they do not use (90 s in Go).
_IDLE_SECONDS: Final = 120.0
_MEBIBYTE: Final = 2**20
_GRPC_PEER: Final = re.compile(r"ipv4:(127\.0\.0\.1):(\d{1,5})")
_MANY: Final = {False: "unary", True: "stream"}
_LOG = logging.getLogger(__name__)


class OwnUserServer(socketserver.TCPServer):
    """A server of the loopback interface that closes the connections of other users unread."""

    _told = False

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a connection is one of this user's."""
        # In this order: while our end is established, the end that the kernel was asked about is its other end, and
        # not one of a later connection from the same port.
        if peers.is_own(client_address, (LOOPBACK, self.server_address[1])) and peers.is_established(request):
            return True
        # Once: whoever tries again and again shall not fill the disk.
        if not self._told:
            self._told = True
            _LOG.warning("port %d: a connection was closed that is not of this user", self.server_address[1])
        return False


class GuardedHandler(BaseHTTPRequestHandler):
    """HTTP requests that are refused before their handler sees them; to be the first of a handler's base classes.

    Attributes:
        timeout: Seconds after which a client that sends nothing is left.
        largest_body: Bytes.
    """

    timeout = _IDLE_SECONDS
    # A request line without a version would be answered without a status.
    default_request_version = "HTTP/1.0"
    largest_body = 4 * _MEBIBYTE

    def hosts(self) -> Collection[str]:
        """The values of `Host` that this server goes by."""
        return (f"{LOOPBACK}:{self.connection.getsockname()[1]}",)

    def parse_request(self) -> bool:
        """Read a request's head; False when it was refused and is answered."""
        if not super().parse_request():
            return False
        refusal = self._refusal()
        if refusal:
            self.refuse(*refusal)
        return not refusal

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server cannot read in the form of all refusals, and not with a page for a browser."""
        self.close_connection = True
        self.refuse(int(code), f"{message or self.responses[code][0]}, so nothing was done")

    def refuse(self, status: int, reason: str) -> None:
        """Answer that nothing was done, and why; the connection ends, for a body may follow."""
        body = json.dumps({"error": reason}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    @property
    def content_length(self) -> int:
        """Bytes of the body; checked before a handler is called."""
        return int(self.headers.get("Content-Length", "0"))

    def _refusal(self) -> tuple[int, str] | None:
        """Status and reason, or None for a request that is well."""
        headers = self.headers
        if any(name.lower() == "origin" or name.lower().startswith("sec-fetch-") for name in headers):
            return 403, "the request comes from a browser, and no page has any business here, so nothing was done"
        # What a tunnel is asked for is its handler's business, and stands in the request's first line.
        if self.command != "CONNECT":
            if not self.path.startswith("/"):
                return 400, f"the target {self.path[:200]!r} is no path, so nothing was done; begin it with /"
            if headers.get_all("Host", []) not in [[host] for host in self.hosts()]:
                known = " or ".join(self.hosts())
                return 403, f"Host is not {known}, so the request was meant for somebody else and nothing was done"
        if "Transfer-Encoding" in headers:
            return 411, "the body's length is not known beforehand, so nothing was done; send Content-Length"
        lengths = headers.get_all("Content-Length", ["0"])
        if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            return 400, f"Content-Length = {', '.join(lengths)[:200]!r} is no number of bytes, so nothing was done"
        if int(lengths[0]) > self.largest_body:
            return 413, f"Content-Length = {lengths[0]} is more than {self.largest_body} bytes, so nothing was done"
        return None


class OwnUserCalls(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """gRPC calls of this user's processes only.

    Each call is looked at, and not each connection: a server is not told of connections, and a port may be somebody
    else's by the next call.
    """

    def __init__(self) -> None:
        self._port = 0

    def listen(self, server: grpc.Server) -> int:
        """Let the server that has this interceptor listen on a free port of the loopback interface; the port."""
        self._port = server.add_insecure_port(f"{LOOPBACK}:0")
        return self._port

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The method's handler behind the question whose call it is."""
        handler: Any = continuation(handler_call_details)
        if handler is None:
            return None
        kind = f"{_MANY[handler.request_streaming]}_{_MANY[handler.response_streaming]}"
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        guarded: grpc.RpcMethodHandler[Any, Any] = make(
            self._guarded(getattr(handler, kind)),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
        return guarded

    def _guarded(self, behaviour: Callable[[Any, grpc.ServicerContext], Any]) -> Callable[..., Any]:
        def guarded(request: Any, context: grpc.ServicerContext) -> Any:
            peer = _GRPC_PEER.fullmatch(context.peer())
            if peer is None or not peers.is_own((peer[1], int(peer[2])), (LOOPBACK, self._port)):
                context.abort(
                    grpc.StatusCode.PERMISSION_DENIED,
                    "the call comes from another user than the one who rehearses, so nothing was done",
                )
            return behaviour(request, context)

        return guarded
