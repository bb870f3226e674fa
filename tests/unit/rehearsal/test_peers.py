"""Whose a connection is, asked of the kernel in each of the ways that a machine may allow."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from karpstack.rehearsal.host import peers


@dataclass
class Connection:
    client: socket.socket
    server: socket.socket

    def is_own(self) -> bool:
        address: peers.Address = self.client.getsockname()
        return peers.is_own(("127.0.0.1", address[1]), self.server.getsockname())


def use(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the kernel asked in one of the ways, where the machine has it."""
    if way == "processes":
        monkeypatch.setattr("sys.platform", "darwin")
        monkeypatch.setattr(peers, "_remembered", {})
    elif not Path("/proc/net/tcp").exists():
        pytest.skip("only Linux shows connections in /proc")
    elif way == "tables":
        monkeypatch.setattr(peers, "_kernel_can_be_asked", lambda: False)
    elif not peers._kernel_can_be_asked():
        pytest.skip("this kernel has no sock_diag(7)")


@pytest.fixture(params=["asked", "tables", "processes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How the kernel is asked."""
    use(request.param, monkeypatch)


# A client's socket may be one for both protocols.
@pytest.fixture(params=["asked", "asked, mapped", "tables", "tables, mapped", "processes"])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection of our own."""
    how, _, mapped = request.param.partition(", ")
    use(how, monkeypatch)
    family, host = (socket.AF_INET6, "::ffff:127.0.0.1") if mapped else (socket.AF_INET, "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(family) as client:
        client.connect((host, listener.getsockname()[1]))
        accepted, _ = listener.accept()
        with accepted:
            yield Connection(client, accepted)


def test_our_connection_is_ours(connection: Connection) -> None:
    assert connection.is_own()


def test_another_users_connection_is_not(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert not connection.is_own()


def test_a_connection_that_is_closed_belongs_to_nobody(connection: Connection) -> None:
    """The kernel shows its user as 0 from then on, which is root's."""
    address = ("127.0.0.1", connection.client.getsockname()[1])
    connection.client.close()
    assert not peers.is_own(address, connection.server.getsockname())


@pytest.mark.usefixtures("way")
def test_a_socket_that_listens_on_the_clients_port_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not peers.is_own(listener.getsockname(), ("127.0.0.1", 1))


def test_both_ends_count(connection: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert not peers.is_own(connection.client.getsockname()[:2], other.getsockname())


@pytest.mark.parametrize("client", [("::1", 5), ("", 5), ("no address", 5), ("127.0.0.1", 70_000), ("127.0.0.1", -1)])
@pytest.mark.usefixtures("way")
def test_what_cannot_be_told_is_no(client: peers.Address) -> None:
    assert not peers.is_own(client, ("127.0.0.1", 1))


def test_a_kernel_that_does_not_answer_means_no(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("too many open files")

    for name in ("_asked", "_looked_up", "_is_of_own_process"):
        monkeypatch.setattr(peers, name, broken)
    assert not connection.is_own()


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="this system does not tell the state of a connection")
def test_a_connection_that_was_reset_is_not_whole(connection: Connection) -> None:
    assert peers.is_established(connection.server)
    connection.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.client.close()
    assert not peers.is_established(connection.server)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_port_is_ours_while_we_alone_listen_there(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert peers.is_own_listener(port)
        monkeypatch.setattr("os.geteuid", lambda: 12345)  # of whom nothing listens there
        assert not peers.is_own_listener(port)
    monkeypatch.undo()
    assert not peers.is_own_listener(port)
