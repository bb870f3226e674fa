"""What each process of a control plane listens on, and for whom: its command line says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from rehearsal.cluster import servers
from rehearsal.state.folder import StackFolder

PORT = 23456


class Processes:
    """Stands in for `Engines`: notes command lines and working folders."""

    def __init__(self) -> None:
        self.arguments: dict[str, list[str]] = {}
        self.folders: dict[str, Path] = {}
        self.programs: dict[str, Path] = {}

    def restart(self, name: str, grace: float = 5.0, program: Path = Path()) -> SimpleNamespace:
        self.programs[name] = program
        return SimpleNamespace()

    def start(
        self, name: str, command: Sequence[object], *, environment: Mapping[str, str], cwd: Path
    ) -> SimpleNamespace:
        self.programs[name] = Path(str(command[0]))
        self.arguments[name] = [str(argument) for argument in command[1:]]
        self.folders[name] = cwd
        return SimpleNamespace()


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processes:
    monkeypatch.setattr(servers, "wait_until", lambda *_, **__: None)
    processes = Processes()
    servers.start(
        StackFolder("test", tmp_path).create(),
        processes,  # type: ignore[arg-type]
        SimpleNamespace(program=Path, server=lambda name, version: Path(version) / name),  # type: ignore[arg-type]
        name="test",
        version="1.35",
        port=PORT,
        service_cidr="172.20.0.0/16",
        issuer="https://issuer.example",
    )
    return processes


def values(arguments: Sequence[str], option: str) -> list[str]:
    return [value for name, _, value in (argument.partition("=") for argument in arguments) if name == option]


def test_etcd_listens_on_sockets_in_the_private_folder_only(started: Processes, tmp_path: Path) -> None:
    arguments = started.arguments["etcd"]
    assert values(arguments, "--listen-client-urls") == ["unix://etcd.sock"]
    assert values(arguments, "--listen-peer-urls") == ["unix://etcd-peer.sock"]
    assert values(arguments, "--enable-grpc-gateway") == ["false"]
    assert not values(arguments, "--listen-metrics-urls")
    assert not values(arguments, "--listen-client-http-urls")
    folder = started.folders["etcd"]
    assert folder == StackFolder("test", tmp_path).control_plane
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_api_server_finds_etcds_socket(started: Processes) -> None:
    assert values(started.arguments["kube-apiserver"], "--etcd-servers") == ["unix://etcd.sock"]
    assert started.folders["kube-apiserver"] == started.folders["etcd"]


def test_the_api_server_lets_nobody_in_without_a_token_and_listens_on_loopback(started: Processes) -> None:
    arguments = started.arguments["kube-apiserver"]
    assert values(arguments, "--anonymous-auth") == ["false"]
    assert values(arguments, "--bind-address") == ["127.0.0.1"]
    assert values(arguments, "--secure-port") == [str(PORT)]
    assert values(arguments, "--authorization-mode") == ["RBAC"]


@pytest.mark.parametrize(
    ("name", "option"),
    [("kube-controller-manager", "--secure-port"), ("kube-scheduler", "--secure-port"), ("kwok", "--node-port")],
)
def test_the_others_do_not_listen(started: Processes, name: str, option: str) -> None:
    assert values(started.arguments[name], option) == ["0"]


def test_no_secret_is_in_a_command_line(started: Processes, tmp_path: Path) -> None:
    tokens = StackFolder("test", tmp_path).control_plane / "tokens.csv"
    token = tokens.read_text().partition(",")[0]
    assert not [name for name, arguments in started.arguments.items() if token in " ".join(arguments)]


def test_servers_of_the_version_are_started(started: Processes) -> None:
    assert started.programs == {
        "etcd": Path("etcd"),
        "kwok": Path("kwok"),
        **{name: Path("1.35") / name for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")},
    }


def test_an_upgrade_puts_another_version_of_the_servers_in_their_place_the_api_server_first(
    started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "wait_until", lambda *_, **__: None)
    started.programs.clear()
    engine_set = SimpleNamespace(server=lambda name, version: Path(version) / name)
    servers.upgrade(started, engine_set, SimpleNamespace(healthy=None), "1.36")  # type: ignore[arg-type]
    assert list(started.programs.items()) == [
        (name, Path("1.36") / name) for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ]
