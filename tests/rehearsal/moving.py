"""A workload that is moved from pools of nodes to Karpenter's and back, as whoever moves it sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from kubernetes import client, watch

from karpstack.rehearsal.host.processes import wait_until
from tests.rehearsal.conftest import ROOT, RehearsedStack

REPLICAS: Final = 5
OF_KARPENTER: Final = "karpenter.sh/nodepool"
#: Nodes that are empty go soon, and half of them at once, which is as many as the policy pack lets pass.
SOON: Final = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": "5s",
    "budgets": [{"nodes": "50%"}],
}


def seen(probe: Callable[[], bool], what: str, timeout: float) -> None:
    """Wait until something is the case; looked for seldom, for the looks of three moves take a core of two."""
    wait_until(probe, what, timeout, interval=0.5)


def moved(stack: RehearsedStack, **given: str) -> subprocess.CompletedProcess[str]:
    """`ansible-playbook playbooks/move.yml` with what is given; its output is merged."""
    return stack.by_hand(*_playing(given))


def _playing(given: Mapping[str, str]) -> list[str]:
    options = [part for name, value in given.items() for part in ("-e", f"{name}={value}")]
    return ["ansible-playbook", "playbooks/move.yml", *options]


def move(stack: RehearsedStack, **given: str) -> str:
    """The same, which must succeed; what it said at its end."""
    result = moved(stack, **given)
    assert result.returncode == 0, result.stdout
    return " ".join(result.stdout.partition("Say what was moved")[2].split())


def broken_off(stack: RehearsedStack, soon: Callable[[], bool], **given: str) -> str:
    """The output of a move that gets a Ctrl-C of its terminal as soon as something is the case."""
    playing = subprocess.Popen(
        _playing(given),
        cwd=ROOT,
        env=stack.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(soon, "the moment to break the move off", 120)
        os.killpg(playing.pid, signal.SIGINT)
        output, _ = playing.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(playing.pid, signal.SIGKILL)
        playing.wait()
    return " ".join(output.split())


class Shop:
    """A workload with a PodDisruptionBudget that lets one pod go, as whoever moves it sees it."""

    def __init__(self, stack: RehearsedStack) -> None:
        api = stack.api()
        # The client's types say of everything that it may be missing.
        self.core: Any = client.CoreV1Api(api)
        self.apps: Any = client.AppsV1Api(api)
        self._policy: Any = client.PolicyV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)
        #: The least pods that were available at a moment.
        self.least = REPLICAS

    def open(self) -> None:
        labels = {"app": "web"}
        container = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}
        pods = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": pods}
        self.apps.create_namespaced_deployment("default", {"metadata": {"name": "web"}, "spec": spec})
        self._policy.create_namespaced_pod_disruption_budget(
            "default",
            {"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}},
        )
        seen(lambda: self.available() == REPLICAS, "the pods", 60)

    def close(self) -> None:
        """Take it away."""
        self.apps.delete_namespaced_deployment("web", "default")

    def available(self) -> int:
        return int(self.apps.read_namespaced_deployment_status("web", "default").status.available_replicas or 0)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how many pods are available, at each moment of a move."""
        ended = threading.Event()

        def look() -> None:
            stream = watch.Watch()
            since: dict[str, str] = {}
            while not ended.is_set():
                # A watch hears with its next event alone that it is to end, so each is a short one.
                events = stream.stream(self.apps.list_namespaced_deployment, "default", timeout_seconds=2, **since)
                self.least = min([self.least, *(event["object"].status.available_replicas or 0 for event in events)])
                since = {"resource_version": stream.resource_version} if stream.resource_version else {}

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()

    def pods(self) -> set[str]:
        """Names of its pods."""
        found = self.core.list_namespaced_pod("default", label_selector="app=web").items
        return {pod.metadata.name for pod in found if not pod.metadata.deletion_timestamp}

    def nodes(self, selector: str) -> list[str]:
        return [node.metadata.name for node in self.core.list_node(label_selector=selector).items]

    def homes(self, label: str) -> set[str | None]:
        """What a label says of the nodes of the pods; None where a node does not have it."""
        nodes = {node.metadata.name: node.metadata.labels.get(label) for node in self.core.list_node().items}
        pods = self.core.list_namespaced_pod("default", label_selector="app=web").items
        return {nodes.get(pod.spec.node_name) for pod in pods}

    def definitions(self, group: str) -> list[str]:
        """CRDs of API groups whose name has a part of this one."""
        extensions: Any = client.ApiextensionsV1Api(self.core.api_client)
        found = extensions.list_custom_resource_definition().items
        return [one.metadata.name for one in found if group in one.spec.group]

    def limit(self, node_pool: str, cpu: int) -> None:
        """Set how much a NodePool may make."""
        change = {"spec": {"limits": {"cpu": cpu}}}
        self._custom.patch_cluster_custom_object("karpenter.sh", "v1", "nodepools", node_pool, change)
