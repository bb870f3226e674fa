"""The rehearsed clusters: what a cloud's managed Kubernetes is to its customers.

This is the face of the package. Processes are started by `servers`; nodes, Cilium and the controller are played by
`registrar`, `cilium` and `controller`, which run as long as the cluster does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from karpstack.karpenter import clock
from karpstack.rehearsal.cluster import bootstrap_tokens, draining, readiness, servers, tokens
from karpstack.rehearsal.cluster.charts import Charts
from karpstack.rehearsal.cluster.cilium import Cilium
from karpstack.rehearsal.cluster.cloud import Cloud, Machine
from karpstack.rehearsal.cluster.controller import Controller
from karpstack.rehearsal.cluster.feed import Player
from karpstack.rehearsal.cluster.objects import ApiError, Objects
from karpstack.rehearsal.cluster.ports import ReservedPort
from karpstack.rehearsal.cluster.registrar import Registrar
from karpstack.rehearsal.cluster.releases import Releases
from karpstack.rehearsal.cluster.service_controller import ServiceController
from karpstack.rehearsal.cluster.startup_taints import StartupTaints
from karpstack.rehearsal.cluster.volumes import Volumes
from karpstack.rehearsal.cluster.vpc_cni import VpcCni
from karpstack.rehearsal.engines import EngineSet, releases
from karpstack.rehearsal.host.processes import Engines, wait_until
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.timing import Timing
from karpstack.text import files

_DEFINITION_TIMEOUT = 30.0
_POLICIES = "cilium.io/v2"


class Cluster:
    """One running control plane, with those who play its nodes.

    Attributes:
        name: Name of the cluster.
        endpoint: `https://127.0.0.1:PORT`.
        certificate_authority: PEM.
        version: Minor version, for example `1.36`.
        kubeconfig: The administrator's.
        token: The administrator's.
        cloud: What decides who may join and which credentials there are.
        deployer: Options of the cloud's plugin, by which it asks for the identity of who has made the cluster.
        timing: How long the simulated parts take.
        objects: Client with administrator's rights, for any thread.
        releases: Helm.
        charts: What Helm can install.
        controller: The Karpenter controller.
    """

    def __init__(
        self,
        name: str,
        version: str,
        running: servers.Servers,
        folder: StackFolder,
        engines: Engines,
        engine_set: EngineSet,
        timing: Timing,
        cloud: Cloud,
        deployer: Mapping[str, str],
    ) -> None:
        self.name = name
        self.deployer = deployer
        self.endpoint = running.endpoint
        self.certificate_authority = running.certificates.authority.read_bytes()
        self.version = version
        self.kubeconfig: Path = running.kubeconfig
        self.cloud = cloud
        self.timing = timing
        self.objects: Objects = running.objects()
        self.controller = Controller(
            folder,
            engines,
            engine_set,
            self.objects,
            cloud,
            self.endpoint,
            self.certificate_authority,
            lambda pod: self.releases.has_karpenter(pod),
        )
        self.releases = Releases(
            folder,
            engine_set,
            self.objects,
            self.kubeconfig,
            lambda: self.controller.lasting_problem,
            pods_reachable=cloud.control_plane_reaches_pods,
        )
        self.charts = Charts(engine_set)
        self._engine_set = engine_set
        self.token = running.certificates.administrator_token
        self._deployer_token = folder.deployer_token
        self._deployer_known: threading.Event | None = None
        self._registrar = Registrar(self.objects, cloud, timing)
        self._cilium = Cilium(self.objects, self.endpoint, timing)
        balancers = [ServiceController(self.objects, cloud.load_balancers)] if cloud.load_balancers else []
        self._players: list[Player] = [
            self._registrar,
            self._cilium,
            VpcCni(self.objects, cloud, timing),
            StartupTaints(self.objects),
            Volumes(self.objects),
            *balancers,
            self.controller,
        ]

    def apply(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Server-side apply, in the order given.

        Raises:
            ApiError: The API server refused one of them.
        """
        for manifest in manifests:
            self.objects.apply(manifest)

    def define(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Apply resource definitions and wait until objects of their kinds can be made.

        Raises:
            ApiError: The API server refused one of them.
            TimeoutError: They were not served in time.
        """
        definitions = list(definitions)
        self.apply(definitions)
        # A definition is established a moment before its kind is served, and discovery offers no watch.
        wait_until(
            lambda: all(self._serves(definition) for definition in definitions),
            "the resource definitions",
            _DEFINITION_TIMEOUT,
        )

    def define_policy(self, api_version: str, kind: str) -> None:
        """Define a kind of network policy of Cilium's, as its operator does; nothing for other kinds, nor without one.

        The operator makes all its definitions when it starts. These are the largest of them, and few ask for them.
        """
        if api_version == _POLICIES and kind.endswith("NetworkPolicy") and self._cilium.operator_up:
            text = self._engine_set.cilium_definition(f"{kind.lower()[:-1]}ies").read_text(encoding="utf-8")
            self.define([yaml.load(text, yaml.CSafeLoader)])

    def _serves(self, definition: Mapping[str, Any]) -> bool:
        spec = definition["spec"]
        try:
            for version in spec["versions"]:
                if version["served"]:
                    self.objects.path(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def delete(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Delete what `apply` made, the last first; what does not exist is skipped."""
        for manifest in reversed(list(manifests)):
            try:
                path = self.objects.path_of(manifest)
            except ApiError as error:
                if error.status != 404:
                    raise
                continue
            self.objects.delete(path)

    def wait_available(self, kind: str, namespace: str, name: str, timeout: float) -> str:
        """Wait on a watch until all pods of a Deployment or DaemonSet are available.

        Returns:
            Empty, or why it is not available: what lacks, and what scheduler and kubelet say of the pods.
        """
        return readiness.wait_available(self.objects, [(kind, namespace, name)], timeout, all_replicas=True)

    def join(
        self,
        machines: Iterable[Machine],
        *,
        taints: Iterable[Mapping[str, str]] = (),
        labels: Mapping[str, str] | None = None,
        timeout: float,
    ) -> list[str]:
        """Register nodes of a managed node group and wait until they are Ready.

        Returns:
            Names of those that are not; a machine that may not join is one of them.

        Raises:
            ValueError: A machine does not say its capacity.
        """
        return self._registrar.join(machines, taints, labels or {}, timeout)

    def drain(self, names: Iterable[str], within: float) -> None:
        """Cordon nodes and evict their pods within budgets; see `draining.drain`."""
        draining.drain(self.objects, names, within)

    def remove_nodes(self, names: Iterable[str]) -> None:
        """Remove nodes and what ran on them, at once: their machines have ended."""
        self._registrar.remove(names)

    def create_token(self, namespace: str, service_account: str, audience: str) -> str:
        """TokenRequest; see `tokens.create_token`."""
        return tokens.create_token(self.objects, namespace, service_account, audience)

    def review_token(self, token: str, audience: str) -> str | None:
        """TokenReview: `system:serviceaccount:<namespace>:<name>`, or None when the token is not good."""
        return tokens.review_token(self.objects, token, audience)

    def refused_bootstrap(self, token: str) -> str:
        """Why a kubelet gets no certificate with a bootstrap token; see `bootstrap_tokens.refusal`."""
        return bootstrap_tokens.refusal(self.objects, token)

    @property
    def knows_deployer(self) -> bool:
        """Whether the API server takes the token that the cloud's plugin makes for whoever deploys."""
        return self._deployer_token.exists()

    # -- for Clusters

    def know_deployer(self, after: float) -> None:
        """Let the cloud's plugin hand out the administrator's token from now on, or after so many seconds."""
        publish = partial(files.write, self._deployer_token, self.token, private=True)
        if not after:
            publish()
            return
        self._deployer_known = clock.after(after, publish)

    def start_players(self) -> None:
        """Start those who play nodes, networks, the CSI drivers' part in them, and the controller."""
        for player in self._players:
            player.start()

    def stop_players(self) -> None:
        """Stop them, the controller's process included, and end all watches."""
        if self._deployer_known is not None:
            self._deployer_known.set()
        self._deployer_token.unlink(missing_ok=True)
        for player in reversed(self._players):
            player.stop()
        self.objects.close()


class Clusters:
    """The clusters of one daemon. One runs at a time: its engines carry fixed names."""

    def __init__(self, folder: StackFolder, engines: Engines, engine_set: EngineSet, timing: Timing) -> None:
        self._folder = folder
        self._engines = engines
        self._engine_set = engine_set
        self._timing = timing
        self._cluster: Cluster | None = None
        self._port: ReservedPort | None = None
        self._lock = threading.Lock()

    def start(
        self,
        name: str,
        *,
        version: str,
        service_cidr: str,
        issuer: str,
        cloud: Cloud,
        deployer_known: float | None = 0,
        deployer: Mapping[str, str] | None = None,
        token: str = "",
    ) -> Cluster:
        """Start a cluster.

        Args:
            version: The minor version that the cloud is asked for, for example `1.36`.
            issuer: Issuer of its service account tokens, as the cloud names it.
            deployer_known: Seconds until its API server takes tokens of who makes it; None if it never does.
            deployer: Options of the cloud's plugin, by which it asks for the identity of who makes it.
            token: As `Certificates.create` has it.

        Raises:
            ValueError: A cluster is running already, or the engines do not have the version.
            EngineCrashError: One of the processes ended.
            TimeoutError: The API server was not ready in a minute.
        """
        with self._lock:
            if self._cluster is not None:
                raise ValueError(
                    f"the cluster {self._cluster.name} is running, and a rehearsal has one at a time, so "
                    f"{name} cannot be created; put it into a stack of its own"
                )
            self.check_version(version)
            self._port = ReservedPort()
            try:
                running = servers.start(
                    self._folder,
                    self._engines,
                    self._engine_set,
                    name=name,
                    version=version,
                    port=self._port.number,
                    service_cidr=service_cidr,
                    issuer=issuer,
                    token=token,
                )
                cluster = Cluster(
                    name,
                    version,
                    running,
                    self._folder,
                    self._engines,
                    self._engine_set,
                    self._timing,
                    cloud,
                    deployer or {},
                )
            except BaseException:
                self._stop_servers()
                raise
            cluster.start_players()
            if deployer_known is not None:
                cluster.know_deployer(deployer_known)
            self._cluster = cluster
            return cluster

    def get(self, name: str) -> Cluster | None:
        """The running cluster of that name."""
        cluster = self._cluster
        return cluster if cluster is not None and cluster.name == name else None

    def by_endpoint(self, endpoint: str) -> Cluster | None:
        """The running cluster with that endpoint."""
        cluster = self._cluster
        return cluster if cluster is not None and cluster.endpoint == endpoint.rstrip("/") else None

    def stop(self, name: str) -> None:
        """Stop a cluster; nothing happens when it does not run."""
        with self._lock:
            cluster = self.get(name)
            if cluster is None:
                return
            cluster.stop_players()
            self._stop_servers()
            self._cluster = None
            # The endpoint may soon be somebody else's; the keys in it open nothing any more.
            cluster.kubeconfig.unlink(missing_ok=True)

    def upgrade(self, name: str, version: str) -> None:
        """Move a cluster to another version; what is in it stays. What the cloud allows is the cloud's business.

        Raises:
            LookupError: It does not run.
            ValueError: The engines do not have the version.
            EngineCrashError: One of the processes ended by itself.
            TimeoutError: The API server was not ready in a minute.
        """
        with self._lock:
            cluster = self.get(name)
            if cluster is None:
                raise LookupError(f"the cluster {name} does not run, so there is nothing to upgrade")
            self.check_version(version)
            servers.upgrade(self._engines, self._engine_set, cluster.objects, version)
            cluster.version = version

    def restart_api_server(self) -> None:
        """Restart the API server of the cluster that runs, and wait until it is ready.

        Raises:
            LookupError: No cluster runs.
            EngineCrashError: It ended by itself.
            TimeoutError: It was not ready in a minute.
        """
        with self._lock:
            if self._cluster is None:
                raise LookupError("no cluster runs, so there is nothing to restart; create the stack first")
            servers.restart_api_server(self._engines, self._cluster.objects)

    def stop_all(self) -> None:
        """Stop the cluster that runs, if one does."""
        cluster = self._cluster
        if cluster is not None:
            self.stop(cluster.name)

    def check_version(self, version: str) -> None:
        """See that the engines have a version.

        Raises:
            ValueError: They do not.
        """
        known = releases("kubernetes")
        if version not in known:
            raise ValueError(
                f"the cluster is to have Kubernetes {version}, but the rehearsal's engines are {' and '.join(known)}, "
                f"so something else would be rehearsed; ask for one of these, or rehearse a copy that does"
            )
        part = known[version]
        if part != "kubernetes" and (fault := self._engine_set.fault(part)):
            raise ValueError(f"Kubernetes {version} {fault}")

    def _stop_servers(self) -> None:
        servers.stop(self._engines)
        if self._port is not None:
            self._port.close()
