"""The processes of one control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

Starts them as early as each can start and stops them in the order in which they end quickly. What is in the
cluster is nobody's business here.

The API server is the only one with a port: on loopback, with TLS, and to those who have a token. etcd asks nobody who
they are, so it listens on sockets in the control plane's private folder; the others do not listen at all.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from karpstack.rehearsal.cluster.certificates import Certificates, write_kubeconfig
from karpstack.rehearsal.cluster.objects import Objects
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import Engine, Engines, wait_until
from karpstack.rehearsal.state.folder import StackFolder

API_SERVER = "kube-apiserver"
#: How long a kubelet may be silent until its node counts as lost.
NODE_GRACE = "1h"

_HERE = Path(__file__).resolve().parent
_STAGES = _HERE / "stages"
_ARGUMENTS: Mapping[str, Sequence[str]] = yaml.safe_load((_HERE / "servers.yaml").read_text(encoding="utf-8"))
_TIMEOUT = 60.0
# kube-apiserver ends when its last watch does, so not by itself. It listens no more meanwhile, and whoever holds a
# lease has about ten seconds to renew it.
_RESTART_GRACE = 1.0

# What Go's garbage collector keeps it to while that is possible. By itself it takes twice what it holds: 1.7 GiB with
# 5,000 pods on 275 nodes, which is more than the production controller.
_API_SERVER_MEMORY = "1GiB"

# Started first, stopped last: a kube-apiserver whose etcd is gone hangs when it is asked to end.
_ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
# Of which there are several versions: what a cloud upgrades. The API server comes first.
_VERSIONED = (API_SERVER, "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True)
class Servers:
    """A running control plane."""

    endpoint: str
    certificates: Certificates
    kubeconfig: Path

    def objects(self) -> Objects:
        """A client with administrator's rights."""
        return Objects(self.endpoint, self.certificates.authority, self.certificates.administrator_token)


def start(
    folder: StackFolder,
    engines: Engines,
    engine_set: EngineSet,
    *,
    name: str,
    version: str,
    port: int,
    service_cidr: str,
    issuer: str,
    token: str = "",
) -> Servers:
    """Start a control plane from nothing and wait until its API server is ready.

    Args:
        version: Minor version of Kubernetes, one that the engine set has.
        port: The API server's, a reserved one (see `ports`).
        token: As `Certificates.create` has it.

    Raises:
        EngineCrashError: One of the processes ended; the text has its last log lines.
        TimeoutError: The API server was not ready in a minute.
    """
    shutil.rmtree(folder.control_plane, ignore_errors=True)
    folder.control_plane.mkdir(parents=True, mode=0o700)
    service_ip = str(next(ipaddress.ip_network(service_cidr).hosts()))
    certificates = Certificates.create(folder.control_plane, service_ip, token)
    endpoint = f"https://127.0.0.1:{port}"
    kubeconfig = write_kubeconfig(
        folder.kubeconfig, name, endpoint, certificates.authority.read_bytes(), token=certificates.administrator_token
    )
    known = {
        **{"folder": folder.control_plane, "kubeconfig": kubeconfig, "certificates": certificates},
        **{"port": port, "service_cidr": service_cidr, "issuer": issuer, "node_grace": NODE_GRACE},
    }

    def run(name: str, *more: str, **variables: str) -> Engine:
        program = engine_set.server(name, version) if name in _VERSIONED else engine_set.program(name)
        keep = {key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ}
        # A home of their own: kwok and others would read and write files in the user's.
        environment = {**keep, "HOME": str(folder.control_plane), **variables}
        command = [str(program), *(each.format(**known) for each in _ARGUMENTS[name]), *more]
        return engines.start(name, command, environment=environment, cwd=folder.control_plane)

    etcd = run("etcd")
    servers = Servers(endpoint, certificates, kubeconfig)
    wait_until((folder.control_plane / "etcd.sock").is_socket, "etcd", _TIMEOUT, engines=[etcd], interval=0.01)
    key_set = [f"--service-account-jwks-uri={issuer}/keys"] if issuer.startswith("https://") else []
    api_server = run(API_SERVER, *key_set, GOMEMLIMIT=_API_SERVER_MEMORY)
    wait_until(lambda: _listens(port), API_SERVER, _TIMEOUT, engines=[etcd, api_server], interval=0.01)
    # They wait for the API server by themselves, and load while it gets ready.
    rest = [run("kube-scheduler"), run("kwok", *(f"--config={stage}" for stage in sorted(_STAGES.glob("*.yaml"))))]
    objects = servers.objects()
    wait_until(objects.healthy, API_SERVER, _TIMEOUT, engines=[etcd, api_server, *rest], interval=0.02)
    # It waits too, but gives up after ten seconds, which is too soon where the machine has other work.
    run("kube-controller-manager")
    return servers


def restart_api_server(engines: Engines, objects: Objects) -> None:
    """Restart kube-apiserver, on its port and with its keys and certificates, and wait until it is ready.

    Raises:
        LookupError: It does not run.
        EngineCrashError: It ended by itself; the text has its last log lines.
        TimeoutError: It was not ready in a minute.
    """
    engine = engines.restart(API_SERVER, _RESTART_GRACE)
    wait_until(objects.healthy, API_SERVER, _TIMEOUT, engines=[engine], interval=0.02)


def upgrade(engines: Engines, engine_set: EngineSet, objects: Objects, version: str) -> None:
    """Put another version in the place of the one that runs, on the same etcd: the API server first, as upstream asks.

    Args:
        version: Minor version of Kubernetes, one that the engine set has.

    Raises:
        LookupError: It does not run.
        EngineCrashError: One ended by itself; the text has its last log lines.
        TimeoutError: The API server was not ready in a minute.
    """
    engine = engines.restart(API_SERVER, _RESTART_GRACE, engine_set.server(API_SERVER, version))
    wait_until(objects.healthy, API_SERVER, _TIMEOUT, engines=[engine], interval=0.02)
    for name in _VERSIONED[1:]:
        engines.restart(name, program=engine_set.server(name, version))


def stop(engines: Engines) -> None:
    """Stop a control plane; nothing happens to what does not run."""
    for name in reversed(_ORDER):
        engines.stop(name)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
