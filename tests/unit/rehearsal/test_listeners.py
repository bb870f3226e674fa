"""What listens, according to the rehearsal and to the kernel."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import yaml
from rich.console import Console

from karpstack.rehearsal.control import URL_VARIABLE
from karpstack.rehearsal.session import listeners
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.state.folder import StackFolder


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path / "state").create()


def info(**changes: object) -> DaemonInfo:
    """This process as a daemon."""
    return DaemonInfo(os.getpid(), psutil.Process().create_time(), "aws", "us-east-1", **changes)  # type: ignore[arg-type]


@pytest.fixture
def opened(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, socket.socket]]:
    """A socket of each kind by its address."""
    monkeypatch.chdir(folder.control_plane)
    with ExitStack() as stack:

        def bound(family: int, kind: int, address: object) -> socket.socket:
            found = stack.enter_context(socket.socket(family, kind))
            found.bind(address)  # type: ignore[arg-type]
            return found

        tcp = bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        tcp6 = bound(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        udp = bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        unix = bound(socket.AF_UNIX, socket.SOCK_STREAM, "etcd.sock")
        abstract = bound(socket.AF_UNIX, socket.SOCK_STREAM, f"\0karpstack-{os.getpid()}")
        for each in (tcp, tcp6, unix, abstract):
            each.listen()
        yield {
            f"127.0.0.1:{tcp.getsockname()[1]}": tcp,
            f"::1:{tcp6.getsockname()[1]}": tcp6,
            f"127.0.0.1:{udp.getsockname()[1]}": udp,
            f"unix:{folder.control_plane}/etcd.sock": unix,
            f"unix:@karpstack-{os.getpid()}": abstract,
        }


def test_the_kernel_shows_sockets_of_every_kind(opened: dict[str, socket.socket]) -> None:
    assert {("daemon", address) for address in opened} <= listeners.open_sockets(info())


def test_a_client_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert f"127.0.0.1:{client.getsockname()[1]}" not in {address for _, address in listeners.open_sockets(info())}


def test_everything_is_declared_with_its_guard(folder: StackFolder) -> None:
    folder.controller.mkdir()
    folder.metrics_address.write_text("http://127.0.0.1:5/metrics")
    folder.kubeconfig.write_text(yaml.safe_dump({"clusters": [{"cluster": {"server": "https://127.0.0.1:4"}}]}))
    (folder.control_plane / "etcd.sock").touch()
    said = info(
        providers={"aws": 1}, account="http://127.0.0.1:2", variables={URL_VARIABLE: "http://127.0.0.1:3"}, ready=True
    )
    found = list(listeners.declared(folder, said))
    assert [(each.process, each.address) for each in found] == [
        ("daemon", "127.0.0.1:1"),
        ("daemon", "127.0.0.1:2"),
        ("daemon", "127.0.0.1:3"),
        ("kube-apiserver", "127.0.0.1:4"),
        ("etcd", f"unix:{folder.control_plane}/etcd.sock"),
        ("karpenter-aws", "127.0.0.1:5"),
    ]
    assert all(each.guard and each.purpose for each in found)


def test_a_rehearsal_that_has_just_begun_declares_nothing(folder: StackFolder) -> None:
    assert list(listeners.declared(folder, info())) == []


def test_what_nobody_declared_stands_out(folder: StackFolder, opened: dict[str, socket.socket]) -> None:
    address, *others = opened
    said = info(providers={"aws": int(address.rpartition(":")[2])})
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(listeners.table(folder, said))
    words = {}
    for line in console.export_text().splitlines():
        _, *cells, _ = line.replace("┃", "│").split("│") if "│" in line else ["", ""]
        words.update({cells[1].strip(): cells[2].strip()} if cells else {})
    assert words[address] == "Pulumi's provider for aws"
    assert {words[other] for other in others} == {"not declared"}
