"""Networks and clusters that the subscription has already, as azure_described.yaml lists them."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import settings
from karpstack.components.settings import AksSettings
from karpstack.preflight.azure import network
from karpstack.preflight.azure.existing_network import find
from karpstack.preflight.azure.subject import subject
from karpstack.preflight.stack import State
from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.clusters.existing import ClusterFileError, Description, make
from karpstack.rehearsal.azure.network import existing as networks
from karpstack.rehearsal.azure.network.existing import NetworkFileError
from karpstack.rehearsal.host.processes import wait_until
from tests.unit.example_stack import ROOT, raw, stack_file
from tests.unit.made_certificates import certificate
from tests.unit.preflight.preflight_azure_world import asked
from tests.unit.rehearsal.azure_world import AKS, NETWORK, REGION, World
from tests.unit.rehearsal.provider_azure_world import FakeCluster, Provider
from tests.unit.rehearsal.recordings import resolved
from tests.unit.rehearsal.resource_world import Change, changed
from tests.unit.rehearsal.steps import unlike

TABLE = yaml.safe_load(Path(__file__).with_name("azure_described.yaml").read_text())
VNETS = ROOT / "examples" / "existing-vnet"
RESOURCES: list[dict[str, Any]] = json.loads((VNETS / "Pulumi.aks-existing-vnet.network.json").read_text())
TABLE_ID, _, VNET = (one["id"] for one in RESOURCES)
STACK = stack_file("aks-existing-cluster")
FILE: dict[str, Any] = json.loads(STACK.with_name(f"{STACK.stem}.cluster.json").read_text())
ID = FILE["cluster"]["id"]
SUBNET = FILE["cluster"]["agentPoolProfiles"][0]["vnetSubnetId"]
_GROUP = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/shop/providers"
IDENTITIES = f"{_GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities"
ROOT_CERTIFICATE = base64.b64encode(certificate().encode()).decode()
Row = Mapping[str, Any]


def rows(section: str) -> list[Any]:
    named = {"subnet": SUBNET, "nowhere": f"{SUBNET}1", "root": ROOT_CERTIFICATE}
    text = json.dumps(TABLE[section]).replace("<identities>", IDENTITIES)
    found = [resolved(row, named.__getitem__) for row in json.loads(text)]
    return [pytest.param(row, id=str(row.get("refused") or number)) for number, row in enumerate(found)]


# Networks.


def written(folder: Path, row: Row) -> Path:
    path = folder / "network.json"
    path.write_text(row.get("text") or json.dumps(changed({"resources": RESOURCES}, row)["resources"]))
    return path


def made(folder: Path, row: Row) -> World:
    world = World()
    networks.make(networks.load(written(folder, row)), world.arm, world.azure.subscription_id, REGION)
    return world


@pytest.mark.parametrize("row", rows("no networks"))
def test_a_network_that_cannot_be_is_refused(row: Row, tmp_path: Path) -> None:
    with pytest.raises(NetworkFileError, match=re.escape(row["refused"])):
        made(tmp_path, row)


def test_a_network_is_there_as_the_file_says_and_the_check_finds_nothing(tmp_path: Path) -> None:
    world = made(tmp_path, {})
    told, vnet = RESOURCES[2]["properties"], world.arm.get(VNET, NETWORK)["properties"]
    assert vnet["resourceGuid"] == told["resourceGuid"]
    prefixes = [[one["properties"]["addressPrefix"] for one in each["subnets"]] for each in (vnet, told)]
    assert prefixes[0] == prefixes[1]
    (delegated,) = (one["properties"] for one in vnet["subnets"] if one["name"] == "api-server")
    services = [one["properties"]["serviceName"] for one in delegated["delegations"]]
    assert services == ["Microsoft.ContainerService/managedClusters"]
    subnets = [one["id"] for one in world.arm.get(TABLE_ID, NETWORK)["properties"]["subnets"]]
    assert subnets == [f"{VNET}/subnets/{name}" for name in ("system", "workloads", "batch")]
    loaded = settings.load(raw(yaml.safe_load((VNETS / "Pulumi.aks-existing-vnet.yaml").read_text())["config"]))
    assert isinstance(loaded, AksSettings)
    world.azure.start(tmp_path / "certificates")
    try:
        seen = subject(asked(world), loaded, State())
        assert not list(network.subnet(seen))
        found = find(seen, f"{VNET}/subnets/system")
    finally:
        world.azure.stop()
    assert found.routes == {TABLE_ID.lower(): {"0.0.0.0/0": "VirtualAppliance"}}
    assert [str(one) for one in found.peered["hub"]] == ["10.20.0.0/16"]


def test_one_resource_alone_is_a_file_too(tmp_path: Path) -> None:
    world = made(tmp_path, {"text": json.dumps(RESOURCES[0])})
    assert world.arm.get(TABLE_ID, NETWORK)["properties"]["routes"][0]["name"] == "default"


# Clusters.


class Subscriptions:
    """Makes subscriptions with the example's network and cluster, changed in its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Provider] = []

    def __call__(self, row: Row | Change = {}, items: Sequence[Row] = ()) -> Provider:  # noqa: B006  not changed
        provider = Provider(self.folder)
        provider.azure.start(self.folder / f"certificates-{len(self.made)}")
        self.made.append(provider)
        azure, beside = provider.azure, STACK.with_name(f"{STACK.stem}.network.json")
        networks.make(networks.load(beside), azure.arm, azure.subscription_id, REGION)
        text = row.get("text") if isinstance(row, Mapping) else None
        path = self.folder / "cluster.json"
        # A file is what `kubectl get --output json` prints, a list.
        file = {"kind": "List", "cluster": changed(FILE["cluster"], row), "items": [*items]} if not text else {}
        path.write_text(text or json.dumps(file))
        make(Description.load(path), provider.session)
        return provider


