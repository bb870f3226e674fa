"""What each process of a control plane listens on, and for whom: its command line says it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karpstack.rehearsal.cluster import servers
from karpstack.rehearsal.state.folder import StackFolder

VERSIONED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
ENGINES: Any = SimpleNamespace(program=Path, server=lambda name, version: Path(version) / name)


class Processes:
    """Stands in for `Engines`: notes command lines and working folders."""

    def __init__(self) -> None:
        self.commands: dict[str, list[str]] = {}
        self.folders: set[Path] = set()
        self.restarted: list[tuple[str, Path]] = []

    def restart(self, name: str, grace: float = 5.0, program: Path = Path()) -> None:
        self.restarted.append((name, program))

    def start(self, name: str, command: Sequence[str], *, environment: object, cwd: Path) -> None:
        self.commands[name] = list(command)
        self.folders.add(cwd)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(servers, "wait_until", lambda *_, **__: None)
    processes: Any = Processes()
    how = {"name": "test", "version": "1.35", "service_cidr": "172.20.0.0/16", "issuer": "https://issuer.example"}
    servers.start(StackFolder("test", tmp_path).create(), processes, ENGINES, port=23456, **how)
    return processes


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("etcd", "--listen-client-urls", "unix://etcd.sock"),
        ("etcd", "--listen-peer-urls", "unix://etcd-peer.sock"),
        ("etcd", "--enable-grpc-gateway", "false"),
        ("etcd", "--listen-metrics-urls", None),
        ("etcd", "--listen-client-http-urls", None),
        ("kube-apiserver", "--etcd-servers", "unix://etcd.sock"),
        ("kube-apiserver", "--anonymous-auth", "false"),
        ("kube-apiserver", "--bind-address", "127.0.0.1"),
        ("kube-apiserver", "--secure-port", "23456"),
        ("kube-apiserver", "--authorization-mode", "RBAC"),
        ("kube-apiserver", "--service-account-jwks-uri", "https://issuer.example/keys"),
        ("kube-controller-manager", "--secure-port", "0"),
        ("kube-controller-manager", "--node-monitor-grace-period", servers.NODE_GRACE),
        ("kube-scheduler", "--secure-port", "0"),
        ("kwok", "--node-port", "0"),
    ],
)
def test_who_listens_where_and_for_whom(started: Processes, name: str, option: str, value: str | None) -> None:
    found = [given.partition("=")[2] for given in started.commands[name] if given.partition("=")[0] == option]
    assert found == ([] if value is None else [value])


def test_their_sockets_are_in_a_private_folder_and_no_secret_is_in_a_command_line(
    started: Processes, tmp_path: Path
) -> None:
    folder = StackFolder("test", tmp_path).control_plane
    assert started.folders == {folder}
    assert folder.stat().st_mode & 0o777 == 0o700
    token = (folder / "tokens.csv").read_text().partition(",")[0]
    lines = [" ".join(command) for command in started.commands.values()]
    assert not [line for line in lines if token in line or "{" in line]


def test_servers_of_the_version_are_started_and_an_upgrade_puts_others_in_their_place_the_api_server_first(
    started: Any,
) -> None:
    programs = {name: command[0] for name, command in started.commands.items()}
    assert programs == {"etcd": "etcd", "kwok": "kwok", **{name: f"1.35/{name}" for name in VERSIONED}}
    objects: Any = SimpleNamespace(healthy=None)
    servers.upgrade(started, ENGINES, objects, "1.36")
    assert started.restarted == [(name, Path("1.36") / name) for name in VERSIONED]
