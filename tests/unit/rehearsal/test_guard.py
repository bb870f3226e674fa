"""Who may ask: every request that a handler or a servicer must never see."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent import futures
from http.server import ThreadingHTTPServer
from typing import Any

import grpc
import pytest

from karpstack.rehearsal.host import peers
from karpstack.rehearsal.host.guard import GuardedHandler, OwnUserCalls, OwnUserServer
from tests.serving import serving


class Handler(GuardedHandler):
    timeout = 0.2
    largest_body = 100
    server: Server

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server looks for
        self.server.handled.append(self.rfile.read(self.content_length))
        self.send_response(204)
        self.end_headers()

    do_GET = do_HEAD = do_OPTIONS = do_POST  # noqa: N815

    def log_message(self, template: str, *args: Any) -> None:
        pass


class Server(OwnUserServer, ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def raw(self, *lines: str, body: str = "") -> bytes:
        """Send a request as it is written, {host} replaced, and give all of the answer."""
        text = "\r\n".join([*lines, "", body]).replace("{host}", self.host)
        with socket.create_connection(("127.0.0.1", self.server_address[1]), timeout=5) as connection:
            connection.sendall(text.encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as found:
        yield found


POST, HOST = "POST / HTTP/1.1", "Host: {host}"


def test_a_request_of_ours_is_handled(server: Server) -> None:
    answer = server.raw(POST, HOST, "Content-Length: 2", "Connection: close", body="ab")
    assert answer.startswith(b"HTTP/1.0 204")
    assert server.handled == [b"ab"]


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (403, [POST]),
        (403, [POST, "Host:"]),
        (403, [POST, "Host: localhost"]),
        (403, [POST, "Host: evil.example"]),
        (403, [POST, "Host: evil.example:80", HOST]),
        (403, [POST, HOST, HOST]),
        (403, [POST, "Host: {host}.evil.example"]),
        (403, [POST, HOST, "Origin: http://evil.example"]),
        (403, [POST, HOST, "Origin: null"]),
        (403, [POST, HOST, "origin: http://{host}"]),
        (403, ["GET / HTTP/1.1", HOST, "Sec-Fetch-Site: cross-site"]),
        (403, ["GET / HTTP/1.1", HOST, "Sec-Fetch-Mode: no-cors"]),
        (403, ["OPTIONS / HTTP/1.1", HOST, "Origin: x", "Access-Control-Request-Method: POST"]),
        (400, ["GET http://{host}/ HTTP/1.1", HOST]),
        (400, ["GET * HTTP/1.1", HOST]),
        (400, [POST, HOST, "Content-Length: abc"]),
        (400, [POST, HOST, "Content-Length: -1"]),
        (400, [POST, HOST, "Content-Length: +1"]),
        (400, [POST, HOST, "Content-Length: 1_0"]),
        (400, [POST, HOST, "Content-Length: \u0661"]),
        (400, [POST, HOST, "Content-Length:"]),
        (400, [POST, HOST, "Content-Length: 1", "Content-Length: 2"]),
        (400, [POST, HOST, "Content-Length: " + "9" * 5000]),
        (413, [POST, HOST, "Content-Length: 101"]),
        (413, [POST, HOST, "Content-Length: 999999999999999999"]),
        (411, [POST, HOST, "Transfer-Encoding: chunked"]),
    ],
)
def test_a_handler_never_sees_what_is_refused(server: Server, status: int, lines: list[str]) -> None:
    answer = server.raw(*lines, "X-Last: 1")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode(), answer
    assert "so" in json.loads(body)["error"] or "more than" in json.loads(body)["error"]
    assert b"access-control" not in head.lower()
    assert server.handled == []


def test_a_client_that_sends_nothing_is_left(server: Server) -> None:
    assert server.raw(POST, HOST, "Content-Length: 2", body="a") == b""
    assert server.handled == []


def test_a_connection_of_another_user_is_closed_unread(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peers, "is_own", lambda client, address: address != ("127.0.0.1", server.server_address[1]))
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=5) as connection:
            assert connection.recv(1) == b""
    assert server.handled == []
    assert len([record for record in caplog.records if "not of this user" in record.message]) == 1


# -- gRPC


def echo(request: Any, context: grpc.ServicerContext) -> bytes:
    return b"".join(request) if hasattr(request, "__next__") else bytes(request)


def twice(request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
    yield from [echo(request, context)] * 2


@pytest.fixture
def channel() -> Iterator[grpc.Channel]:
    """To a server with a method of each kind."""
    guard = OwnUserCalls()
    server = grpc.server(futures.ThreadPoolExecutor(2), interceptors=[guard])
    methods = {
        "UnaryUnary": grpc.unary_unary_rpc_method_handler(echo),
        "UnaryStream": grpc.unary_stream_rpc_method_handler(twice),
        "StreamUnary": grpc.stream_unary_rpc_method_handler(echo),
        "StreamStream": grpc.stream_stream_rpc_method_handler(twice),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
    port = guard.listen(server)
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as found:
        yield found
    server.stop(None).wait()


def answers(channel: grpc.Channel) -> Iterator[bytes]:
    yield channel.unary_unary("/test/UnaryUnary")(b"a", timeout=5)
    yield from channel.unary_stream("/test/UnaryStream")(b"a", timeout=5)
    yield channel.stream_unary("/test/StreamUnary")(iter([b"a", b"b"]), timeout=5)
    yield from channel.stream_stream("/test/StreamStream")(iter([b"a", b"b"]), timeout=5)


def test_our_calls_are_answered(channel: grpc.Channel) -> None:
    assert list(answers(channel)) == [b"a", b"a", b"a", b"ab", b"ab", b"ab"]


@pytest.mark.parametrize("method", ["unary_unary", "unary_stream", "stream_unary", "stream_stream"])
def test_calls_of_another_user_are_refused_also_on_a_connection_that_was_ours(
    channel: grpc.Channel, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(answers(channel))
    monkeypatch.setattr(peers, "is_own", lambda *_: False)
    request: Any = iter([b"a"]) if method.startswith("stream") else b"a"
    name = "".join(part.capitalize() for part in method.split("_"))
    call = getattr(channel, method)(f"/test/{name}")
    with pytest.raises(grpc.RpcError) as refused:
        list(call(request, timeout=5))
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_an_unknown_method_stays_unknown(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary("/test/Other")(b"a", timeout=5)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
