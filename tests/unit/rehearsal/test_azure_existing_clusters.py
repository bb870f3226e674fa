"""Clusters that the subscription has already: made as the file says, by the requests that ARM refuses, and seen so."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.clusters.existing import ClusterFileError, Description, make
from rehearsal.azure.network import existing as networks
from rehearsal.host.processes import wait_until
from tests.unit.made_certificates import certificate
from tests.unit.rehearsal.azure_world import AKS, REGION
from tests.unit.rehearsal.provider_azure_world import FakeCluster, Provider
from tests.unit.rehearsal.resource_world import changed_to, without
from tests.unit.test_existing_aks_cluster import STACK

NETWORK = STACK.with_name(f"{STACK.stem}.network.json")
FILE: dict[str, Any] = json.loads(STACK.with_name(f"{STACK.stem}.cluster.json").read_text())
ID = FILE["cluster"]["id"]
GROUP = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/shop"
IDENTITIES = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
Change = Callable[[dict[str, Any]], object]


def description(folder: Path, change: Change, items: Sequence[Mapping[str, Any]]) -> Description:
    file = deepcopy(FILE) | {"items": list(items)}
    change(file["cluster"])
    path = folder / "cluster.json"
    path.write_text(json.dumps(file))
    return Description.load(path)


class Subscriptions:
    """Makes subscriptions with the example's network and cluster, changed in its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Provider] = []

    def __call__(self, change: Change = lambda cluster: None, items: Sequence[Mapping[str, Any]] = ()) -> Provider:
        provider = Provider(self.folder)
        provider.azure.start(self.folder / f"certificates-{len(self.made)}")
        self.made.append(provider)
        networks.make(networks.load(NETWORK), provider.azure.arm, provider.azure.subscription_id, REGION)
        make(description(self.folder, change, items), provider.session)
        return provider


@pytest.fixture
def subscription(tmp_path: Path) -> Iterator[Subscriptions]:
    made = Subscriptions(tmp_path)
    yield made
    for provider in made.made:
        provider.azure.stop()


def plane(provider: Provider) -> FakeCluster:
    return provider.clusters.running["Shop_1"]


def seen(provider: Provider) -> dict[str, Any]:
    arguments = {"resourceGroupName": "shop", "resourceName": "Shop_1"}
    return dict(provider.invokes["azure-native:containerservice:getManagedCluster"](arguments))


def nodes(provider: Provider, pool: str) -> list[str]:
    return [
        name for name, node in plane(provider).nodes.items() if node["labels"]["kubernetes.azure.com/agentpool"] == pool
    ]


def changed(provider: Provider, path: str = "", **properties: Any) -> None:
    """As the Azure CLI changes things: what is there, read and written with changes."""
    body = provider.azure.arm.get(f"{ID}{path}", AKS)
    provider.azure.arm.put(f"{ID}{path}", AKS, {**body, "properties": {**body["properties"], **properties}})


def test_it_is_there_as_the_file_says(subscription: Subscriptions) -> None:
    provider = subscription()
    (started,) = provider.clusters.started
    assert (started["name"], started["version"], started["service_cidr"]) == ("Shop_1", "1.36", "172.20.0.0/16")
    told = seen(provider)
    assert (told["provisioningState"], told["powerState"]) == ("Succeeded", {"code": "Running"})
    assert told["nodeProvisioningProfile"] == {"mode": "Auto", "defaultNodePools": "None"}
    assert told["nodeResourceGroup"] == "MC_shop_Shop_1_westus2"
    assert told["disableLocalAccounts"]
    assert told["aadProfile"] == {"managed": True, "enableAzureRBAC": True}
    assert told["networkProfile"]["dnsServiceIP"] == "172.20.0.10"
    pools = {pool["name"]: pool for pool in told["agentPoolProfiles"]}
    subnet = FILE["cluster"]["agentPoolProfiles"][0]["vnetSubnetId"]
    assert {pool["vnetSubnetID"] for pool in pools.values()} == {subnet}
    assert pools["system"]["nodeTaints"] == ["CriticalAddonsOnly=true:NoSchedule"]
    assert {name: len(nodes(provider, name)) for name in pools} == {"system": 2, "general": 2, "batch": 2}
    assert plane(provider).nodes[nodes(provider, "batch")[0]]["labels"]["team"] == "batch"
    assert plane(provider).controller.hosted


