"""What listens in a rehearsal, by the kernel's own tables, and what a stranger gets there."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import pytest
from pulumi.runtime.proto import provider_pb2

from karpstack.rehearsal.attachment import values
from karpstack.rehearsal.control import TOKEN_VARIABLE
from karpstack.rehearsal.session import listeners
from tests.rehearsal.conftest import RehearsedStack, descendants

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the kernel's tables in /proc")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

NOBODY = 65534
_LISTENING = "0A"
#: The flag of a unix socket that takes connections.
_ACCEPTS = 0x10000
_STRANGER = Path(__file__).with_name("stranger.py")
#: What servers written in Go say of themselves: to a request without TLS, and where they have nothing at all.
SAYS_NOTHING = ("Client sent an HTTP request to an HTTPS server.", "404 page not found")


@dataclass(frozen=True)
class Probe:
    """A question of a stranger.

    Attributes:
        kind: http, https, grpc, unix or file.
        address: As in `Listener`; a path for a file.
        path: Of the request, or the gRPC method.
        method: Of the request.
        body: Of the request; in base64 for gRPC.
        headers: Of the request.
    """

    kind: str
    address: str
    path: str = "/"
    method: str = "GET"
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


def outcomes(probes: Sequence[Probe], uid: int | None = None) -> list[str]:
    """What became of each: `error <kind>`, or the status and the beginning of the answer; asked as `uid`."""
    result = subprocess.run(
        [sys.executable, str(_STRANGER), *([] if uid is None else [str(uid)])],
        input=json.dumps([asdict(probe) for probe in probes]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found: list[str] = json.loads(result.stdout)
    return found


def is_nothing(outcome: str) -> bool:
    """Whether somebody has learnt and done nothing."""
    return outcome.startswith(("error ", "401 ", "403 ")) or outcome[len("400 ") :].strip() in SAYS_NOTHING


def only_what_is_declared_listens(stack: RehearsedStack) -> None:
    """Compare the list of listeners with what the kernel says."""
    declared = {listener.address for listener in listeners.declared(stack.folder, stack.info)}
    found = sockets_of_the_kernel(stack)
    assert found == declared, f"not declared: {sorted(found - declared)}; not there: {sorted(declared - found)}"
    for address in declared:
        if address.startswith("unix:"):
            folder = Path(address.removeprefix("unix:")).parent.stat()
            assert (folder.st_uid, folder.st_mode & 0o077) == (os.geteuid(), 0), address
        else:
            assert address.startswith("127.0.0.1:"), address
    shown = stack.succeed("status")
    assert "not declared" not in shown, shown
    assert "was judged by" in shown, shown


def a_stranger_gets_nothing(stack: RehearsedStack) -> None:
    """Ask everything as another user: without secrets, and with all of them."""
    ours = probes_with_secrets(stack)
    answers = outcomes(ours)
    assert all(outcome.startswith("200 ") for outcome in answers), f"the probes are no good: {answers}"
    probes = [*probes_of_everything(stack), *ours, *probes_of_files(stack)]
    got = [
        f"{outcome} <- {probe}"
        for probe, outcome in zip(probes, outcomes(probes, NOBODY), strict=True)
        if not is_nothing(outcome)
    ]
    assert not got, "\n".join(got)


def probes_of_everything(stack: RehearsedStack) -> list[Probe]:
    """Every socket, asked in each protocol, without secrets."""
    found = []
    for _, address in sorted(listeners.open_sockets(stack.info)):
        if address.startswith("unix:"):
            found.append(Probe("unix", address))
            continue
        for path in PATHS:
            found += [Probe("http", address, path), Probe("https", address, path)]
        found += [
            Probe("http", address, "/faults", "POST", '{"kind": "throttle", "calls": 5}', JSON),
            Probe("http", address, "/v3/kv/range", "POST", '{"key": "AA==", "range_end": "AA=="}', JSON),
            Probe("http", address, "management.azure.com:443", "CONNECT"),
            Probe("https", address, "/api/v1/secrets", headers={"Authorization": "Bearer made-up"}),
            Probe("https", address, "/api/v1/namespaces/default/pods", "POST", "{}", JSON),
            Probe("grpc", address, f"{PROVIDER}/GetPluginInfo"),
            Probe("grpc", address, "/etcdserverpb.KV/Range", body=base64.b64encode(b"\x0a\x01\x00").decode()),
            Probe("grpc", address, "/pulumirpc.LanguageRuntime/GetPluginInfo"),
        ]
    return found


def probes_with_secrets(stack: RehearsedStack) -> list[Probe]:
    """Questions to our own servers that are answered when they come from our own user."""
    info = stack.info
    known = {each.purpose: each.address for each in listeners.declared(stack.folder, info)}
    token = {"Authorization": f"Bearer {info.variables[TOKEN_VARIABLE]}"}
    configure = provider_pb2.ConfigureRequest(args=values.encode({"kubeconfig": stack.folder.kubeconfig.read_text()}))
    configured = base64.b64encode(configure.SerializeToString()).decode()
    found = [
        Probe("http", known["the control endpoint"], "/faults", headers=token),
        Probe("grpc", known["Pulumi's provider for kubernetes"], f"{PROVIDER}/Configure", body=configured),
    ]
    if info.cloud == "aws":
        scope = f"{info.variables['AWS_ACCESS_KEY_ID']}/20261122/{info.region}/ec2/aws4_request"
        signed = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}
        found.append(Probe("http", known["the simulated AWS account"], "/?Action=DescribeVpcs", headers=signed))
    else:
        found.append(Probe("http", known["the simulated Azure, as a proxy"], "management.azure.com:443", "CONNECT"))
    return found


def probes_of_files(stack: RehearsedStack) -> list[Probe]:
    """The folder, and the files of it that hold secrets."""
    folder = stack.folder
    return [Probe("file", str(path)) for path in (folder.root, folder.kubeconfig, folder.run_file, folder.logs)]


PROVIDER = "/pulumirpc.ResourceProvider"
JSON = {"Content-Type": "application/json"}
PATHS = (
    "/",
    "/version",
    "/healthz",
    "/readyz",
    "/metrics",
    "/debug/pprof/",
    "/openapi/v2",
    "/api/v1/secrets",
    "/.well-known/openid-configuration",
    "/health",
    "/moto-api/data.json",
    "/moto-api/recorder/start-recording",
    "/latest/meta-data/",
    "/?Action=GetCallerIdentity",
    "/bucket",
    "/faults",
    "/resources",
    "/msi/token?resource=https://management.azure.com",
)


def sockets_of_the_kernel(stack: RehearsedStack) -> set[str]:
    """Addresses at which the daemon and its descendants can be reached, from /proc alone."""
    owned = {inode: process.cwd() for process in descendants(stack.info) for inode in _inodes(process.pid)}
    found = {
        f"{_address(local)}:{int(port, 16)}"
        for table in ("tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6")
        for local, port, remote, state, inode in _rows(table)
        if inode in owned and (state == _LISTENING if table.startswith("tcp") else int(remote, 16) == 0)
    }
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split(maxsplit=7)
        if path and inode in owned and int(flags, 16) & _ACCEPTS:
            found.add(f"unix:{path[0] if path[0].startswith('@') else Path(owned[inode], path[0])}")
    return found


def _rows(table: str) -> Iterator[tuple[str, str, str, str, str]]:
    path = Path("/proc/net") / table
    for line in path.read_text().splitlines()[1:] if path.exists() else ():
        columns = line.split()
        local, port = columns[1].split(":")
        yield local, port, columns[2].split(":")[0], columns[3], columns[9]


def _address(hexadecimal: str) -> str:
    words = [bytes.fromhex(hexadecimal[index : index + 8])[::-1] for index in range(0, len(hexadecimal), 8)]
    packed = b"".join(words) if sys.byteorder == "little" else bytes.fromhex(hexadecimal)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed).removeprefix("::ffff:")


def _inodes(pid: int) -> Iterator[str]:
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                yield match[1]
    except (FileNotFoundError, psutil.NoSuchProcess):
        return
