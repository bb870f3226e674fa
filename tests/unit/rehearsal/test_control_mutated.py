"""Requests to the control endpoint that are broken somewhere: done or refused in a sentence, no failure of ours."""

from __future__ import annotations

import http.client
import json
import select
import socket
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, binary, data, integers, sampled_from

from rehearsal.session.control import TOKEN_VARIABLE, URL_VARIABLE, Control, ControlServer
from tests.mutations import mutations
from tests.unit.rehearsal.test_control import TheCloud

MOST_SECONDS = 1.0
MOST_BYTES = 100 * 2**20
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/faults", {"kind": "throttle", "calls": 20}),
    (
        "POST",
        "/faults",
        {"kind": "out-of-capacity", "instanceTypes": ["m5.large"], "capacityTypes": ["spot"], "zones": ["us-east-1a"]},
    ),
    ("GET", "/faults", {}),
    ("DELETE", "/faults", {}),
    ("POST", "/interruptions", {"kind": "interruption", "instance": "aws:///us-east-1a/i-1"}),
    ("POST", "/images", {}),
    ("POST", "/restarts", {"engine": "kube-apiserver"}),
    ("GET", "/resources", {}),
]
LONGEST_WAIT = 0.2
FEW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


class Port:
    """The endpoint on the wire, asked in bytes."""

    def __init__(self) -> None:
        self.server = ControlServer(Control(TheCloud(), {"kube-apiserver": lambda: None}))
        variables = self.server.start()
        self.host = urlsplit(variables[URL_VARIABLE]).netloc
        self.token = variables[TOKEN_VARIABLE]

    def written(self, method: str, path: str, body: bytes) -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def send(self, request: bytes) -> tuple[int, Any]:
        """Status and body of the answer to bytes after which nothing follows; 0 where there was no answer."""
        address, _, port = self.host.partition(":")
        with socket.create_connection((address, int(port)), timeout=MOST_SECONDS) as connection:
            connection.sendall(request)
            if not select.select([connection], [], [], LONGEST_WAIT)[0]:
                connection.shutdown(socket.SHUT_WR)  # the endpoint waits for more
            answer = http.client.HTTPResponse(connection)
            try:
                answer.begin()
            except (http.client.RemoteDisconnected, ConnectionResetError):
                return 0, None
            return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    found = Port()
    yield found
    found.server.stop()


def test_the_requests_are_right_before_they_are_broken(port: Port) -> None:
    for method, path, body in REQUESTS:
        assert port.send(port.written(method, path, json.dumps(body).encode()))[0] == 200


@FEW
@given(draw=data())
def test_a_broken_body_is_done_or_refused_in_a_sentence(port: Port, draw: DataObject) -> None:
    method, path, body = draw.draw(sampled_from(REQUESTS))
    broken = json.dumps(draw.draw(mutations(body))).encode()
    tracemalloc.start()
    started = time.monotonic()
    try:
        status, answer = port.send(port.written(method, path, broken))
        assert time.monotonic() - started < MOST_SECONDS
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    assert status < 500
    assert status == 200 or 0 < len(answer["error"]) < 1000


@FEW
@given(draw=data())
def test_broken_bytes_are_answered_with_a_status_and_a_sentence(port: Port, draw: DataObject) -> None:
    method, path, body = draw.draw(sampled_from(REQUESTS))
    request = port.written(method, path, json.dumps(body).encode())
    start, length = draw.draw(integers(0, len(request))), draw.draw(integers(0, 20))
    broken = request[:start] + draw.draw(binary(max_size=20)) + request[start + length :]
    status, answer = port.send(broken)
    if status == 0:
        # What begins with an empty line is no request, and http.server hangs up.
        assert not broken.partition(b"\n")[0].split()
    else:
        assert status < 500 or status in (501, 505)
        assert status == 200 or answer["error"]


@pytest.mark.parametrize(
    "line", [b"GET /faults\r\n\r\n", b"x\r\n\r\n", b"GET /".ljust(65_537, b"x"), b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_http_of_today_gets_a_status_too(port: Port, line: bytes) -> None:
    status, answer = port.send(line)
    assert 400 <= status < 600
    assert "nothing was done" in answer["error"]