def test_arms_own_form_is_taken_too(subscription: Subscriptions) -> None:
    def arms(cluster: dict[str, Any]) -> None:
        beside = ("id", "name", "location", "sku", "tags", "identity")
        properties = {name: cluster.pop(name) for name in [*cluster] if name not in beside}
        for pool in properties["agentPoolProfiles"]:
            pool["vnetSubnetID"] = pool.pop("vnetSubnetId")
        cluster["properties"] = properties

    provider = subscription(arms)
    assert len(plane(provider).nodes) == 6
    assert seen(provider)["agentPoolProfiles"][0]["vnetSubnetID"]


def test_its_identity_may_join_its_subnet_though_nobody_says_so(subscription: Subscriptions) -> None:
    provider = subscription()
    assert list(seen(provider)["identity"]["userAssignedIdentities"]) == [f"{IDENTITIES}/shop"]

    def of_aks(cluster: dict[str, Any]) -> None:
        cluster["identity"] = {"type": "SystemAssigned", "principalId": "x", "tenantId": "y"}

    assert list(seen(subscription(of_aks))["identity"]["userAssignedIdentities"]) == [f"{IDENTITIES}/Shop_1-system"]


def test_a_kubelets_identity_of_the_owners_is_kept(subscription: Subscriptions) -> None:
    def own(cluster: dict[str, Any]) -> None:
        cluster["identityProfile"] = {"kubeletidentity": {"clientId": "x", "resourceId": f"{IDENTITIES}/kubelet"}}

    assert seen(subscription(own))["identityProfile"]["kubeletidentity"]["resourceId"] == (f"{IDENTITIES}/kubelet")


def test_a_proxy_and_certificates_of_the_owners_are_there(subscription: Subscriptions) -> None:
    root = base64.b64encode(certificate().encode()).decode()

    def behind(cluster: dict[str, Any]) -> None:
        # As a newer version of the API answers.
        shown = {"enabled": True, "httpProxy": "http://proxy:3128", "noProxy": ["konnectivity", "corp.example"]}
        cluster["httpProxyConfig"] = {**shown, "effectiveNoProxy": shown["noProxy"], "trustedCa": None}
        cluster["securityProfile"] |= {"customCaTrustCertificates": [root]}

    told = seen(subscription(behind))
    assert told["httpProxyConfig"]["httpProxy"] == "http://proxy:3128/"
    assert told["httpProxyConfig"]["noProxy"][:2] == ["konnectivity", "corp.example"]
    assert told["securityProfile"]["customCATrustCertificates"] == [root]


def test_a_service_principal_is_played(subscription: Subscriptions) -> None:
    def old(cluster: dict[str, Any]) -> None:
        cluster["identity"] = None
        cluster["servicePrincipalProfile"] = {"clientId": "00000000-0000-0000-0000-000000000001"}
        cluster["nodeProvisioningProfile"] = {"mode": "Manual"}

    provider = subscription(old)
    assert seen(provider)["identity"]["type"] == "None"
    with pytest.raises(ArmError, match=r"cannot be Auto if \.properties\.servicePrincipalProfile is specified"):
        changed(provider, nodeProvisioningProfile={"mode": "Auto"}, identityProfile=None)


def test_other_states_are_played(subscription: Subscriptions) -> None:
    def other(cluster: dict[str, Any]) -> None:
        cluster |= {"provisioningState": "Upgrading", "powerState": {"code": "Stopped"}}

    told = seen(subscription(other))
    assert (told["provisioningState"], told["powerState"]) == ("Upgrading", {"code": "Stopped"})


def _before(cluster: dict[str, Any]) -> None:
    cluster["nodeProvisioningProfile"] = {"mode": "Manual"}
    cluster["agentPoolProfiles"][1] |= {"enableAutoScaling": True, "minCount": 0, "maxCount": 10}


def test_node_auto_provisioning_comes_when_no_pool_is_autoscaled_and_goes(subscription: Subscriptions) -> None:
    provider = subscription(_before)
    assert not plane(provider).controller.hosted
    with pytest.raises(ArmError, match=r"unless all AgentPools have property \.properties\.enableAutoScaling"):
        changed(provider, nodeProvisioningProfile={"mode": "Auto"})
    changed(provider, "/agentPools/general", enableAutoScaling=False, minCount=None, maxCount=None)
    changed(provider, nodeProvisioningProfile={"mode": "Auto"})
    wait_until(lambda: plane(provider).controller.hosted, "node auto provisioning", 5)
    with pytest.raises(ArmError, match="cannot be Auto unless all AgentPools"):
        changed(provider, "/agentPools/general", enableAutoScaling=True, minCount=0, maxCount=10)
    changed(provider, nodeProvisioningProfile={"mode": "Manual"})
    wait_until(lambda: not plane(provider).controller.hosted, "its end", 5)


