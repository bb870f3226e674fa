"""Runs the production Karpenter controller for the pods of its chart.

The process is what the containers of those pods would be: it starts when one of them has a node, with the
environment and the arguments of its live manifest and its service account's own token. It ends with that pod, killed
where the pod is deleted without grace, and starts again for another; it is restarted when the pod template changes, and
started again with a kubelet's patience when it ended by itself; when that fails time and again, it is lost, and with
it the rehearsal. The pods turn Ready when the process says that it is,
so helm, `kubectl rollout status` and `kubectl scale` mean here what they mean in a cloud. Several replicas share one
process: only the leader would work anyway.

A cloud that offers Karpenter as a part of its managed cluster keeps it elsewhere (`Controller.host`): then the same
process runs without a pod, and the cloud starts it again with the same patience.
"""

from __future__ import annotations

import base64
import logging
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlsplit

import urllib3

from karpstack.karpenter import clock
from karpstack.rehearsal.cluster import controller_options, pod_files
from karpstack.rehearsal.cluster.certificates import write_kubeconfig
from karpstack.rehearsal.cluster.cilium import mark_ready
from karpstack.rehearsal.cluster.cloud import Cloud, ControllerIdentityError
from karpstack.rehearsal.cluster.container import ContainerConfigError, arguments, environment
from karpstack.rehearsal.cluster.controller_endpoint import ControllerEndpoint
from karpstack.rehearsal.cluster.feed import Event, Player
from karpstack.rehearsal.cluster.objects import ApiError, Object, Objects, try_patch, unavailable, warn
from karpstack.rehearsal.cluster.tokens import create_token
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import Engine, EngineCrashError, Engines, wait_until
from karpstack.rehearsal.state.folder import StackFolder

#: The environment variable that says that days of the cluster will be skipped, in jumps of its time.
DAYS = "REHEARSAL_DAYS"
#: The chart's pods.
LABEL = "app.kubernetes.io/name=karpenter"

_TIMEOUT = 60.0
# Until a process that was asked to end is killed.
_GRACE = 5.0
# How often it is tried to start a crashed process again for the same pod. Longer than that nobody waits.
_TRIES_AFTER_CRASH = 3
# While a Deployment rolls out, the process may be that of an old pod for a moment.
_TRIES_AFTER_LOSS = 3
_HASH = "pod-template-hash"
_LEASE = "karpenter-leader-election"
_LOG = logging.getLogger(__name__)

_SECOND = (
    "this cluster's cloud runs a Karpenter controller of its own already, and two of them would fight over the "
    "same nodes; uninstall this release, or switch the cloud's off"
)


@dataclass(frozen=True)
class _Container:
    """What the process is given.

    Attributes:
        namespace: Where it keeps its lease.
        token: For the API server.
        variables: Its environment, as the cloud and the pod declare it.
        arguments: Its arguments.
        release: The version of its image; empty for the newest.
    """

    namespace: str
    token: str
    variables: Mapping[str, str]
    arguments: Sequence[str] = ()
    release: str = ""


