"""Ports that are held for engines, and the address of the controller's metrics."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from karpstack.rehearsal.cluster.controller_endpoint import ControllerEndpoint
from karpstack.rehearsal.cluster.ports import ReservedPort
from karpstack.rehearsal.state.folder import StackFolder
from tests.serving import serving


@pytest.fixture
def port() -> Iterator[ReservedPort]:
    reserved = ReservedPort()
    yield reserved
    reserved.close()


def test_whoever_does_not_share_a_reserved_port_is_refused(port: ReservedPort) -> None:
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port.number))


def test_the_engine_that_shares_it_gets_the_connections(port: ReservedPort) -> None:
    with socket.socket() as engine:
        engine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        engine.bind(("127.0.0.1", port.number))
        engine.listen()
        with socket.create_connection(("127.0.0.1", port.number), timeout=5), engine.accept()[0] as accepted:
            assert accepted.getsockname()[1] == port.number


def test_a_port_that_was_given_away_is_anybodys() -> None:
    reserved = ReservedPort()
    reserved.close()
    reserved.close()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", reserved.number))


class Controller(ThreadingHTTPServer):
    """Answers as the guard does."""

    allow_reuse_port = True

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", int(variables["METRICS_PORT"])), Answer)
        self.token = variables["KARPSTACK_METRICS_TOKEN"]
        self.status = 200


class Answer(BaseHTTPRequestHandler):
    server: Controller

    def do_GET(self) -> None:
        known = self.headers["Authorization"] == f"Bearer {self.server.token}" and self.path == "/readyz"
        self.send_response(self.server.status if known else 401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    folder = StackFolder("test", tmp_path).create()
    folder.controller.mkdir()
    return folder


@pytest.fixture
def endpoint(folder: StackFolder) -> Iterator[ControllerEndpoint]:
    endpoint = ControllerEndpoint(folder)
    yield endpoint
    endpoint.close()


def test_ready_is_what_the_controller_says_to_who_knows_the_secret(endpoint: ControllerEndpoint) -> None:
    assert not endpoint.ready()
    with serving(Controller(endpoint.variables)) as controller:
        assert endpoint.ready()
        controller.status = 500
        assert not endpoint.ready()
        controller.status, controller.token = 200, "another"
        assert not endpoint.ready()


def test_its_secret_lies_beside_its_address_for_the_owner_alone(
    folder: StackFolder, endpoint: ControllerEndpoint
) -> None:
    endpoint.publish()
    variables = endpoint.variables
    assert folder.metrics_address.read_text() == f"http://127.0.0.1:{variables['METRICS_PORT']}/metrics"
    assert folder.metrics_token.read_text() == variables["KARPSTACK_METRICS_TOKEN"]
    assert folder.metrics_token.stat().st_mode & 0o777 == 0o600
    endpoint.withdraw()
    assert not folder.metrics_address.exists()
    assert not folder.metrics_token.exists()


def test_every_cluster_has_a_secret_of_its_own(folder: StackFolder, endpoint: ControllerEndpoint) -> None:
    other = ControllerEndpoint(folder)
    other.close()
    assert other.variables["KARPSTACK_METRICS_TOKEN"] != endpoint.variables["KARPSTACK_METRICS_TOKEN"]
