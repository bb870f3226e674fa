"""What the program asks for the example of all add-ons, taken by the simulated subscription with the example's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components import aks, settings
from karpstack.rehearsal.azure.network import existing
from tests.unit.example_stack import ROOT, raw
from tests.unit.mock_engine import Deployment, deploy
from tests.unit.rehearsal.azure_world import REGION
from tests.unit.rehearsal.provider_azure_world import Provider

FOLDER = ROOT / "examples" / "addons-aks"
STACK, FILE = FOLDER / "Pulumi.aks-addons.yaml", FOLDER / "Pulumi.aks-addons.network.json"
#: Of which resource the stack's own name is in the requests, as the mocks write IDs.
ORDER = (
    "azure-native:operationalinsights:Workspace",
    "azure-native:monitor:AzureMonitorWorkspace",
    "azure-native:monitor:DataCollectionEndpoint",
    "azure-native:containerservice:ManagedCluster",
    "azure-native:monitor:DataCollectionRule",
    "azure-native:monitor:DataCollectionRuleAssociation",
    "azure-native:monitor:DiagnosticSetting",
    "azure-native:authorization:RoleAssignment",
)


def loaded(mode: str = "nap") -> settings.AksSettings:
    """The example, with the other example's Karpenter where it is self-hosted."""
    said = yaml.safe_load(STACK.read_text())["config"]
    if mode == "self-hosted":
        own = yaml.safe_load((ROOT / "Pulumi.aks-self-hosted.yaml").read_text())["config"]
        said |= {
            f"karpstack:{key}": own[f"karpstack:{key}"] for key in ("mode", "karpenter", "nodeClasses", "nodePools")
        }
        del said["karpstack:nodeProvisioning"]
    found = settings.load(raw(said))
    assert isinstance(found, settings.AksSettings)
    return found


def program(mode: str) -> Deployment:
    return deploy(lambda: aks.Environment("aks", loaded(mode)))


def replaced(value: Any, ids: dict[str, str]) -> Any:
    """With the real IDs instead of the mocks'."""
    if isinstance(value, dict):
        return {key: replaced(each, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, ids) for each in value]
    return ids.get(value, value) if isinstance(value, str) else value


def test_the_file_has_what_the_example_names() -> None:
    named = {*loaded().addons.registry_ids, *loaded().addons.vault_ids}
    assert named == {one["id"] for one in json.loads(FILE.read_text())}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    made = Provider(tmp_path)
    made.azure.start(tmp_path / "wire")
    yield made
    made.azure.stop()


@pytest.mark.parametrize("mode", ["nap", "self-hosted"])
def test_each_request_is_taken(provider: Provider, mode: str) -> None:
    subscription = provider.azure
    existing.make(existing.load(FILE), subscription.arm, subscription.subscription_id, REGION)
    deployment = program(mode)
    ids: dict[str, str] = {}
    provider.create("ResourceGroup", resourceGroupName=loaded().name)
    identity = provider.create(
        "UserAssignedIdentity", resourceGroupName=loaded().name, resourceName=f"{loaded().name}-cluster"
    )
    ids["aks-identity-identity-id"] = identity.id
    for kind in ORDER:
        for each in deployment.of(kind):
            if kind.endswith(":RoleAssignment") and not each.name.startswith("aks-addon-rights"):
                continue
            inputs = replaced(each.inputs, ids)
            if kind.endswith(":ManagedCluster"):
                # The network has its own tests.
                for pool in inputs["agentPoolProfiles"]:
                    pool.pop("vnetSubnetID")
            made = provider.create(kind.rsplit(":", 1)[1], **inputs)
            ids[f"{each.name}-id"] = made.id
            if kind.endswith(":ManagedCluster"):
                ids["kubelet-object"] = made.outputs["identityProfile"]["kubeletidentity"]["objectId"]
                for name, profile in made.outputs["addonProfiles"].items():
                    ids[f"object-of-{name}"] = profile["identity"]["objectId"]
    assert sum(each.name.startswith("aks-addon-rights") for each in deployment.of(ORDER[-1])) == 2
    if mode == "self-hosted":
        return  # its controller is told by the chart
    told = provider.clusters.running[loaded().name].controller.environment["NODE_IDENTITIES"].split(",")
    assert {one.rsplit("/", 1)[1].partition("-")[0] for one in told} == {
        "karpstack",
        "azurekeyvaultsecretsprovider",
        "omsagent",
    }