class Controller(Player):
    """The controller of one cluster.

    Attributes:
        problem: Why the controller does not run although its pods should; empty when all is well.
    """

    name = "controller"
    #: Seconds between two looks at the process: it offers no event that several could wait for.
    between_looks = 0.5
    #: Seconds until the process is started again, and at most: a kubelet waits twice as long each time.
    back_off = (10.0, 300.0)
    watches: ClassVar = {"pods": {"path": "/api/v1/pods", "labels": LABEL}}

    def __init__(
        self,
        folder: StackFolder,
        engines: Engines,
        engine_set: EngineSet,
        objects: Objects,
        cloud: Cloud,
        endpoint: str,
        authority: bytes,
        is_ours: Callable[[Object], bool],
    ) -> None:
        """`is_ours` tells pods of Karpenter's release from others with its label."""
        super().__init__(objects)
        self._is_ours = is_ours
        self.problem = ""
        #: What the cloud runs it with; None where pods do.
        self._hosted: _Container | None = None
        #: Held while the cloud's own is begun, begun again or ended, which different threads ask for.
        self._hosting = threading.Lock()
        self._folder = folder.controller
        self._endpoint = ControllerEndpoint(folder)
        self._engines = engines
        self._engine_set = engine_set
        self._cloud = cloud
        self._api_server = endpoint
        self._authority = authority
        self._pods: dict[str, Object] = {}
        self._template = ""
        #: The pod whose container the process is: its uid, and whether it was deleted without grace.
        self._pod = ""
        self._killed = False
        self._namespace = ""
        self._engine: Engine | None = None
        self._ready: set[str] = set()
        self._failed: set[str] = set()
        self._back_off = self.back_off[0]
        #: When the process became ready, by the cluster's monotonic clock.
        self._began = 0.0
        self._tries = 0
        #: How often the process has ended or not started since it crashed, for one pod; 0 while it runs.
        self._failures = 0
        self._tries_left = 0
        #: How often in a row the process of one template crashed, or was never ready.
        self._crashes = 0
        # A stop may come while a start is under way: the one waits for the other.
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def lasting_problem(self) -> str:
        """The problem, once it has outlived a second try; before that, as empty as when all is well.

        What the process falls over may be about to pass, such as a role that has yet to take effect, and a kubelet
        starts it again well within the time that a release waits for its pods. What keeps it from being started at
        all is the pod's own, and is told at once; but for a pod that took the place of one that went.
        """
        return "" if self._crashes == 1 or self._tries_left else self.problem

    def stop(self) -> None:
        """End, and stop the process."""
        self._stopped = True
        super().stop()
        self._end()
        self._endpoint.close()

    def host(self, namespace: str, variables: Mapping[str, str], token: str) -> str:
        """Run it for the cloud, without a pod, and wait until it is ready.

        Args:
            namespace: Where it keeps its lease.
            variables: Its environment; the ways to the API server are added.

        Returns:
            Why it does not run, or empty.
        """
        with self._hosting:
            self._end()
            container = _Container(namespace, token, variables)
            problem = self._begin_hosted(container)
            self._hosted = None if problem else container
            # What was planned for one before is over.
            self._tries += 1
            self._failures, self._back_off, self.problem = 0, self.back_off[0], ""
        return problem

    @property
    def hosted(self) -> bool:
        """Whether the cloud runs it, and not a pod."""
        return self._hosted is not None

    def end_hosted(self) -> None:
        """End what `host` began; nothing happens when it did not."""
        with self._hosting:
            if self.hosted:
                self._hosted = None
                self._tries += 1
                self._end()

    def _handle(self, event: Event) -> None:
        if event.source == "pods" and self._is_ours(event.object):
            uid = event.object["metadata"]["uid"]
            if event.type == "DELETED":
                before = self._pods.pop(uid, event.object)
                self._ready.discard(uid)
                if uid == self._pod and "deletionTimestamp" not in before["metadata"]:
                    self._killed = True
            else:
                self._pods[uid] = event.object
            # Pods that go together are looked at together: no process is begun for one that is about to go.
            if self._feed.idle:
                self._follow()
        elif event.source == "look":
            self._note_end(event.object["pid"])
        elif event.source == "ended":
            self._tell_not_ready()
        elif event.source == "again" and event.object["tries"] == self._tries:
            self._failed.clear()
            if self.hosted:
                self._host_again(event.object["tries"])
            else:
                self._follow()

    def _follow(self) -> None:
        """Bring the process in line with the pods."""
        placed = [
            pod
            for pod in self._pods.values()
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        ]
        if not placed:
            if self.hosted:
                self.problem = ""
            elif not self._pods or self._engine is not None:
                self._end_container()
                self._template = self._pod = self.problem = ""
            return
        newest = max(placed, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        template = _template(newest)
        if self.hosted:
            if self.problem != _SECOND:
                self.problem = _SECOND
                warn(self._objects, newest, "kubelet", "BackOff", self.problem)
            return
        # A pod that is new since the process failed is another try, as it is with a kubelet.
        again = self.problem and newest["metadata"]["uid"] not in self._failed
        lost = self._pod not in {pod["metadata"]["uid"] for pod in placed}
        if template != self._template or again or lost:
            self._end_container()
            if not self._feed.idle:
                return
            if template != self._template:
                # What kept the other template's process from running is no reason against this one's.
                self.problem = ""
                self._back_off, self._crashes, self._tries_left = self.back_off[0], 0, 0
            elif lost and not again:
                self._tries_left = _TRIES_AFTER_LOSS
            self.problem = self._begin(newest)
            self._tries_left = max(0, self._tries_left - 1) if self.problem else 0
            anew = self._pod == newest["metadata"]["uid"]
            self._template, self._pod = template, newest["metadata"]["uid"]
            if self.problem:
                self._back_away()
                warn(self._objects, newest, "kubelet", "BackOff", self.problem)
            else:
                self._tries += 1
            self._failures = self._failures + 1 if self.problem and self._failures and anew else 0
            if self._failures > _TRIES_AFTER_CRASH:
                self._engines.lose(self._cloud.controller_engine)
        if self._engine is not None:
            self._tell_ready([pod for pod in placed if _template(pod) == template])

    def _back_away(self) -> None:
        """Leave the process ended for a while; a pod that is new by then starts it earlier."""
        self._failed = set(self._pods)
        self._tries += 1
        self._feed.after(self._back_off, "again", {"tries": self._tries})
        self._back_off = min(2 * self._back_off, self.back_off[1])

    def _end_container(self) -> None:
        self._end(grace=0.0 if self._killed else _GRACE)
        self._killed = False

    def _begin(self, pod: Object) -> str:
        """Start the process as a pod's container and wait until it is ready; why that failed, or empty."""
        problem, engine = self._start(lambda: self._container(pod))
        if engine is not None:
            _LOG.info("the Karpenter controller runs (pid %d) for pod %s", engine.pid, pod["metadata"]["name"])
            self._feed.after(self.between_looks, "look", {"pid": engine.pid})
        return problem

    def _begin_hosted(self, container: _Container) -> str:
        """Start the process as the cloud's own and wait until it is ready; why that failed, or empty."""
        problem, engine = self._start(lambda: container)
        if engine is not None:
            self._feed.tell("look", {"pid": engine.pid})  # the provider's thread is not the feed's
        return problem

    def _host_again(self, tries: int) -> None:
        """Start the cloud's own process again after it crashed; nobody but the cloud could mend what hinders it."""
        with self._hosting:
            if self._hosted is None or tries != self._tries:
                return  # switched off, or begun again, meanwhile
            self.problem = self._begin_hosted(self._hosted)
            self._failures = self._failures + 1 if self.problem else 0
            if self._failures > _TRIES_AFTER_CRASH:
                self._engines.lose(self._cloud.controller_engine)
            elif self.problem:
                self._back_away()

    def _start(self, container: Callable[[], _Container]) -> tuple[str, Engine | None]:
        """Start the process and wait until it is ready: why that failed, or empty, and the process."""
        try:
            with self._lock:
                if self._stopped:
                    return "", None
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder.mkdir(parents=True, mode=0o700)
                variables, command = self._prepare(container())
                engine = self._engines.start(self._cloud.controller_engine, command, environment=variables, vital=False)
                self._engine = engine
            wait_until(
                lambda: self._stopped or self._endpoint.ready(), "the Karpenter controller", _TIMEOUT, engines=[engine]
            )
        except (ContainerConfigError, ControllerIdentityError, ApiError, pod_files.PrivateMountError) as error:
            if unavailable(error):
                raise
            self._crashes = 0
            return f"the Karpenter controller cannot start: {error}", None
        except (EngineCrashError, TimeoutError) as error:
            self._crashes += 1
            self._end()
            return str(error), None
        self._crashes = 0
        self._began = clock.monotonic()
        return "", engine

    def _container(self, pod: Object) -> _Container:
        """What the cloud and the live manifest make of a pod's container."""
        metadata, spec = pod["metadata"], pod["spec"]
        namespace, account_name = metadata["namespace"], spec.get("serviceAccountName", "default")
        container = spec["containers"][0]
        node = self._objects.get(f"/api/v1/nodes/{spec['nodeName']}") or {}
        declared = environment(
            pod,
            container,
            node.get("status", {}).get("allocatable", {}),
            lambda kind, name: self._data(namespace, kind, name),
        )
        account = self._objects.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account_name}")
        if account is None:
            raise ContainerConfigError(f"service account {namespace}/{account_name} not found")
        tokens = self._folder / "tokens"
        tokens.mkdir(mode=0o700)
        cloud = self._cloud.controller_environment(
            namespace,
            account_name,
            account["metadata"].get("annotations", {}),
            tokens,
            metadata.get("labels", {}),
            datetime.fromisoformat(metadata["creationTimestamp"]),
        )
        given = arguments(container, declared)
        controller_options.check(given)
        # What a container declares goes before what admission adds, as far as it is an option of Karpenter.
        return _Container(
            namespace,
            create_token(self._objects, namespace, account_name),
            {**cloud, **controller_options.passed(declared)},
            given,
            _tag(str(container.get("image", ""))),
        )

    def _prepare(self, container: _Container) -> tuple[dict[str, str], list[str]]:
        """The environment and the command of the process."""
        self._namespace = container.namespace
        own = self._folder / "token"
        own.touch(mode=0o600)
        own.write_text(container.token)
        kubeconfig = write_kubeconfig(
            self._folder / "kubeconfig", "rehearsal", self._api_server, self._authority, token_file=own
        )
        self._endpoint.publish()
        variables = {
            **{key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ},
            "HOME": str(self._folder),
            **container.variables,
            # What is different because it is a process and not a container on a node of its own:
            "KUBECONFIG": str(kubeconfig),
            "LEADER_ELECTION_NAME": _LEASE,
            "LEADER_ELECTION_NAMESPACE": container.namespace,
            # A jump of time in the middle of a renewal would end the process; there is no other that could lead.
            **({"DISABLE_LEADER_ELECTION": "true"} if os.environ.get(DAYS) else {}),
            **self._endpoint.variables,
        }
        program = self._engine_set.controller(self._cloud.controller_engine, container.release)
        command = [str(program), *container.arguments]
        if self._cloud.controller_needs_pod_files:
            address = urlsplit(self._api_server)
            variables |= {
                "KUBERNETES_SERVICE_HOST": str(address.hostname),
                "KUBERNETES_SERVICE_PORT": str(address.port),
            }
            files = self._folder / "run"
            pod_files.write(files, container.token, self._authority, container.namespace)
            command = pod_files.command(files, command)
        return variables, command

    def _data(self, namespace: str, kind: str, name: str) -> Mapping[str, str] | None:
        found = self._objects.get(self._objects.path("v1", kind, namespace, name))
        if found is None:
            return None
        data: Mapping[str, str] = found.get("data", {})
        if kind == "Secret":
            return {key: base64.b64decode(value).decode() for key, value in data.items()}
        return data

    def _tell_ready(self, pods: list[Object]) -> None:
        for pod in pods:
            if pod["metadata"]["uid"] not in self._ready and mark_ready(self._objects, pod):
                self._ready.add(pod["metadata"]["uid"])

    def _tell_not_ready(self) -> None:
        """Mark the pods of a process that ended by itself, as in a crash loop."""
        for uid in [] if self._engine else sorted(self._ready):
            if mark_ready(self._objects, self._pods[uid], "false"):
                warn(self._objects, self._pods[uid], "kubelet", "BackOff", self.problem)
            self._ready.discard(uid)

    def _note_end(self, pid: int) -> None:
        """Notice that the process has ended by itself."""
        engine = self._engine
        if engine is None or engine.pid != pid:
            return
        try:
            engine.check()
        except EngineCrashError as error:
            self._engine = None
            self._crashes += 1
            self.problem = str(error)
            self._failures = 1
            if clock.monotonic() - self._began >= 2 * self.back_off[1]:  # a kubelet's patience is new then
                self._back_off = self.back_off[0]
            self._back_away()
            self._endpoint.withdraw()
            # Another event: this one is handled again, and counted again, while no API server answers.
            self._feed.tell("ended", {})
            return
        self._feed.after(self.between_looks, "look", {"pid": pid})

    def _end(self, grace: float = _GRACE) -> None:
        with self._lock:
            running = self._engine is not None
            self._engine = None
            self._endpoint.withdraw()
            self._engines.stop(self._cloud.controller_engine, grace)
        if running and not self._stopped:
            self._release_lease()

    def _release_lease(self) -> None:
        # Karpenter ends on SIGTERM without giving up its lease, and its successor would wait for 15 s. A rehearsal
        # does not: nothing is learnt from that.
        try:
            path = f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases/{_LEASE}"
            try_patch(self._objects, path, {"spec": {"holderIdentity": ""}})
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            if not unavailable(error):
                raise
            _LOG.info("the controller's lease was not released, so its successor waits until it ends: %s", error)


def _tag(image: str) -> str:
    """`1.14.3` of `public.ecr.aws/karpenter/controller:1.14.3@sha256:...`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _template(pod: Object) -> str:
    """Tells pods of one template from those of another; a pod that no Deployment made is a template of its own."""
    return str(pod["metadata"].get("labels", {}).get(_HASH, pod["metadata"]["uid"]))
