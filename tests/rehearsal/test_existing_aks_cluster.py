"""An AKS cluster that is there, by the real engine: what is refused, and the move from its agent pools and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.rehearsal.conftest import ROOT, RehearsedStack, changed_example
from tests.rehearsal.moving import OF_KARPENTER, REPLICAS, SOON, Shop, move, seen

STACK = "aks-existing-cluster"
CLUSTER = "Shop_1"
OF_POOL = "kubernetes.azure.com/agentpool"
SCALED = {"enableAutoScaling": True, "minCount": 0, "maxCount": 10}


def example(folder: Path, change: Callable[[dict[str, Any]], object] = lambda cluster: None) -> RehearsedStack:
    """The example, with its cluster changed."""
    stack = changed_example(
        folder, "existing-aks-cluster", STACK, "cluster", lambda described: change(described["cluster"])
    )
    stack.configure(**{"karpstack:nodePools/general/disruption": SOON})
    return stack


def _before(cluster: dict[str, Any]) -> None:
    """As it was before anybody thought of node auto provisioning: AKS's cluster autoscaler scales the user pools."""
    cluster["nodeProvisioningProfile"] = {"mode": "Manual"}
    for pool in cluster["agentPoolProfiles"][1:]:
        pool |= SCALED


class Owner:
    """Whoever owns the cluster, at work with the Azure CLI: what its commands ask of ARM."""

    def __init__(self, stack: RehearsedStack) -> None:
        variables = stack.info.variables
        self._base = variables["ARM_RESOURCE_MANAGER_ENDPOINT"].rstrip("/")
        answer = requests.get(
            variables["IDENTITY_ENDPOINT"],
            params={"resource": "https://management.azure.com/", "api-version": "2019-08-01"},
            headers={"X-IDENTITY-HEADER": variables["IDENTITY_HEADER"]},
            timeout=30,
        )
        self._headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        self._cluster = (
            f"/subscriptions/{stack.configured('azure-native:subscriptionId')}/resourceGroups/shop/providers"
            f"/Microsoft.ContainerService/managedClusters/{CLUSTER}"
        )

    def update(self, **properties: Any) -> requests.Response:
        """`az aks update`: what is there, changed."""
        return self._change(self._cluster, properties)

    def update_pool(self, name: str, **properties: Any) -> requests.Response:
        """`az aks nodepool update` and `scale`."""
        return self._change(f"{self._cluster}/agentPools/{name}", properties)

    def delete_pool(self, name: str) -> requests.Response:
        """`az aks nodepool delete`."""
        return self._asked("DELETE", f"{self._cluster}/agentPools/{name}")

    def _change(self, path: str, properties: dict[str, Any]) -> requests.Response:
        seen(lambda: self._state(path) == "Succeeded", f"the end of the last update of {path}", 60)
        body = self._asked("GET", path).json()
        body["properties"] |= properties
        answer = self._asked("PUT", path, json=body)
        seen(lambda: self._state(path) == "Succeeded", f"the end of the update of {path}", 60)
        return answer

    def _state(self, path: str) -> str:
        return str(self._asked("GET", path).json()["properties"]["provisioningState"])

    def _asked(self, method: str, path: str, **more: Any) -> requests.Response:
        return requests.request(
            method,
            f"{self._base}{path}",
            params={"api-version": "2025-09-01"},
            headers=self._headers,
            timeout=60,
            **more,
        )


def taken(answer: requests.Response) -> None:
    assert answer.ok, answer.text


