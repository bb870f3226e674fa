"""Whatever answers in a cloud's place is no cloud: it is told in a sentence, soon, and holds little memory."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from karpstack.preflight import answers
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.finding import NotAskedError
from tests.unit.preflight.test_asking import SERVICES, cluster
from tests.unit.preflight.test_asking_azure import Token

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n"
JSON, XML, HTML = b"application/json", b"text/xml", b"text/html"
BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    b'<!ENTITY %c "%b">' % (98 + number, b"&%c;" % (97 + number) * 10) for number in range(9)
)


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b"\r\n")
    while True:
        connection.sendall(b"[" * 65_536)


def announced(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b"Content-Length: 99999999999\r\n\r\n")
    while True:
        connection.sendall(b"{" * 65_536)


def chunked(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


def dripping(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b"Content-Length: 1000000\r\n\r\n")
    for _ in range(150):
        connection.sendall(b" ")
        _sleep(0.1)


def once(body: bytes, kind: bytes = JSON) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(HEAD % kind + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def redirecting(connection: socket.socket) -> None:
    connection.sendall(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


def cut(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b'Content-Length: 1000\r\n\r\n{"clusters": [')


def silent(connection: socket.socket) -> None:
    """It hangs up."""


LIES = {
    "endless": endless,
    "announced": announced,
    "chunked": chunked,
    "dripping": dripping,
    "redirecting": redirecting,
    "cut": cut,
    "silent": silent,
    "many values": once(b'{"value": [' + b"{}," * 50_000 + b"{}]}"),
    "deep": once(b"[" * 100_000),
    "a login page": once(b"<html><form>Please log in</form></html>", HTML),
    "entities": once(BOMB + b"]><x>&j;</x>", XML),
    "no HTTP": lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n" * 10),
}


@contextmanager
def false_cloud(lie: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port that answers each request with a lie."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65_536)
                lie(connection)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass
            except OSError:
                pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            Thread(target=answer, args=(connection,), daemon=True).start()

    Thread(target=serve, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]


def ask_aws(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    return Aws.connect("us-east-1").ask("eks", "ListClusters")


def ask_ec2(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    """In XML."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    return Aws.connect("us-east-1").all("ec2", "DescribeVpcs", "Vpcs")


def ask_azure(port: int, _: pytest.MonkeyPatch, __: Path) -> object:
    return Azure("sub", Login(Token(), "a test", f"http://127.0.0.1:{port}", "x/.default")).all(
        "Microsoft.X/read", "/subscriptions/sub/x", "2024-01-01"
    )


def ask_cluster(port: int, _: pytest.MonkeyPatch, folder: Path) -> object:
    return cluster(folder, port).list(SERVICES)


@pytest.mark.parametrize("ask", [ask_aws, ask_ec2, ask_azure, ask_cluster], ids=lambda one: one.__name__)
@pytest.mark.parametrize("lie", LIES)
def test_a_false_cloud_is_told_in_a_sentence(
    lie: str,
    ask: Callable[[int, pytest.MonkeyPatch, Path], object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(answers, "_BYTES", 2**20)
    monkeypatch.setattr(answers, "_VALUES", 10_000)
    monkeypatch.setattr(answers, "SECONDS", 1)
    monkeypatch.setattr("time.sleep", _soon)
    with false_cloud(LIES[lie]) as port:
        begun = time.monotonic()
        with pytest.raises(NotAskedError) as told:
            ask(port, monkeypatch, tmp_path)
        assert time.monotonic() - begun < 10.0
        assert 0 < len(str(told.value)) < 2_000


_sleep = time.sleep


def _soon(seconds: float) -> None:
    """Pauses before a question is asked again."""
    _sleep(min(seconds, 0.1))