def test_what_the_owner_calls_default_is_not_akss(subscription: Subscriptions) -> None:
    provider = subscription()
    mine = {"kind": "AKSNodeClass", "metadata": {"name": "default"}}
    plane(provider).apply([mine])
    changed(provider, "/agentPools/general", count=3)
    wait_until(lambda: len(nodes(provider, "general")) == 3, "the new node", 5)
    wait_until(lambda: not any(one.name == "cluster-Shop_1" for one in threading.enumerate()), "the rest", 5)
    assert plane(provider).manifests["AKSNodeClass", "default"] == mine


def test_nodes_follow_their_pool(subscription: Subscriptions) -> None:
    provider = subscription()
    changed(provider, "/agentPools/general", count=4)
    wait_until(lambda: len(nodes(provider, "general")) == 4, "the new nodes", 5)
    changed(provider, "/agentPools/general", count=0)
    wait_until(lambda: not nodes(provider, "general"), "their end", 5)
    provider.azure.arm.delete(f"{ID}/agentPools/batch", AKS)
    wait_until(lambda: not nodes(provider, "batch"), "the end of the pool's nodes", 5)
    assert len(nodes(provider, "system")) == 2


def test_what_arm_refuses_of_a_pool_changes_nothing(subscription: Subscriptions) -> None:
    provider = subscription()
    with pytest.raises(ArmError, match="at least one system agent pool"):
        provider.azure.arm.delete(f"{ID}/agentPools/system", AKS)
    with pytest.raises(ArmError, match="must be between 1 and 1000"):
        changed(provider, "/agentPools/system", count=0)
    assert len(nodes(provider, "system")) == 2


POOL = ("agentPoolProfiles", 1)
REFUSED: dict[str, tuple[Change, str]] = {
    "no id": (without("id"), "cluster.id: Field required"),
    "an id of something else": (changed_to("/subscriptions/1", "id"), "cluster.id: String should match pattern"),
    "a pool without a size": (without(*POOL, "vmSize"), r"agentPoolProfiles\.1\.vmSize: Field required"),
    "a size that is not sold": (changed_to("Standard_Z1", *POOL, "vmSize"), "The VM size of AgentPoolProfile:general"),
    "a version that is not offered": (changed_to("1.19.1", "kubernetesVersion"), "1.19, which is not supported"),
    "a subnet that is not there": (
        changed_to(FILE["cluster"]["agentPoolProfiles"][0]["vnetSubnetId"] + "1", *POOL, "vnetSubnetId"),
        "nodes1",
    ),
    "a dataplane that is not played": (
        changed_to("azure", "networkProfile", "networkDataplane"),
        "Cilium dataplane only",
    ),
    "both scalers": (changed_to(True, *POOL, "enableAutoScaling"), "cannot be Auto unless all AgentPools"),
    "another location": (changed_to("eastus", "location"), "eastus"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cluster_that_cannot_be_is_refused(subscription: Subscriptions, case: str) -> None:
    change, text = REFUSED[case]
    with pytest.raises(ClusterFileError, match=text):
        subscription(change)


def test_what_is_not_played_hides_nothing_that_azure_refuses(subscription: Subscriptions) -> None:
    def change(cluster: dict[str, Any]) -> None:
        for name in ("networkDataplane", "networkPolicy"):
            changed_to("azure", "networkProfile", name)(cluster)
        changed_to("Standard_Z1", *POOL, "vmSize")(cluster)

    with pytest.raises(ClusterFileError, match=r"Cilium dataplane only.*; and The VM size of AgentPoolProfile:general"):
        subscription(change)


@pytest.mark.parametrize("content", ["cluster:", "[]", '{"clusters": {}}', '{"cluster": []}', '{"cluster": null}'])
def test_what_is_no_description_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(content)
    with pytest.raises(ClusterFileError, match=r"existing-aks-cluster\.md"):
        Description.load(path)


def test_what_a_list_has_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(FILE | {"apiVersion": "v1", "kind": "List", "metadata": {}}))
    assert Description.load(path).cluster.id == ID


def test_what_kubectl_prints_is_applied_without_what_the_api_server_wrote(subscription: Subscriptions) -> None:
    item = {"kind": "Deployment", "metadata": {"name": "ca", "uid": "1"}, "spec": {}, "status": {"replicas": 1}}
    applied = plane(subscription(items=[item])).manifests["Deployment", "ca"]
    assert applied == {"kind": "Deployment", "metadata": {"name": "ca"}, "spec": {}}
