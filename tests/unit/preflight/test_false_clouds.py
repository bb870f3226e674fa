"""Whatever answers in a cloud's place is no cloud: it is told in a sentence, soon, and holds little memory."""

from __future__ import annotations

import gzip
import json
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.azure import charts
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.finding import NotAskedError
from karpstack.preflight.refresh.azure import price_list
from karpstack.pull_request.comment import post
from karpstack.pull_request.github import GitHub, GitHubError
from karpstack.pull_request.text import marker
from karpstack.scale_test.connecting import connect
from karpstack.scale_test.recording.following import BrokenError
from karpstack.scale_test.recording.request import version
from karpstack.snapshot.cluster import ClusterError, take
from tests.unit.preflight.fake_server import FakeServer
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
    connection.sendall(CHUNKED)
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


def dripping(begin: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.sendall(begin)
        for _ in range(150):
            connection.sendall(drop)
            _sleep(0.1)

    return answer


CHUNKED = HEAD % JSON + b"Transfer-Encoding: chunked\r\n\r\n"
#: Answers that never end, and never pause. Each but the first makes a single read last forever.
DRIPS = {
    "a dripping body": dripping(HEAD % JSON + b"Content-Length: 1000000\r\n\r\n", b" "),
    "a dripping status": dripping(b"HTTP/1.1 200 ", b"O"),
    "a dripping header": dripping(HEAD % JSON + b"X: ", b"x"),
    "a dripping size of a chunk": dripping(CHUNKED, b"0"),
    "endless trailers": dripping(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: x\r\n"),
    "endless 100 Continue": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


def once(body: bytes, kind: bytes = JSON) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(HEAD % kind + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def redirecting(connection: socket.socket) -> None:
    connection.sendall(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


#: 64 MiB, and what that is compressed once more.
ONCE = gzip.compress(b"[" * 2**26)
TWICE = gzip.compress(ONCE)


def squeezed(connection: socket.socket, body: bytes = ONCE, how: bytes = b"gzip") -> None:
    head = b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (how, len(body))
    connection.sendall(HEAD % JSON + head + body)


def squeezed_twice(connection: socket.socket) -> None:
    squeezed(connection, TWICE, b"gzip, gzip")


def cut(connection: socket.socket) -> None:
    connection.sendall(HEAD % JSON + b'Content-Length: 1000\r\n\r\n{"clusters": [')


def silent(connection: socket.socket) -> None:
    """It hangs up."""


LIES = {
    "endless": endless,
    "announced": announced,
    "chunked": chunked,
    **DRIPS,
    "redirecting": redirecting,
    "squeezed": squeezed,
    "squeezed twice": squeezed_twice,
    "cut": cut,
    "silent": silent,
    "many elements": once(b"<a>" + b"<a/>" * 50_000 + b"</a>", XML),
    "many values": once(b'{"value": [' + b"{}," * 50_000 + b"{}]}"),
    "deep": once(b"[" * 100_000),
    "a login page": once(b"<html><form>Please log in</form></html>", HTML),
    "another document": once(b"<a><b/></a>", XML),
    "a deep document": once(b"<a>" * 50_000 + b"</a>" * 50_000, XML),
    "other types": once(b'{"clusters": 5, "Quotas": [7], "value": {"a": 1}, "items": "x", "nextToken": {}}'),
    "no object": once(b'"x"'),
    "entities": once(BOMB + b"]><x>&j;</x>", XML),
    "no HTTP": lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n" * 10),
}


@contextmanager
def false_cloud(lie: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port that answers each request with a lie."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

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
            connections.append(connection)
            Thread(target=answer, args=(connection,), daemon=True).start()

    Thread(target=serve, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]
    for connection in connections:  # threads that still read end with the test
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def aws(port: int, monkeypatch: pytest.MonkeyPatch) -> Aws:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    return Aws.connect("us-east-1")


def ask_aws(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    return aws(port, monkeypatch).ask("eks", "ListClusters")


def ask_ec2(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    """In XML."""
    return aws(port, monkeypatch).all("ec2", "DescribeVpcs", "Vpcs")


def ask_sts(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    """In XML with a result around it: the first question of every look."""
    return aws(port, monkeypatch).ask("sts", "GetCallerIdentity")


def ask_quotas(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    """In JSON with the operation as a header."""
    return aws(port, monkeypatch).all("service-quotas", "ListServiceQuotas", "Quotas", ServiceCode="ec2")


def ask_azure(port: int, _: pytest.MonkeyPatch, __: Path) -> object:
    return Azure("sub", Login(Token(), "a test", f"http://127.0.0.1:{port}", "x/.default")).all(
        "Microsoft.X/read", "/subscriptions/sub/x", "2024-01-01"
    )


def ask_cluster(port: int, _: pytest.MonkeyPatch, folder: Path) -> object:
    return cluster(folder, port).list(SERVICES)


def ask_snapshot(port: int, _: pytest.MonkeyPatch, folder: Path) -> object:
    cluster(folder, port)
    return take(folder / "kubeconfig")


def ask_version(port: int, _: pytest.MonkeyPatch, folder: Path) -> object:
    """The recorder's first question."""
    cluster(folder, port)
    return version(connect(folder / "kubeconfig"))


def ask_github(port: int, _: pytest.MonkeyPatch, __: Path) -> object:
    api = GitHub(f"http://127.0.0.1:{port}", "ghs_CANARY", sleep=_soon)
    return post(api, "ours/karpstack", 7, marker(), author="a")


def ask_for_a_login(variable: str, port: int, monkeypatch: pytest.MonkeyPatch) -> object:
    """The variables of keys would keep botocore from asking this server."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv(variable, f"http://127.0.0.1:{port}/login")
    return Aws.connect("us-east-1").ask("eks", "ListClusters")


def ask_container(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    return ask_for_a_login("AWS_CONTAINER_CREDENTIALS_FULL_URI", port, monkeypatch)


def ask_instance(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    return ask_for_a_login("AWS_EC2_METADATA_SERVICE_ENDPOINT", port, monkeypatch)


ASKS = [
    *(ask_aws, ask_ec2, ask_sts, ask_quotas, ask_container, ask_instance),
    *(ask_azure, ask_cluster, ask_snapshot, ask_version, ask_github),
]


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize("ask", ASKS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("lie", LIES)
def test_a_false_cloud_is_told_in_a_sentence(
    lie: str,
    ask: Callable[[int, pytest.MonkeyPatch, Path], object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("time.sleep", _soon)
    with false_cloud(LIES[lie]) as port:
        begun = time.monotonic()
        with pytest.raises((NotAskedError, ClusterError, BrokenError, GitHubError)) as told:
            ask(port, monkeypatch, tmp_path)
        assert time.monotonic() - begun < 10.0
        assert 0 < len(str(told.value)) < 2_000
        assert ("takes longer than 1 s" in str(told.value)) == (lie in DRIPS)
        assert (" values" in str(told.value)) >= lie.startswith("many ")


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize("lie", ["a dripping status", "a dripping header"])
def test_a_price_list_that_drips_is_not_waited_for(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has a fixed address with TLS, so the proxy drips."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with false_cloud(DRIPS[lie]) as port:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        with pytest.raises(NotAskedError, match="takes longer than 1 s"):
            price_list("westus2")


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize(
    "ask", [ask_aws, ask_container, ask_instance, ask_azure, ask_cluster, ask_github], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("lie", [squeezed, squeezed_twice], ids=lambda one: one.__name__)
def test_a_small_answer_does_not_become_a_large_one(
    lie: Callable[[socket.socket], None],
    ask: Callable[[int, pytest.MonkeyPatch, Path], object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with false_cloud(lie) as port:
        tracemalloc.start()
        with pytest.raises((NotAskedError, GitHubError), match="longer than"):
            ask(port, monkeypatch, tmp_path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 20 * 2**20, "of 64 MiB"


def ask_aws_for_all(port: int, monkeypatch: pytest.MonkeyPatch, _: Path) -> object:
    return aws(port, monkeypatch).all("eks", "ListClusters", "clusters")


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize("ask", [ask_aws_for_all, ask_azure, ask_cluster, ask_snapshot], ids=lambda one: one.__name__)
def test_many_answers_that_are_not_too_long_do_not_fill_the_memory(
    ask: Callable[[int, pytest.MonkeyPatch, Path], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FakeServer() as cloud:
        aws: dict[str, object] = {"clusters": [], "nextToken": "more"}
        azure = {"value": [], "nextLink": f"http://127.0.0.1:{cloud.port}/subscriptions/sub/x?more"}
        kubernetes = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": "more"}, "items": []}
        cloud.headers["x-amzn-RequestId"] = "a"
        cloud.otherwise = (200, json.dumps(aws | azure | kubernetes | {"long": "x" * 900_000}))
        with pytest.raises((NotAskedError, ClusterError), match="all answers together are longer"):
            ask(cloud.port, monkeypatch, tmp_path)
        assert len(cloud.asked) == 2


@pytest.mark.parametrize("variable", ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"])
def test_who_has_the_login_of_a_machine_is_asked_without_a_proxy(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer() as server:
        with pytest.raises(NotAskedError):
            ask_for_a_login(variable, server.port, monkeypatch)
        assert server.asked


@pytest.mark.parametrize("location", ["http://127.0.0.1:{}/latest/meta-data", "file:///etc/passwd", "//127.0.0.1:{}/"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("ask", [ask_aws, ask_azure, ask_cluster, ask_github], ids=lambda one: one.__name__)
def test_nobody_is_led_elsewhere(
    ask: Callable[[int, pytest.MonkeyPatch, Path], object],
    status: int,
    location: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("time.sleep", _soon)
    with FakeServer() as elsewhere, FakeServer() as cloud:
        cloud.headers["Location"] = location.format(elsewhere.port)
        cloud.otherwise = (status, "")
        with pytest.raises((NotAskedError, GitHubError)):
            ask(cloud.port, monkeypatch, tmp_path)
        assert cloud.asked
        assert not elsewhere.asked


def test_a_server_that_moves_does_not_make_the_token_part_of_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FakeServer() as cloud:
        cloud.headers["Location"] = f"/ghs_CANARY/{'A' * 20_000}"
        cloud.otherwise = (307, "")
        with pytest.raises(GitHubError) as told:
            ask_github(cloud.port, monkeypatch, tmp_path)
        assert "/***/A" in str(told.value)
        assert len(str(told.value)) < 1_000


def test_a_cluster_that_moves_lacks_no_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with FakeServer() as server:
        server.otherwise = (307, "")
        with pytest.raises(ClusterError, match="307 is no answer to it; a proxy or a login page may be between"):
            ask_snapshot(server.port, monkeypatch, tmp_path)


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Please log in</html>",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/login\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
    ],
    ids=lambda one: one[:12].decode(),
)
def test_a_proxy_that_answers_in_a_clouds_place_is_told_in_a_sentence(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", _soon)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with false_cloud(lambda connection: connection.sendall(answer)) as port:
        for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "a")
        cloud = Azure("sub", Login(Token(), "a test", "https://management.azure.com", "x/.default"))
        for ask in (
            lambda: Aws.connect("us-east-1").ask("eks", "ListClusters"),
            lambda: cloud.all("Microsoft.X/read", "/subscriptions/sub/x", "2024-01-01"),
            lambda: charts._status("GET https://mcr.microsoft.com/v2/x/manifests/1"),
        ):
            with pytest.raises(NotAskedError) as told:
                ask()
            assert 0 < len(str(told.value)) < 2_000


def test_a_registry_that_redirects_to_what_is_no_address_has_answered() -> None:
    with FakeServer() as registry:
        registry.headers["Location"] = "http://[::1/x"
        registry.otherwise = (307, "")
        assert charts._status(f"GET http://127.0.0.1:{registry.port}/v2/x/manifests/1") == 307


_sleep = time.sleep


def _soon(seconds: float) -> None:
    """Pauses before a question is asked again."""
    _sleep(min(seconds, 0.1))
