"""The control endpoint, without its port: what it passes on to a cloud, and every refusal."""

from __future__ import annotations

import http.client
import json
import select
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, binary, data, integers, sampled_from

from karpstack.rehearsal.control import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    Body,
    Control,
    ControlError,
    ControlServer,
    Hits,
)
from karpstack.rehearsal.host.processes import EngineCrashError
from tests.mutations import mutations, within_limits


class TheCloud:
    """Records what it is asked for; every fault has hit twice."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def instance_types(self) -> Collection[str]:
        return ["c5.large", "m5.large", "m5.xlarge", "r5.large", "r5.xlarge", "t3.large", "t3.nano"]

    def zones(self) -> Collection[str]:
        return ["us-east-1a", "us-east-1b"]

    def out_of_capacity(self, instance_type: str, capacity_type: str, zone: str) -> Hits:
        self.asked.append((instance_type, capacity_type, zone))
        return lambda: 2

    def throttle(self, calls: int) -> Hits:
        self.asked.append(("throttle", calls))
        return lambda: 2

    def end_faults(self) -> None:
        self.asked.append(("end",))

    def interrupt(self, kind: str, instance: str) -> Sequence[Body]:
        if instance == "absent":
            raise ControlError("there is no instance absent", 404)
        self.asked.append((kind, instance))
        return [{"queue": "arn", "problem": ""}]

    def publish_image(self) -> Sequence[str]:
        self.asked.append(("image",))
        return ["al2023@v20260814"]

    def resources(self) -> Body:
        return {"instances": []}

    def stop(self) -> None:
        self.asked.append(("stop",))


class World:
    def __init__(self, restart: Callable[[], None] = lambda: None) -> None:
        self.cloud = TheCloud()
        self.skipped: list[float] = []
        self.control = Control(self.cloud, {"kube-apiserver": restart}, self.skipped.append)

    def send(self, method: str, path: str, **body: Any) -> tuple[int, Body]:
        return self.control.answer(method, path, json.dumps(body).encode() if body else b"")


CASES = yaml.safe_load(Path(__file__).with_name("control.yaml").read_text())


@pytest.mark.parametrize(("request_", "body", "answer", "asked"), CASES["answered"])
def test_a_request_is_passed_on_and_answered(
    request_: str, body: dict[str, Any], answer: dict[str, Any], asked: list[list[Any]]
) -> None:
    world = World()
    assert world.send(*request_.split(), **body) == (200, answer)
    assert world.cloud.asked == [tuple(one) for one in asked]
    assert world.skipped == ([body["seconds"]] if request_ == "POST /clock" else [])


@pytest.mark.parametrize(("path", "body", "said"), CASES["refused"])
def test_refusals_name_key_value_consequence_and_fix(path: str, body: dict[str, Any], said: list[str]) -> None:
    world = World()
    status, answer = world.control.answer("POST", path, json.dumps(body).encode())
    assert (status, world.cloud.asked, world.skipped) == (400, [], [])
    for text in said:
        assert text in answer["error"]
    assert world.send("GET", "/faults") == (200, {"faults": []})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "throttle", "calls": 10**25}, ("calls = 1000", "no launch would succeed", "to 10000")),
        ({"kind": "x" * 9999}, ('kind = "xxx', "x...: no call would fail")),
    ],
)
def test_what_is_endless_is_refused_in_short(body: dict[str, Any], said: tuple[str, ...]) -> None:
    status, answer = World().send("POST", "/faults", **body)
    assert (status, len(answer["error"]) < 500) == (400, True)
    assert all(text in answer["error"] for text in said)


def test_what_the_cloud_refuses_and_time_that_is_real_are_told() -> None:
    world = World()
    answer = world.send("POST", "/interruptions", kind="interruption", instance="absent")
    assert answer == (404, {"error": "there is no instance absent"})
    status, said = Control(world.cloud, {}).answer("POST", "/clock", b'{"seconds": 1}')
    assert (status, "bring it up with --days" in said["error"]) == (409, True)


def test_faults_are_listed_until_all_end() -> None:
    world = World()
    world.send("POST", "/faults", kind="throttle", calls=20)
    world.send("POST", "/faults", kind="out-of-capacity", instanceTypes=["m5.large"])
    faults = [
        {"kind": "throttle", "calls": 20, "hits": 2},
        {"kind": "out-of-capacity", "instanceTypes": ["m5.large"], "hits": 2},
    ]
    assert world.send("GET", "/faults") == (200, {"faults": faults})
    assert world.send("DELETE", "/faults") == (200, {"faults": faults})
    assert world.cloud.asked[-1] == ("end",)
    assert world.send("GET", "/faults") == (200, {"faults": []})


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (LookupError("no cluster runs; create it"), 409, "no cluster runs"),
        (EngineCrashError("exited with code 1"), 503, "did not come back: exited with code 1"),
        (TimeoutError("was not ready"), 503, "did not come back: was not ready"),
        (RuntimeError("surprise"), 500, "daemon.log"),
    ],
)
def test_a_restart_that_fails_says_so(error: Exception, status: int, text: str) -> None:
    def restart() -> None:
        raise error

    answer = World(restart).send("POST", "/restarts", engine="kube-apiserver")
    assert answer[0] == status
    assert text in answer[1]["error"]


def test_other_requests_are_refused() -> None:
    control = World().control
    status, answer = control.answer("GET", "/fault")
    assert (status, "/faults, /interruptions, /images, /restarts, /clock, /resources" in answer["error"]) == (404, True)
    status, answer = control.answer("PUT", "/faults")
    assert (status, "use GET, POST, DELETE" in answer["error"]) == (405, True)
    for body in (b"{", b"[]", b"\xff", b"[" * 60_000, b"1" * 60_000, b"[" + b"1," * 30_000 + b"1]"):
        status, answer = control.answer("POST", "/faults", body)
        assert (status, "send an object" in answer["error"]) == (400, True)
        assert len(answer["error"]) < 500


def test_stopping_stops_what_is_still_to_happen() -> None:
    world = World()
    world.control.stop()
    assert world.cloud.asked == [("stop",)]


# -- the port


class Port:
    """The endpoint on the wire, and the requests that got to the cloud."""

    def __init__(self) -> None:
        self.world = World()
        self.server = ControlServer(self.world.control)
        self.variables = self.server.start()
        self.host = urlsplit(self.variables[URL_VARIABLE]).netloc

    def send(self, body: bytes = b"", **headers: str) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(self.host, timeout=5)
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        connection.request("POST" if body else "GET", "/faults", body or None, sent)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def written(self, method: str, path: str, body: bytes) -> bytes:
        """A request in bytes."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.variables[TOKEN_VARIABLE]}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def send_bytes(self, request: bytes) -> tuple[int, Any]:
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


