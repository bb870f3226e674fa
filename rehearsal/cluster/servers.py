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
from dataclasses import dataclass
from pathlib import Path

from rehearsal.cluster.certificates import Certificates, write_kubeconfig
from rehearsal.cluster.objects import Objects
from rehearsal.engines import EngineSet
from rehearsal.host.processes import Engine, Engines, wait_until
from rehearsal.state.folder import StackFolder

API_SERVER = "kube-apiserver"
#: How long a kubelet may be silent until its node counts as lost.
NODE_GRACE = "1h"

_STAGES = Path(__file__).resolve().parent / "stages"
_TIMEOUT = 60.0
# Relative to the folder of the control plane, where both ends run: a socket's path is limited to about 100 bytes.
_CLIENT_SOCKET, _PEER_SOCKET = "etcd.sock", "etcd-peer.sock"
# etcd wants addresses for the members of its cluster, of which it is the only one: nobody listens at this one.
_NOWHERE = "http://127.0.0.1:1"
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
# Without cloud controllers: what they would do is the cloud's stand-in's business. Cilium gives pods addresses. With
# the one that deletes expired bootstrap tokens, which is off by default: AKS's own tokens go when they have expired.
_CONTROLLERS = (
    "*,tokencleaner,-node-ipam-controller,-node-route-controller,-cloud-node-lifecycle-controller,"
    "-service-lb-controller"
)


@dataclass(frozen=True)
class Servers:
    """A running control plane.

    Attributes:
        endpoint: URL of the API server.
        certificates: Its keys and certificates.
        kubeconfig: The administrator's.
    """

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
) -> Servers:
    """Start a control plane from nothing and wait until its API server is ready.

    Args:
        folder: The stack's folder.
        engines: Keeps the processes.
        engine_set: Has the programs.
        name: Name of the cluster, for the kubeconfig.
        version: Minor version of Kubernetes, one that the engine set has.
        port: The API server's, a reserved one (see `ports`).
        service_cidr: Range of the services' addresses.
        issuer: Issuer of the service account tokens.

    Raises:
        EngineCrashError: One of the processes ended; the text has its last log lines.
        TimeoutError: The API server was not ready in a minute.
    """
    shutil.rmtree(folder.control_plane, ignore_errors=True)
    folder.control_plane.mkdir(parents=True, mode=0o700)
    starter = _Starter(folder, engines, engine_set, version)
    etcd = starter.etcd()
    service_ip = str(next(ipaddress.ip_network(service_cidr).hosts()))
    certificates = Certificates.create(folder.control_plane, service_ip)
    endpoint = f"https://127.0.0.1:{port}"
    kubeconfig = write_kubeconfig(
        folder.kubeconfig, name, endpoint, certificates.authority.read_bytes(), token=certificates.administrator_token
    )
    servers = Servers(endpoint, certificates, kubeconfig)
    wait_until((folder.control_plane / _CLIENT_SOCKET).is_socket, "etcd", _TIMEOUT, engines=[etcd], interval=0.01)
    api_server = starter.api_server(port, certificates, service_cidr, issuer)
    wait_until(lambda: _listens(port), "kube-apiserver", _TIMEOUT, engines=[etcd, api_server], interval=0.01)
    # They wait for the API server by themselves, and load while it gets ready.
    rest = [starter.scheduler(kubeconfig), starter.kwok(kubeconfig)]
    objects = servers.objects()
    wait_until(objects.healthy, "kube-apiserver", _TIMEOUT, engines=[etcd, api_server, *rest], interval=0.02)
    # It waits too, but gives up after ten seconds, which is too soon where the machine has other work.
    starter.controller_manager(certificates, kubeconfig)
    return servers