@pytest.fixture
def subscription(tmp_path: Path) -> Iterator[Subscriptions]:
    made = Subscriptions(tmp_path)
    yield made
    for provider in made.made:
        provider.azure.stop()


def plane(provider: Provider) -> FakeCluster:
    return provider.clusters.running["Shop_1"]


def nodes(provider: Provider, pool: str) -> list[str]:
    labels = {name: node["labels"] for name, node in plane(provider).nodes.items()}
    return [name for name, one in labels.items() if one["kubernetes.azure.com/agentpool"] == pool]


def change(provider: Provider, path: str = "", **properties: Any) -> None:
    """As the Azure CLI changes things: what is there, read and written with changes."""
    body = provider.azure.arm.get(f"{ID}{path}", AKS)
    provider.azure.arm.put(f"{ID}{path}", AKS, {**body, "properties": {**body["properties"], **properties}})


@pytest.mark.parametrize("row", rows("no clusters"))
def test_a_cluster_that_cannot_be_is_refused(subscription: Subscriptions, row: Row) -> None:
    with pytest.raises(ClusterFileError, match=re.escape(row["refused"])):
        subscription(row)


@pytest.mark.parametrize("row", rows("clusters"))
def test_the_program_is_told_what_the_file_says(subscription: Subscriptions, row: Row) -> None:
    provider = subscription(row)
    get = provider.invokes["azure-native:containerservice:getManagedCluster"]
    assert not unlike(get({"resourceGroupName": "shop", "resourceName": "Shop_1"}), row["gives"])
    if "then" in row:
        with pytest.raises(ArmError, match=re.escape(row["refused"])):
            change(provider, **row["then"])


def test_a_cluster_runs_as_the_file_says(subscription: Subscriptions) -> None:
    written = {"kind": "Deployment", "metadata": {"name": "ca", "uid": "1"}, "spec": {}, "status": {"replicas": 1}}
    provider = subscription(items=[written])
    (started,) = provider.clusters.started
    assert (started["name"], started["version"], started["service_cidr"]) == ("Shop_1", "1.36", "172.20.0.0/16")
    assert {name: len(nodes(provider, name)) for name in ("system", "general", "batch")} == dict.fromkeys(
        ("system", "general", "batch"), 2
    )
    assert plane(provider).nodes[nodes(provider, "batch")[0]]["labels"]["team"] == "batch"
    assert plane(provider).controller.hosted
    # Objects are applied without what the API server wrote.
    applied = {"kind": "Deployment", "metadata": {"name": "ca"}, "spec": {}}
    assert plane(provider).manifests["Deployment", "ca"] == applied


def test_node_auto_provisioning_comes_when_no_pool_is_autoscaled_and_goes(subscription: Subscriptions) -> None:
    scaled: dict[str, Any] = {"enableAutoScaling": True, "minCount": 0, "maxCount": 10}
    before: dict[str, dict[str, Any]] = {"set": {f"agentPoolProfiles.1.{key}": value for key, value in scaled.items()}}
    before["set"]["nodeProvisioningProfile"] = {"mode": "Manual"}
    provider = subscription(before)
    assert not plane(provider).controller.hosted
    with pytest.raises(ArmError, match=r"unless all AgentPools have property \.properties\.enableAutoScaling"):
        change(provider, nodeProvisioningProfile={"mode": "Auto"})
    change(provider, "/agentPools/general", enableAutoScaling=False, minCount=None, maxCount=None)
    change(provider, nodeProvisioningProfile={"mode": "Auto"})
    wait_until(lambda: plane(provider).controller.hosted, "node auto provisioning", 5)
    with pytest.raises(ArmError, match="cannot be Auto unless all AgentPools"):
        change(provider, "/agentPools/general", **scaled)
    change(provider, nodeProvisioningProfile={"mode": "Manual"})
    wait_until(lambda: not plane(provider).controller.hosted, "its end", 5)


def test_nodes_follow_their_pool(subscription: Subscriptions) -> None:
    provider = subscription()
    # What the owner calls default is not AKS's.
    mine = {"kind": "AKSNodeClass", "metadata": {"name": "default"}}
    plane(provider).apply([mine])
    change(provider, "/agentPools/general", count=4)
    wait_until(lambda: len(nodes(provider, "general")) == 4, "the new nodes", 5)
    change(provider, "/agentPools/general", count=0)
    wait_until(lambda: not nodes(provider, "general"), "their end", 5)
    provider.azure.arm.delete(f"{ID}/agentPools/batch", AKS)
    wait_until(lambda: not nodes(provider, "batch"), "the end of the pool's nodes", 5)
    with pytest.raises(ArmError, match="at least one system agent pool"):
        provider.azure.arm.delete(f"{ID}/agentPools/system", AKS)
    with pytest.raises(ArmError, match="must be between 1 and 1000"):
        change(provider, "/agentPools/system", count=0)
    wait_until(lambda: not any(one.name == "cluster-Shop_1" for one in threading.enumerate()), "the rest", 5)
    assert len(nodes(provider, "system")) == 2
    assert plane(provider).manifests["AKSNodeClass", "default"] == mine