def refused(answer: requests.Response, code: str) -> None:
    assert (answer.status_code // 100, answer.json()["error"]["code"]) == (4, code), answer.text


def looked(stack: RehearsedStack) -> str:
    """What is in the way, by the look before `up`."""
    return "; ".join(what for _, severity, what in stack.findings() if severity == "error")


def _gone(shop: Shop, pool: str) -> bool:
    return not shop.nodes(f"{OF_POOL}={pool}")


def _wait_for_pods(shop: Shop, label: str, name: str) -> None:
    """Until all run on nodes of a pool, or of a NodePool."""
    seen(lambda: shop.available() == REPLICAS and shop.homes(label) == {name}, f"the pods on {name}", 120)


def _empty(stack: RehearsedStack, shop: Shop) -> None:
    """Karpenter makes no more nodes, and those that it has made go, with their pods on the pool `general`."""
    shop.limit("general", 0)
    move(stack, from_node_pools="general")
    _wait_for_pods(shop, OF_POOL, "general")
    seen(lambda: not shop.nodes(OF_KARPENTER), "the end of Karpenter's nodes", 300)


def _destroy(stack: RehearsedStack) -> None:
    stack.done("pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive", timeout=300)


def test_the_move_to_node_auto_provisioning_and_the_way_back(tmp_path: Path) -> None:
    """docs/how-to/aks/move-to-nap.md, with both user pools under load."""
    stack = example(tmp_path, _before)
    try:
        before = stack.command("up", "--keep")
        assert before.returncode != 0
        errors = looked(stack)
        assert "has node auto provisioning disabled" in errors
        for pool in ("general", "batch"):
            assert f"has the pool {pool}, which the cluster autoscaler scales" in errors
        assert "the stack's configuration has 3 errors; nothing was created in the cloud" in before.stdout
        for pool in ("general", "batch"):
            command = f"nodepool update --resource-group shop --cluster-name {CLUSTER} --name {pool}"
            assert f"az aks {command} --disable-cluster-autoscaler" in before.stdout
        assert "--node-provisioning-mode Auto --node-provisioning-default-pools None" in before.stdout
        assert "Traceback" not in before.stdout

        owner, shop = Owner(stack), Shop(stack)
        shop.open()
        assert shop.homes(OF_POOL) == {"general", "batch"}
        auto = {"mode": "Auto", "defaultNodePools": "None"}
        refused(owner.update(nodeProvisioningProfile=auto), "OperationNotAllowed")
        with shop.watched():
            for pool in ("general", "batch"):
                taken(owner.update_pool(pool, enableAutoScaling=False, minCount=None, maxCount=None))
            taken(owner.update(nodeProvisioningProfile=auto))
            stack.succeed("up")
            assert not stack.made()
            assert looked(stack) == ""

            assert "PodDisruptionBudgets that were broken: none" in move(stack, from_groups="general,batch")
            for pool in ("general", "batch"):
                taken(owner.update_pool(pool, count=0))
                seen(partial(_gone, shop, pool), f"the end of {pool}'s nodes", 60)
            _wait_for_pods(shop, OF_KARPENTER, "general")
            taken(owner.delete_pool("batch"))

            taken(owner.update_pool("general", count=4))
            seen(lambda: len(shop.nodes(f"{OF_POOL}=general")) == 4, "the pool's nodes", 60)
            refused(owner.update(nodeProvisioningProfile={"mode": "Manual"}), "NodeAutoProvisioningDisableNotAllowed")
            _empty(stack, shop)
        assert shop.least == REPLICAS - 1
        _destroy(stack)
        taken(owner.update(nodeProvisioningProfile={"mode": "Manual"}))
        taken(owner.update_pool("general", **SCALED))
        stack.succeed("down")
    finally:
        stack.command("down", "--force")


def _manual(cluster: dict[str, Any]) -> None:
    cluster["nodeProvisioningProfile"] = {"mode": "Manual"}


def test_the_move_from_a_karpenter_of_ones_own(tmp_path: Path) -> None:
    """The same page: one that a stack has put on the cluster, and its CRDs, are gone before AKS's comes."""
    stack = example(tmp_path, _manual)
    shipped = yaml.safe_load((ROOT / "Pulumi.aks-self-hosted.yaml").read_text())["config"]
    karpenter = {"sshPublicKey": shipped["karpstack:karpenter"]["sshPublicKey"]}
    try:
        stack.configure(**{"karpstack:mode": "self-hosted", "karpstack:karpenter": karpenter})
        stack.succeed("up")
        assert "azure-native:authorization:RoleAssignment" in stack.made()
        assert "azure-native:containerservice:ManagedCluster" not in stack.made()
        owner, shop = Owner(stack), Shop(stack)
        move(stack, from_groups="general,batch")
        shop.open()
        assert shop.homes(OF_KARPENTER) == {"general"}
        with shop.watched():
            taken(owner.update_pool("general", count=6))
            seen(lambda: len(shop.nodes(f"{OF_POOL}=general")) == 6, "the pool's nodes", 60)
            _empty(stack, shop)
            _destroy(stack)
            assert not shop.definitions("karpenter")

            taken(owner.update(nodeProvisioningProfile={"mode": "Auto", "defaultNodePools": "None"}))
            stack.configure(**{"karpstack:mode": "nap", "karpstack:karpenter": None})
            stack.succeed("up")
            assert not stack.made()
            move(stack, from_groups="general")
            _wait_for_pods(shop, OF_KARPENTER, "general")
        assert shop.least == REPLICAS - 1
        shop.close()  # there is no place for it but Karpenter's nodes
        stack.succeed("down")
    finally:
        stack.command("down", "--force")