def restart_api_server(engines: Engines, objects: Objects) -> None:
    """Restart kube-apiserver, on its port and with its keys and certificates, and wait until it is ready.

    Args:
        engines: Has the processes.
        objects: A client of the cluster.

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
        engines: Has the processes.
        engine_set: Has the programs.
        objects: A client of the cluster.
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


class _Starter:
    """The command line of each process."""

    def __init__(self, folder: StackFolder, engines: Engines, engine_set: EngineSet, version: str) -> None:
        self._folder = folder
        self._engines = engines
        self._programs = {name: engine_set.program(name) for name in _ORDER} | {
            name: engine_set.server(name, version) for name in _VERSIONED
        }

    def etcd(self) -> Engine:
        return self._start(
            "etcd",
            f"--data-dir={self._folder.control_plane / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            # Of which etcd makes the time that a request may take: there are no members to elect one of.
            "--election-timeout=10000",
            f"--listen-client-urls=unix://{_CLIENT_SOCKET}",
            f"--advertise-client-urls={_NOWHERE}",
            f"--listen-peer-urls=unix://{_PEER_SOCKET}",
            f"--initial-advertise-peer-urls={_NOWHERE}",
            f"--initial-cluster=default={_NOWHERE}",
            "--enable-grpc-gateway=false",
        )

    def api_server(self, port: int, certificates: Certificates, service_cidr: str, issuer: str) -> Engine:
        key_set = [f"--service-account-jwks-uri={issuer}/keys"] if issuer.startswith("https://") else []
        return self._start(
            "kube-apiserver",
            f"--etcd-servers=unix://{_CLIENT_SOCKET}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--permit-port-sharing=true",  # with the socket that reserves it
            # Loopback is no address for the endpoints of the service `kubernetes`, so that service has none here.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificates.serving}",
            f"--tls-private-key-file={certificates.serving_key}",
            "--anonymous-auth=false",
            f"--token-auth-file={certificates.tokens}",
            "--enable-bootstrap-token-auth",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={service_cidr}",
            f"--service-account-issuer={issuer}",
            *key_set,
            # As EKS has it: tokens for other audiences (a cloud's) are made and reviewed, but open no door here.
            "--api-audiences=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates.service_account_key}",
            f"--service-account-signing-key-file={certificates.service_account_key}",
            "--profiling=false",
            # A streamed list ends with a bookmark, which is sent within about a second (cacher.go): who starts here
            # would wait for that, where a plain list, to which every client falls back, is answered at once.
            "--feature-gates=WatchList=false",
            GOMEMLIMIT=_API_SERVER_MEMORY,
        )

    def controller_manager(self, certificates: Certificates, kubeconfig: Path) -> Engine:
        return self._start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--service-account-private-key-file={certificates.service_account_key}",
            f"--root-ca-file={certificates.authority}",
            f"--controllers={_CONTROLLERS}",
            "--profiling=false",
            # So that taints follow a node's conditions soon; 5 s by default.
            "--node-monitor-period=1s",
            # Where time jumps ahead, kubelets report only after the jump; 50 s by default. A machine that ends takes
            # its node with it, so no story waits for this.
            f"--node-monitor-grace-period={NODE_GRACE}",
            "--kube-api-qps=200",
            "--kube-api-burst=300",
        )

    def scheduler(self, kubeconfig: Path) -> Engine:
        return self._start(
            "kube-scheduler",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
            "--kube-api-qps=200",
            "--kube-api-burst=300",
        )

    def kwok(self, kubeconfig: Path) -> Engine:
        stages = [f"--config={stage}" for stage in sorted(_STAGES.glob("*.yaml"))]
        return self._start(
            "kwok",
            f"--kubeconfig={kubeconfig}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-ip=127.0.0.1",
            "--node-port=0",
            "--v=WARN",
            "--node-lease-duration-seconds=40",
            "--cidr=10.244.0.0/16",
            *stages,
        )

    def _start(self, name: str, *arguments: str, **variables: str) -> Engine:
        keep = {key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ}
        # A home of their own: kwok and others would read and write files in the user's.
        environment = {**keep, "HOME": str(self._folder.control_plane), **variables}
        return self._engines.start(
            name,
            [self._programs[name], *arguments],
            environment=environment,
            cwd=self._folder.control_plane,
        )
