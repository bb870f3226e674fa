"""A cluster that is there, by the real engine: what is refused, and the move from its node groups and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.rehearsal.conftest import RehearsedStack, changed_example
from tests.rehearsal.moving import OF_KARPENTER, REPLICAS, SOON, Shop, broken_off, move, moved, seen

STACK = "eks-existing-cluster"
CLUSTER = "Shop_1"
OF_GROUP = "eks.amazonaws.com/nodegroup"


def example(folder: Path, change: Callable[[dict[str, Any]], object] = lambda cluster: None) -> RehearsedStack:
    """The example, with its cluster changed."""
    stack = changed_example(folder, "existing-cluster", STACK, "cluster", change)
    stack.configure(**{"karpstack:nodePools/default/disruption": SOON})
    return stack


def looked(stack: RehearsedStack) -> dict[tuple[str, str], str]:
    """What the look before `up` finds: by check and severity."""
    found = stack.findings()
    return {
        (name, severity): "; ".join(what for *same, what in found if same == [name, severity])
        for name, severity, _ in found
    }


def _strange(file: dict[str, Any]) -> None:
    file["cluster"]["accessConfig"] = {
        "authenticationMode": "CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": False,
    }


def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path) -> None:
    stack = example(tmp_path, _strange)
    try:
        result = stack.command("up", "--keep")
        assert result.returncode != 0
        assert not stack.made()
        stack.aws("sqs").create_queue(QueueName="karpstack-shop-interruption")
        errors = {name: what for (name, severity), what in looked(stack).items() if severity == "error"}
    finally:
        stack.command("down", "--force")
    assert "the authentication mode CONFIG_MAP" in errors["cluster"]
    assert "does not accept the deployer as an administrator" in errors["cluster"]
    assert "the SQS queue karpstack-shop-interruption already exists" in errors["queue's name"]
    assert errors.keys() == {"cluster", "queue's name"}
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "has the authentication mode CONFIG_MAP" in result.stdout
    assert "authenticationMode=API_AND_CONFIG_MAP" in result.stdout
    assert "does not accept the deployer as an administrator: 401 Unauthorized" in result.stdout
    assert "Traceback" not in result.stdout


class GroupedShop(Shop):
    """One on managed node groups."""

    def __init__(self, stack: RehearsedStack) -> None:
        super().__init__(stack)
        self._eks = stack.aws("eks")

    def scale(self, group: str, size: int) -> None:
        sizes = {"minSize": 0, "maxSize": 10, "desiredSize": size}
        self._eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName=group, scalingConfig=sizes)
        seen(lambda: len(self.nodes(f"{OF_GROUP}={group}")) == size, f"{size} nodes of {group}", 60)

    def delete(self, group: str) -> None:
        self._eks.delete_nodegroup(clusterName=CLUSTER, nodegroupName=group)


def test_the_move_to_karpenter_and_the_way_back(tmp_path: Path) -> None:
    """docs/how-to/eks/move-from-cluster-autoscaler.md, with both groups under load."""
    stack = example(tmp_path)
    try:
        output = stack.succeed("up")
        assert "also runs Cluster Autoscaler, the Deployment kube-system/cluster-autoscaler" in output
        assert "aws:iam/role:Role" in stack.made()
        assert not {"aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"} & stack.made()
        found = looked(stack)
        assert "also runs Cluster Autoscaler" in found["cluster", "warning"]
        assert {severity for _, severity in found} == {"note", "warning"}
        shop = GroupedShop(stack)
        shop.open()
        assert shop.homes(OF_GROUP) == {"general", "batch"}
        assert "kubectl scale deployment cluster-autoscaler" in moved(stack, from_groups="general").stdout
        shop.apps.patch_namespaced_deployment_scale("cluster-autoscaler", "kube-system", {"spec": {"replicas": 0}})
        with shop.watched():
            nodes = [node for group in ("general", "batch") for node in shop.nodes(f"{OF_GROUP}={group}")]
            before = shop.pods()
            said = broken_off(stack, lambda: not before <= shop.pods(), from_groups="general,batch")
            assert "User interrupted execution" in said
            assert all(
                node in said.partition("These nodes take no new pods until this is undone:")[2] for node in nodes
            )
            assert "goes on with: ansible-playbook playbooks/move.yml -e from_groups=general,batch" in said
            assert "-e from_groups=general,batch -e undo=true" in said
            # At once: the pod that was evicted last may be without a node yet.
            second = moved(stack, from_groups="general,batch")
            assert second.returncode == 0, second.stdout
            said = " ".join(second.stdout.split())
            assert "A move before has cordoned these, and goes on: " in said
            assert "pods of 4 nodes have moved" in said
            assert "PodDisruptionBudgets that were broken: none" in said
            assert "--nodegroup-name batch --scaling-config" in said
            assert shop.homes(OF_KARPENTER) == {"default"}
            for group in ("general", "batch"):
                shop.scale(group, 0)
            assert "nothing is left to move; groups with nodes: core" in move(stack, from_groups="general,batch")

            shop.scale("general", 4)
            assert "the NodePool default would make new nodes" in moved(stack, from_node_pools="default").stdout
            shop.limit("default", 0)
            assert "Karpenter removes them" in move(stack, from_node_pools="default")
            seen(lambda: shop.available() == REPLICAS, "the pods on the group's nodes", 120)
            assert shop.homes(OF_GROUP) == {"general"}
            seen(lambda: not shop.nodes(OF_KARPENTER), "the end of Karpenter's nodes", 300)
        assert shop.least == REPLICAS - 1
        shop.delete("batch")
        again = stack.succeed("up")
        assert "unchanged" in again
        stack.succeed("down")
    finally:
        stack.command("down", "--force")