@pytest.fixture
def port() -> Iterator[Port]:
    found = Port()
    yield found
    found.server.stop()


FAULT = b'{"kind": "throttle", "calls": 1}'


def test_a_request_with_the_token_is_answered(port: Port) -> None:
    headers = {"Authorization": f"Bearer {port.variables[TOKEN_VARIABLE]}", "Content-Type": "application/json"}
    assert port.send(FAULT, **headers) == (200, {"kind": "throttle", "calls": 1, "hits": 2})
    assert port.send(Authorization=headers["Authorization"])[0] == 200


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer ", "Bearer x", "Basic {}", "{}", "Bearer {}x", "Bearer \xe9"])
def test_nothing_is_done_without_the_token(port: Port, shown: str) -> None:
    status, answer = port.send(FAULT, Authorization=shown.format(port.variables[TOKEN_VARIABLE]))
    assert (status, TOKEN_VARIABLE in answer["error"]) == (401, True)
    assert port.world.cloud.asked == []


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "text/json; application/json"])
def test_a_body_that_does_not_call_itself_json_is_refused(port: Port, kind: str) -> None:
    status, answer = port.send(FAULT, Authorization=f"Bearer {port.variables[TOKEN_VARIABLE]}", Content_Type=kind)
    assert (status, "send application/json" in answer["error"]) == (415, True)
    assert port.world.cloud.asked == []


def test_a_body_that_is_too_large_is_refused(port: Port) -> None:
    headers = {"Authorization": f"Bearer {port.variables[TOKEN_VARIABLE]}", "Content-Type": "application/json"}
    assert port.send(b" " * 65_537, **headers)[0] == 413


def test_each_endpoint_has_a_token_of_its_own(port: Port) -> None:
    assert ControlServer(port.world.control).token != port.variables[TOKEN_VARIABLE]


# -- requests that are broken somewhere: done or refused in a sentence, no failure of ours

MOST_SECONDS = 1.0
LONGEST_WAIT = 0.2
FEW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
#: Method, path and body of requests that are right.
REQUESTS = [(request.split(), body) for request, body, *_ in CASES["answered"]]
REQUESTS += [
    (["GET", "/faults"], {}),
    (["DELETE", "/faults"], {}),
    (["POST", "/faults"], {"kind": "throttle", "calls": 20}),
]


@FEW
@given(draw=data())
def test_a_broken_body_is_done_or_refused_in_a_sentence(port: Port, draw: DataObject) -> None:
    (method, path), body = draw.draw(sampled_from(REQUESTS))
    broken = json.dumps(draw.draw(mutations(body))).encode()
    with within_limits(broken, seconds=MOST_SECONDS, clock=time.monotonic):
        status, answer = port.send_bytes(port.written(method, path, broken))
    assert status < 500
    assert status == 200 or 0 < len(answer["error"]) < 1000


@FEW
@given(draw=data())
def test_broken_bytes_are_answered_with_a_status_and_a_sentence(port: Port, draw: DataObject) -> None:
    (method, path), body = draw.draw(sampled_from(REQUESTS))
    request = port.written(method, path, json.dumps(body).encode())
    start, length = draw.draw(integers(0, len(request))), draw.draw(integers(0, 20))
    broken = request[:start] + draw.draw(binary(max_size=20)) + request[start + length :]
    status, answer = port.send_bytes(broken)
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
    status, answer = port.send_bytes(line)
    assert 400 <= status < 600
    assert "nothing was done" in answer["error"]
