"""What a rehearsal listens on: every address, what it is for, and who gets an answer there.

`declared` is the list, and the place where a new listener is entered; `open_sockets` is what the kernel says. `status`
shows both as one table, in which what nobody has entered stands out.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import yaml
from rich.table import Table
from rich.text import Text

from karpstack.rehearsal.control import URL_VARIABLE
from karpstack.rehearsal.host.guard import LOOPBACK, NO_BROWSER, OWN_USER
from karpstack.rehearsal.session.clouds import CLOUDS
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.state.folder import StackFolder

_TOKEN = "a bearer token"  # noqa: S105 - words for people
_UNKNOWN = "not declared"


@dataclass(frozen=True)
class Listener:
    """An address and its guard.

    Attributes:
        process: `daemon`, or the name of the engine.
        address: `127.0.0.1:<port>`, or `unix:<path>`; an abstract unix socket's path begins with @.
        purpose: What it is for.
        guard: Who gets an answer.
    """

    process: str
    address: str
    purpose: str
    guard: str


def declared(folder: StackFolder, info: DaemonInfo) -> Iterator[Listener]:
    """What the rehearsal of a stack listens on, as far as it has come up."""
    for package, port in info.providers.items():
        yield Listener("daemon", f"{LOOPBACK}:{port}", f"Pulumi's provider for {package}", OWN_USER)
    if info.account:
        cloud = CLOUDS[info.cloud]
        guard = f"{OWN_USER}, {NO_BROWSER}, {cloud.credentials}"
        yield Listener("daemon", _address(info.account), cloud.account, guard)
    if control := info.variables.get(URL_VARIABLE):
        yield Listener("daemon", _address(control), "the control endpoint", f"{OWN_USER}, {NO_BROWSER}, {_TOKEN}")
    if folder.kubeconfig.is_file():
        (cluster,) = yaml.safe_load(folder.kubeconfig.read_text())["clusters"]
        yield Listener("kube-apiserver", _address(cluster["cluster"]["server"]), "Kubernetes' API", f"TLS, {_TOKEN}")
    for path in sorted(folder.control_plane.glob("etcd*.sock")):
        yield Listener("etcd", f"unix:{path}", "what the cluster keeps", "a folder that only this user may enter")
    if folder.metrics_address.is_file():
        url = folder.metrics_address.read_text()
        yield Listener(f"karpenter-{info.cloud}", _address(url), "the controller's metrics and health", _TOKEN)


def open_sockets(info: DaemonInfo) -> set[tuple[str, str]]:
    """Process and address of every socket on which the daemon and its descendants take connections or datagrams."""
    daemon = psutil.Process(info.pid)
    listening = set()
    for process in [daemon, *daemon.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            name = "daemon" if process.pid == info.pid else Path(process.exe()).name
            listening |= {(name, address) for address in _open(process)}
    return listening


def table(folder: StackFolder, info: DaemonInfo) -> Table:
    """For people: the kernel's sockets in the words of `declared`."""
    known = {(each.process, each.address): each for each in declared(folder, info)}
    shown = Table(title="listening", title_justify="left")
    for column in ("process", "address", "for", "answers"):
        shown.add_column(column, overflow="fold")
    for process, address in sorted(open_sockets(info)):
        listener = known.get((process, address)) or Listener(process, address, _UNKNOWN, _UNKNOWN)
        _add(shown, (process, address, listener.purpose, listener.guard))
    return shown


def _add(shown: Table, texts: Iterable[str]) -> None:
    # As texts: a path may have brackets, which are markup in a plain string.
    shown.add_row(*(Text(text, style="bold red" if text == _UNKNOWN else "") for text in texts))


def _open(process: psutil.Process) -> Iterator[str]:
    for each in process.net_connections("all"):
        if each.family == socket.AF_UNIX:
            # Both ends of a connection show the path that one of them is bound to, or none.
            if path := str(each.laddr):
                yield f"unix:{path if path.startswith('@') else Path(process.cwd(), path)}"
        elif each.status == psutil.CONN_LISTEN or (each.type == socket.SOCK_DGRAM and not each.raddr):
            # A socket for both protocols shows an address of IPv4 so.
            yield f"{each.laddr[0].removeprefix('::ffff:')}:{each.laddr[1]}"


def _address(url: str) -> str:
    return urlsplit(url).netloc
