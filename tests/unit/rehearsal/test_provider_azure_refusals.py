"""What the azure-native stand-in refuses: in ARM's words, by name, before or instead of creating anything."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.resource import RefusedError
from rehearsal.azure.provider import TYPES, configuration
from tests.unit.rehearsal.azure_world import SCOPE
from tests.unit.rehearsal.provider_azure_world import LIVES, Provider


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_what_is_required_is_asked_for(provider: Provider, kind: Any) -> None:
    name = kind.token.rsplit(":", 1)[1]
    missing = provider.failures(name)
    assert {*kind.required, *kind.parameters} - {kind.name_property} == missing.keys() - {kind.name_property}
    for reason in missing.values():
        assert "missing required property" in reason


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        ("Subnet", {"virtualNetworkName": "none"}, 'Status=404 Code="ParentResourceNotFound"'),
        ("VirtualNetwork", {"resourceGroupName": "none"}, 'Status=404 Code="ResourceGroupNotFound"'),
        ("VirtualNetwork", {"addressSpace": {"addressPrefixes": ["10.1.0.1/16"]}}, 'Code="InvalidCIDRNotation"'),
        ("VirtualNetwork", {"location": "eastus"}, 'Code="LocationNotAvailableForResourceType"'),
        ("RoleAssignment", {"roleAssignmentName": "not-a-guid"}, 'Code="InvalidRoleAssignmentId"'),
    ],
)
def test_arms_refusals_are_shown_and_nothing_is_left(
    provider: Provider, name: str, changes: dict[str, Any], text: str
) -> None:
    inputs = {**LIVES[name].inputs(provider), **changes}
    with pytest.raises(RefusedError, match=text):
        provider.create(name, **inputs)
    id = provider.type(name).resource_id(inputs)
    assert provider.type(name).read(id, {}) is None


def test_a_network_in_use_is_not_deleted(provider: Provider) -> None:
    network = provider.network()
    subnet = provider.create(
        "Subnet", resourceGroupName="demo", virtualNetworkName="net", subnetName="nodes", addressPrefix="10.1.0.0/24"
    )
    provider.world.interface(subnet.id)
    for name, created in (("Subnet", subnet), ("VirtualNetwork", network)):
        with pytest.raises(RefusedError, match="in use by"):
            provider.delete(name, created)


def test_unknown_arguments_of_functions_are_refused_by_name(provider: Provider) -> None:
    for function, arguments, text in (
        ("authorization:getClientConfig", {"tenant": "x"}, "does not know the argument tenant"),
        ("network:getVirtualNetwork", {"resourceGroupName": "demo"}, "virtualNetworkName is missing"),
        ("network:getVirtualNetwork", {"resourceGroupName": "demo", "virtualNetworkName": "none"}, "ResourceNotFound"),
        (
            "containerservice:listManagedClusterUserCredentials",
            {"resourceGroupName": "demo", "resourceName": "none"},
            "ResourceNotFound",
        ),
    ):
        with pytest.raises(RefusedError, match=text):
            provider.invokes[f"azure-native:{function}"](arguments)


def test_who_deploys(provider: Provider) -> None:
    found = provider.invokes["azure-native:authorization:getClientConfig"]({})
    assert f"/subscriptions/{found['subscriptionId']}" == SCOPE
    assert found["tenantId"] == provider.azure.tenant_id


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"subscriptionId": None}, "no subscription.*pulumi config set azure-native:subscriptionId"),
        ({"subscriptionId": ""}, "no subscription"),
        ({"subscriptionId": "00000000-0000-0000-0000-000000000000"}, "azure-native:subscriptionId is '0000"),
        ({"location": "eastus"}, "azure-native:location is 'eastus', but"),
        ({"tenantId": "x"}, "azure-native:tenantId is 'x', but"),
    ],
)
def test_configurations_that_would_lead_elsewhere(
    provider: Provider, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    made = configuration(provider.azure, provider.session.clusters, tmp_path)
    good = {"subscriptionId": provider.azure.subscription_id, "location": "West US 2"}
    assert made.configure(good, threading.Event()).resource("azure-native:network:VirtualNetwork")
    with pytest.raises(RefusedError, match=text):
        made.configure({**good, **changes}, threading.Event())
    assert made.replaces(good, {**good, "subscriptionId": "other"}) == ["subscriptionId"]


def test_a_type_that_is_not_there_is_refused_by_name(provider: Provider, tmp_path: Path) -> None:
    made = configuration(provider.azure, provider.session.clusters, tmp_path)
    instance = made.configure({"subscriptionId": provider.azure.subscription_id}, threading.Event())
    for token in ("azure-native:storage:StorageAccount", "azure-native:network/v20241001:VirtualNetwork"):
        with pytest.raises(RefusedError, match=f"no stand-in for {token}"):
            instance.resource(token)
