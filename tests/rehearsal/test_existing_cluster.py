"""A cluster that is there, by the real engine: what is refused, and the move from its node groups and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client

from rehearsal.host.processes import wait_until
from tests.rehearsal.conftest import RehearsedStack, changed_example

STACK = "eks-existing-cluster"
CLUSTER = "Shop_1"
REPLICAS = 5
OF_GROUP, OF_KARPENTER = "eks.amazonaws.com/nodegroup", "karpenter.sh/nodepool"


def example(folder: Path, change: Callable[[dict[str, Any]], object] = lambda cluster: None) -> RehearsedStack:
    """The example, with its cluster changed."""
    return changed_example(folder, "existing-cluster", STACK, "cluster", change)


def _strange(file: dict[str, Any]) -> None:
    file["cluster"]["accessConfig"] = {
        "authenticationMode": "CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": False,
    }


def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    result = example(tmp_path, _strange).command("up")
    assert result.returncode != 0
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "has the authentication mode CONFIG_MAP" in result.stdout
    assert "authenticationMode=API_AND_CONFIG_MAP" in result.stdout
    assert "does not let in whoever deploys as an administrator: 401 Unauthorized" in result.stdout
    assert "Traceback" not in result.stdout
    assert "aws:iam:Role" not in result.stdout


def test_a_cluster_that_cannot_be_played_is_told_with_its_file(tmp_path: Path) -> None:
    result = example(tmp_path, lambda file: file["nodegroups"][0].pop("instanceTypes")).command("up")
    assert result.returncode != 0
    assert f"Pulumi.{STACK}.cluster.json: nodegroups.0.instanceTypes" in result.stdout
    assert "Traceback" not in result.stdout


class Shop:
    """A workload with a PodDisruptionBudget that lets one pod go, as whoever moves it sees it."""

    def __init__(self, stack: RehearsedStack) -> None:
        self._stack = stack
        api = stack.api()
        # The client's types say of everything that it may be missing.
        self.core: Any = client.CoreV1Api(api)
        self.apps: Any = client.AppsV1Api(api)
        self._policy: Any = client.PolicyV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)
        self._eks = stack.aws("eks")
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
        wait_until(lambda: self.available() == REPLICAS, "the pods", 60)

    def available(self) -> int:
        return int(self.apps.read_namespaced_deployment_status("web", "default").status.available_replicas or 0)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how many pods are available, at each moment of a move."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.2):
                self.least = min(self.least, self.available())

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()

    def nodes(self, selector: str) -> list[str]:
        return [node.metadata.name for node in self.core.list_node(label_selector=selector).items]

    def homes(self, label: str) -> set[str | None]:
        """What a label says of the nodes of the pods; None where a node does not have it."""
        nodes = {node.metadata.name: node.metadata.labels.get(label) for node in self.core.list_node().items}
        pods = self.core.list_namespaced_pod("default", label_selector="app=web").items
        return {nodes.get(pod.spec.node_name) for pod in pods}

    def cordon(self, *nodes: str) -> None:
        for node in nodes:
            self.core.patch_node(node, {"spec": {"unschedulable": True}})

    def drain(self, node: str) -> None:
        """Evict what no DaemonSet has put there, as often as it takes until budgets let it go."""
        until = time.monotonic() + 120
        while pods := [
            pod
            for pod in self.core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={node}").items
            if not any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
        ]:
            assert time.monotonic() < until, f"{node} still has {[pod.metadata.name for pod in pods]}"
            for pod in pods:
                name, namespace = pod.metadata.name, pod.metadata.namespace
                try:
                    self.core.create_namespaced_pod_eviction(
                        name, namespace, {"metadata": {"name": name, "namespace": namespace}}
                    )
                except client.ApiException as error:
                    if error.status not in (404, 429):  # it is gone, or a budget holds it
                        raise
            time.sleep(0.5)

    def scale(self, group: str, size: int) -> None:
        sizes = {"minSize": 0, "maxSize": 10, "desiredSize": size}
        self._eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName=group, scalingConfig=sizes)
        wait_until(lambda: len(self.nodes(f"{OF_GROUP}={group}")) == size, f"{size} nodes of {group}", 60)

    def delete(self, group: str) -> None:
        self._eks.delete_nodegroup(clusterName=CLUSTER, nodegroupName=group)

    def limit(self, cpu: int) -> None:
        change = {"spec": {"limits": {"cpu": cpu}}}
        self._custom.patch_cluster_custom_object("karpenter.sh", "v1", "nodepools", "default", change)


def test_the_move_to_karpenter_and_the_way_back(tmp_path: Path) -> None:
    """docs/move-from-cluster-autoscaler.md, with both groups under load."""
    stack = example(tmp_path)
    try:
        output = stack.succeed("up")
        assert "has Cluster Autoscaler too, the Deployment kube-system/cluster-autoscaler" in output
        assert "aws:eks:Cluster " not in output
        assert "aws:eks:NodeGroup" not in output
        shop = Shop(stack)
        shop.open()
        assert shop.homes(OF_GROUP) == {"general", "batch"}
        with shop.watched():
            shop.apps.patch_namespaced_deployment_scale("cluster-autoscaler", "kube-system", {"spec": {"replicas": 0}})
            shop.cordon(*shop.nodes(f"{OF_GROUP} in (general, batch)"))
            for group in ("general", "batch"):
                for node in shop.nodes(f"{OF_GROUP}={group}"):
                    shop.drain(node)
                shop.scale(group, 0)
            wait_until(lambda: shop.available() == REPLICAS, "the pods on Karpenter's nodes", 120)
            assert shop.homes(OF_KARPENTER) == {"default"}

            shop.scale("general", 4)
            shop.limit(0)
            mine = shop.nodes(OF_KARPENTER)
            shop.cordon(*mine)
            for node in mine:
                shop.drain(node)
            wait_until(lambda: shop.available() == REPLICAS, "the pods on the group's nodes", 120)
            assert shop.homes(OF_GROUP) == {"general"}
            wait_until(lambda: not shop.nodes(OF_KARPENTER), "the end of Karpenter's nodes", 300)
        assert shop.least >= REPLICAS - 1
        shop.delete("batch")
        again = stack.succeed("up")
        assert "unchanged" in again
        stack.succeed("down")
    finally:
        stack.command("down", "--force")
