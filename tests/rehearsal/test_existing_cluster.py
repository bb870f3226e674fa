"""A cluster that is there, by the real engine: what is refused, and the move from its node groups and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rehearsal.host.processes import wait_until
from tests.rehearsal.conftest import RehearsedStack, changed_example
from tests.rehearsal.moving import OF_KARPENTER, REPLICAS, Shop

STACK = "eks-existing-cluster"
CLUSTER = "Shop_1"
OF_GROUP = "eks.amazonaws.com/nodegroup"


def example(folder: Path, change: Callable[[dict[str, Any]], object] = lambda cluster: None) -> RehearsedStack:
    """The example, with its cluster changed."""
    return changed_example(folder, "existing-cluster", STACK, "cluster", change)


def _strange(file: dict[str, Any]) -> None:
    file["cluster"]["accessConfig"] = {
        "authenticationMode": "CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": False,
    }


def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    stack = example(tmp_path, _strange)
    result = stack.command("up")
    assert result.returncode != 0
    assert not stack.made()
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "has the authentication mode CONFIG_MAP" in result.stdout
    assert "authenticationMode=API_AND_CONFIG_MAP" in result.stdout
    assert "does not let in whoever deploys as an administrator: 401 Unauthorized" in result.stdout
    assert "Traceback" not in result.stdout


def test_a_cluster_that_cannot_be_played_is_told_with_its_file(tmp_path: Path) -> None:
    result = example(tmp_path, lambda file: file["nodegroups"][0].pop("instanceTypes")).command("up")
    assert result.returncode != 0
    assert f"Pulumi.{STACK}.cluster.json: nodegroups.0.instanceTypes" in result.stdout
    assert "Traceback" not in result.stdout


class GroupedShop(Shop):
    """One on managed node groups."""

    def __init__(self, stack: RehearsedStack) -> None:
        super().__init__(stack)
        self._eks = stack.aws("eks")

    def scale(self, group: str, size: int) -> None:
        sizes = {"minSize": 0, "maxSize": 10, "desiredSize": size}
        self._eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName=group, scalingConfig=sizes)
        wait_until(lambda: len(self.nodes(f"{OF_GROUP}={group}")) == size, f"{size} nodes of {group}", 60)

    def delete(self, group: str) -> None:
        self._eks.delete_nodegroup(clusterName=CLUSTER, nodegroupName=group)


def test_the_move_to_karpenter_and_the_way_back(tmp_path: Path) -> None:
    """docs/move-from-cluster-autoscaler.md, with both groups under load."""
    stack = example(tmp_path)
    try:
        output = stack.succeed("up")
        assert "has Cluster Autoscaler too, the Deployment kube-system/cluster-autoscaler" in output
        assert "aws:iam/role:Role" in stack.made()
        assert not {"aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"} & stack.made()
        shop = GroupedShop(stack)
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
            shop.limit("default", 0)
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
