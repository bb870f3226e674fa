"""Each azure-native type: created, read without drift, changed, replaced where it must be, deleted twice."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.difference import changes
from rehearsal.attachment.resource import AUTOMATIC, UNKNOWN, Properties, RefusedError
from rehearsal.azure.provider import TYPES, versioned
from tests.unit.rehearsal.azure_world import GROUP, REGION, SCOPE
from tests.unit.rehearsal.provider_azure_world import Provider


@dataclass(frozen=True)
class Case:
    """One type's inputs, and what a change of one of them does."""

    inputs: Callable[[Provider], Properties]
    #: An input that changes in place, with its new value.
    change: tuple[str, Any]
    id: str


def _subnet(provider: Provider) -> Properties:
    provider.network()
    return {
        "resourceGroupName": "demo",
        "virtualNetworkName": "net",
        "subnetName": "nodes",
        "addressPrefix": "10.1.0.0/24",
    }


def _gateway(provider: Provider) -> Properties:
    address = provider.create(
        "PublicIPAddress", resourceGroupName="demo", publicIpAddressName="out", publicIPAllocationMethod="Static"
    )
    return {"resourceGroupName": "demo", "natGatewayName": "out", "publicIpAddresses": [{"id": address.id}]}


def _credential(provider: Provider) -> Properties:
    provider.identity()
    return {
        "resourceGroupName": "demo",
        "resourceName": "controller",
        "federatedIdentityCredentialResourceName": "karpenter",
        "issuer": "https://issuer.example/",
        "subject": "system:serviceaccount:kube-system:karpenter-sa",
        "audiences": ["api://AzureADTokenExchange"],
    }


def _diagnostics(provider: Provider) -> Properties:
    return {
        "resourceUri": provider.cluster().id.lstrip("/"),
        "name": "karpstack",
        "workspaceId": f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs",
        "logAnalyticsDestinationType": "Dedicated",
        "logs": [{"category": "kube-audit-admin", "enabled": True}],
    }


_ROLE = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/4d97b98b-1d4f-4787-a291-c67834d212e7"
_NAME = "00000000-1111-2222-3333-444444444444"


def _assignment(provider: Provider) -> Properties:
    return {
        "scope": GROUP,
        "roleAssignmentName": _NAME,
        "roleDefinitionId": _ROLE,
        "principalId": provider.identity().outputs["principalId"],
        "principalType": "ServicePrincipal",
    }


def _pool(provider: Provider) -> Properties:
    provider.cluster()
    return {
        "resourceGroupName": "demo",
        "resourceName": "rehearsed",
        "agentPoolName": "more",
        "count": 1,
        "vmSize": "Standard_D2s_v5",
        "mode": "User",
        "type": "VirtualMachineScaleSets",
        "tags": {"a": "b"},
    }


METRICS = f"{GROUP}/providers/Microsoft.Monitor/accounts/metrics"
ENDPOINT = f"{GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/prometheus"
RULE_ID = f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/prometheus"


def _rule(provider: Provider) -> Properties:
    provider.create("AzureMonitorWorkspace", resourceGroupName="demo", azureMonitorWorkspaceName="metrics")
    provider.create("DataCollectionEndpoint", resourceGroupName="demo", dataCollectionEndpointName="prometheus")
    return {
        "resourceGroupName": "demo",
        "dataCollectionRuleName": "prometheus",
        "kind": "Linux",
        "dataCollectionEndpointId": ENDPOINT,
        "dataSources": {
            "prometheusForwarder": [{"name": "PrometheusDataSource", "streams": ["Microsoft-PrometheusMetrics"]}]
        },
        "destinations": {"monitoringAccounts": [{"name": "MonitoringAccount1", "accountResourceId": METRICS}]},
        "dataFlows": [{"streams": ["Microsoft-PrometheusMetrics"], "destinations": ["MonitoringAccount1"]}],
    }


def _association(provider: Provider) -> Properties:
    provider.create("DataCollectionRule", **_rule(provider))
    return {
        "resourceUri": provider.cluster().id.lstrip("/"),
        "associationName": "ContainerInsightsMetricsExtension",
        "dataCollectionRuleId": RULE_ID,
    }


NETWORK = f"{GROUP}/providers/Microsoft.Network"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/controller"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/rehearsed"
RULE = {
    "name": "ssh",
    "priority": 100,
    "direction": "Inbound",
    "access": "Deny",
    "protocol": "Tcp",
    "sourcePortRange": "*",
    "destinationPortRange": "22",
    "sourceAddressPrefix": "*",
    "destinationAddressPrefix": "*",
}
ROUTE = {
    "name": "default",
    "addressPrefix": "0.0.0.0/0",
    "nextHopType": "VirtualAppliance",
    "nextHopIpAddress": "10.1.0.4",
}
CASES: dict[str, Case] = {
    "Workspace": Case(
        lambda _: {"resourceGroupName": "demo", "workspaceName": "logs", "sku": {"name": "PerGB2018"}},
        ("retentionInDays", 90),
        f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs",
    ),
    "AzureMonitorWorkspace": Case(
        lambda _: {"resourceGroupName": "demo", "azureMonitorWorkspaceName": "metrics"},
        ("tags", {"owner": "others"}),
        METRICS,
    ),
    "DataCollectionEndpoint": Case(
        lambda _: {"resourceGroupName": "demo", "dataCollectionEndpointName": "prometheus", "kind": "Linux"},
        ("description", "of metrics"),
        ENDPOINT,
    ),
    "DataCollectionRule": Case(_rule, ("description", "of metrics"), RULE_ID),
    "DataCollectionRuleAssociation": Case(
        _association,
        ("description", "of metrics"),
        f"{CLUSTER}/providers/Microsoft.Insights/dataCollectionRuleAssociations/ContainerInsightsMetricsExtension",
    ),
    "ResourceGroup": Case(
        lambda _: {"resourceGroupName": "other", "tags": {"owner": "platform"}},
        ("tags", {"owner": "others"}),
        f"{SCOPE}/resourceGroups/other",
    ),
    "VirtualNetwork": Case(
        lambda _: {
            "resourceGroupName": "demo",
            "virtualNetworkName": "net",
            "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
            "subnets": [{"name": "nodes", "addressPrefix": "10.1.0.0/24"}],
        },
        ("addressSpace", {"addressPrefixes": ["10.1.0.0/16", "10.2.0.0/16"]}),
        f"{NETWORK}/virtualNetworks/net",
    ),
    "Subnet": Case(_subnet, ("addressPrefix", "10.1.0.0/23"), f"{NETWORK}/virtualNetworks/net/subnets/nodes"),
    "NetworkSecurityGroup": Case(
        lambda _: {"resourceGroupName": "demo", "networkSecurityGroupName": "group", "securityRules": [RULE]},
        ("securityRules", [{**RULE, "priority": 200}]),
        f"{NETWORK}/networkSecurityGroups/group",
    ),
    "PublicIPAddress": Case(
        lambda _: {"resourceGroupName": "demo", "publicIpAddressName": "out", "publicIPAllocationMethod": "Static"},
        ("tags", {"owner": "platform"}),
        f"{NETWORK}/publicIPAddresses/out",
    ),
    "NatGateway": Case(
        _gateway,
        ("idleTimeoutInMinutes", 10),
        f"{NETWORK}/natGateways/out",
    ),
    "RouteTable": Case(
        lambda _: {"resourceGroupName": "demo", "routeTableName": "routes", "routes": [ROUTE]},
        ("routes", [{**ROUTE, "nextHopIpAddress": "10.1.0.5"}]),
        f"{NETWORK}/routeTables/routes",
    ),
    "PrivateZone": Case(
        lambda _: {
            "resourceGroupName": "demo",
            "privateZoneName": "privatelink.westus2.azmk8s.io",
            "location": "global",
        },
        ("tags", {"owner": "platform"}),
        f"{NETWORK}/privateDnsZones/privatelink.westus2.azmk8s.io",
    ),
    "UserAssignedIdentity": Case(
        lambda _: {"resourceGroupName": "demo", "resourceName": "controller"}, ("tags", {"owner": "platform"}), IDENTITY
    ),
    "FederatedIdentityCredential": Case(
        _credential,
        ("subject", "system:serviceaccount:kube-system:other"),
        f"{IDENTITY}/federatedIdentityCredentials/karpenter",
    ),
    "RoleAssignment": Case(
        _assignment,
        ("description", "for Karpenter"),
        f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{_NAME}",
    ),
    "ManagedCluster": Case(lambda provider: provider.cluster_inputs(), ("tags", {"owner": "platform"}), CLUSTER),
    "DiagnosticSetting": Case(
        _diagnostics,
        ("logs", [{"category": "guard", "enabled": True}]),
        f"{CLUSTER}/providers/Microsoft.Insights/diagnosticSettings/karpstack",
    ),
    "AgentPool": Case(_pool, ("count", 2), f"{CLUSTER}/agentPools/more"),
}


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


def test_every_type_has_a_case() -> None:
    assert {kind.token.rsplit(":", 1)[1] for kind in TYPES} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_created_read_and_deleted_twice(provider: Provider, name: str) -> None:
    created = provider.create(name, **CASES[name].inputs(provider))
    assert created.id == CASES[name].id
    assert created.outputs["name"] == created.id.rsplit("/", 1)[1]
    assert created.outputs["azureApiVersion"] == provider.type(name).default_version
    assert provider.read(name, created) == created.outputs
    provider.delete(name, created)
    provider.delete(name, created)
    assert provider.read(name, created) is None


@pytest.mark.parametrize("name", CASES)
def test_a_refresh_finds_no_drift(provider: Provider, name: str) -> None:
    inputs = provider.check(name, **CASES[name].inputs(provider))
    created = provider.type(name).create(inputs, timeout=5.0)
    outputs = provider.read(name, created)
    assert outputs
    assert not changes(inputs, provider.type(name).inputs_of(outputs, inputs), provider.type(name).replace_on)


@pytest.mark.parametrize("name", CASES)
def test_a_change_in_place(provider: Provider, name: str) -> None:
    inputs = CASES[name].inputs(provider)
    created = provider.create(name, **inputs)
    key, value = CASES[name].change
    after = provider.update(name, created, **{**inputs, key: value})
    checked = provider.check(name, **{**inputs, key: value})
    found = provider.type(name).inputs_of(after, checked)
    assert found[key] == value
    replaces = provider.type(name).replace_on
    assert not any(change.replaces for change in changes(inputs, {**inputs, key: value}, replaces))


@pytest.mark.parametrize("name", CASES)
def test_what_exists_is_not_taken_over(provider: Provider, name: str) -> None:
    inputs = CASES[name].inputs(provider)
    provider.create(name, **inputs)
    with pytest.raises(RefusedError, match="cannot create already existing resource"):
        provider.create(name, **inputs)


@pytest.mark.parametrize("name", CASES)
def test_preview_knows_the_name_and_nothing_that_arm_computes(provider: Provider, name: str) -> None:
    resource = provider.type(name)
    inputs = provider.check(name, **CASES[name].inputs(provider))
    known = resource.preview(inputs, id="", state={})
    assert known["name"] == CASES[name].id.rsplit("/", 1)[1]
    assert not known.keys() & ((resource.outputs - resource.accepts) | {"id"})


def test_the_preview_of_an_update_knows_no_more_than_that_of_a_new_resource(provider: Provider) -> None:
    """As in azure-native: roles of the kubelet's identity preview as replaced whenever the cluster is updated."""
    created = provider.cluster()
    state = {key: value for key, value in created.outputs.items() if key not in provider.cluster_inputs()}
    inputs = provider.check("ManagedCluster", **provider.cluster_inputs(tags={"a": "b"}))
    previewed = provider.type("ManagedCluster").preview(inputs, id=created.id, state=state)
    assert {"fqdn", "identityProfile", "currentKubernetesVersion"} <= state.keys() - previewed.keys()
    assert (previewed["name"], previewed["location"], previewed["tags"]) == ("rehearsed", REGION, {"a": "b"})


@pytest.mark.parametrize(
    ("name", "path", "value", "replaces"),
    [
        ("ManagedCluster", "resourceName", "other", True),
        ("ManagedCluster", "resourceGroupName", "other", True),
        ("ManagedCluster", "location", "eastus", True),
        ("ManagedCluster", "dnsPrefix", "other", True),
        ("ManagedCluster", "nodeResourceGroup", "other", True),
        ("ManagedCluster", "diskEncryptionSetID", "/other", True),
        ("ManagedCluster", "networkProfile.podCidr", "10.1.0.0/16", True),
        ("ManagedCluster", "networkProfile.serviceCidr", "10.1.0.0/16", True),
        ("ManagedCluster", "networkProfile.dnsServiceIP", "10.0.0.11", True),
        ("ManagedCluster", "networkProfile.outboundType", "userDefinedRouting", True),
        ("ManagedCluster", "networkProfile.networkPlugin", "none", True),
        ("ManagedCluster", "networkProfile.networkPluginMode", "", True),
        ("ManagedCluster", "networkProfile.networkDataplane", "azure", True),
        ("ManagedCluster", "networkProfile.networkPolicy", "none", True),
        ("ManagedCluster", "networkProfile.advancedNetworking", {"enabled": True}, False),
        ("ManagedCluster", "networkProfile.loadBalancerProfile", {"managedOutboundIPs": {"count": 2}}, False),
        ("ManagedCluster", "apiServerAccessProfile", {"enablePrivateCluster": True}, False),
        ("ManagedCluster", "identity", {"type": "None"}, False),
        ("ManagedCluster", "agentPoolProfiles", [], False),
        ("AgentPool", "vmSize", "Standard_D4s_v5", True),
        ("AgentPool", "availabilityZones", ["1"], False),
        ("RoleAssignment", "principalId", "other", True),
        ("RoleAssignment", "roleDefinitionId", "other", False),
        ("PublicIPAddress", "sku", {"name": "Basic"}, True),
        ("Subnet", "addressPrefix", "10.1.0.0/23", False),
        ("VirtualNetwork", "addressSpace", {"addressPrefixes": ["10.2.0.0/16"]}, False),
    ],
)
def test_what_replaces_is_azure_natives(provider: Provider, name: str, path: str, value: Any, replaces: bool) -> None:
    """gen/replacement.go of pulumi-azure-native, and its test program aks-networkprofile-forcenew."""
    resource = provider.type(name)
    before = CASES[name].inputs(provider)
    key, _, below = path.partition(".")
    after = {**before, key: {**before[key], below: value} if below else value}
    assert any(change.replaces for change in changes(before, after, resource.replace_on)) == replaces
    assert resource.deletes_first(before, after), "azure-native deletes first, even under another name"


@pytest.mark.parametrize("name", CASES)
def test_the_path_and_the_location_replace(provider: Provider, name: str) -> None:
    resource = provider.type(name)
    assert {*resource.parameters} <= resource.replace_on
    assert ("location" in resource.replace_on) == ("location" in resource.accepts)


@pytest.mark.parametrize("name", CASES)
def test_an_import_takes_from_the_id_what_stands_in_it(provider: Provider, name: str) -> None:
    type_, asked = provider.type(name), CASES[name].inputs(provider)
    created = provider.create(name, **asked)
    id, known = type_.imported(created.id)
    outputs = type_.read(id, known)
    assert outputs is not None
    inputs = type_.refreshed(outputs, {}, known)
    given = provider.check(name, **asked)
    for parameter in type_.parameters:
        assert str(inputs[parameter]).strip("/").lower() == str(given[parameter]).strip("/").lower()
    with pytest.raises(RefusedError, match="is not of the form"):
        type_.imported("karpstack-eks")


def test_nested_resources_are_flat_in_the_program(provider: Provider) -> None:
    network = provider.create("VirtualNetwork", **CASES["VirtualNetwork"].inputs(provider)).outputs
    assert network["subnets"][0]["addressPrefix"] == "10.1.0.0/24"
    assert (
        provider.azure.arm.get(f"{NETWORK}/virtualNetworks/net/subnets/nodes", "2024-05-01")["properties"][
            "addressPrefix"
        ]
        == "10.1.0.0/24"
    )


def test_a_network_keeps_the_subnets_that_it_does_not_name(provider: Provider) -> None:
    subnet = provider.create("Subnet", **_subnet(provider))
    network = provider.invokes["azure-native:network:getVirtualNetwork"](
        {"resourceGroupName": "demo", "virtualNetworkName": "net", "expand": None}
    )
    assert [item["id"] for item in network["subnets"]] == [subnet.id]
    assert uuid.UUID(network["resourceGuid"])
    provider.type("VirtualNetwork").update(
        network["id"],
        network,
        provider.check(
            "VirtualNetwork",
            resourceGroupName="demo",
            virtualNetworkName="net",
            addressSpace={"addressPrefixes": ["10.1.0.0/16"]},
            tags={"a": "b"},
        ),
        timeout=5.0,
    )
    assert provider.read("Subnet", subnet)


def test_identities_are_a_list_in_the_program_and_a_map_in_arm(provider: Provider) -> None:
    identity = provider.identity("cluster")
    given = {"type": "UserAssigned", "userAssignedIdentities": [identity.id.replace("demo", "Demo")]}
    inputs = provider.check("ManagedCluster", **provider.cluster_inputs(identity=given))
    created = provider.type("ManagedCluster").create(inputs, timeout=5.0)
    assert [*created.outputs["identity"]["userAssignedIdentities"].values()] == [
        {name: identity.outputs[name] for name in ("principalId", "clientId")}
    ]
    assert provider.type("ManagedCluster").inputs_of(created.outputs, inputs)["identity"] == given
    assert "identity" not in provider.type("ManagedCluster").preview(inputs, id="", state={})


def test_identities_that_arm_spells_otherwise_are_no_drift(provider: Provider) -> None:
    given = {"identity": {"type": "UserAssigned", "userAssignedIdentities": ["/Sub/B", "/sub/a"]}}
    seen = {"identity": {"type": "UserAssigned", "userAssignedIdentities": {"/sub/A": {}, "/sub/b": {}, "/sub/c": {}}}}
    found = provider.type("ManagedCluster").inputs_of(seen, given)["identity"]["userAssignedIdentities"]
    assert found == ["/Sub/B", "/sub/a", "/sub/c"]


def test_a_pools_own_type_and_tags_are_properties(provider: Provider) -> None:
    pool = provider.create("AgentPool", **_pool(provider))
    stored = provider.azure.arm.get(pool.id, "2025-09-01")
    assert (stored["type"], stored["properties"]["type"]) == (
        "Microsoft.ContainerService/managedClusters/agentPools",
        "VirtualMachineScaleSets",
    )
    assert stored["properties"]["tags"] == {"a": "b"}
    assert pool.outputs["type"] == "Microsoft.ContainerService/managedClusters/agentPools"
    assert provider.type("AgentPool").inputs_of(pool.outputs, {"type": "VirtualMachineScaleSets"}) == {
        "type": "VirtualMachineScaleSets"
    }


def test_the_form_of_automatic_names_is_the_providers(provider: Provider) -> None:
    forms = {name: (provider.type(name).name_digits, provider.type(name).name_separator) for name in CASES}
    children = {"Subnet", "FederatedIdentityCredential", "AgentPool"}
    assert forms == {name: (0 if name in children else 8, "") for name in CASES}


def test_location_comes_from_the_provider_and_is_written_as_arm_writes_it(provider: Provider, tmp_path: Path) -> None:
    assert provider.check("ResourceGroup", resourceGroupName="x")["location"] == REGION
    assert provider.check("ResourceGroup", resourceGroupName="x", location="West US 2")["location"] == "westus2"
    assert provider.check("ResourceGroup", resourceGroupName="x", location=UNKNOWN)["location"] is UNKNOWN
    reason = Provider(tmp_path, "").failures("ResourceGroup", resourceGroupName="x")["location"]
    assert "azure-native:location" in reason


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("ResourceGroup", "thing12345678"),
        ("Subnet", "thing12345678"),
        ("RoleAssignment", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ],
)
def test_automatic_names(provider: Provider, name: str, pattern: str) -> None:
    resource = provider.type(name)
    named = resource.autoname({}, {}, "thing12345678")
    assert re.fullmatch(pattern, named[resource.name_property])
    assert named[AUTOMATIC] == [resource.name_property]
    assert resource.autoname({}, named, "another")[resource.name_property] == named[resource.name_property]
    assert resource.autoname({resource.name_property: "mine"}, {}, "x") == {resource.name_property: "mine"}


def test_a_child_with_an_automatic_name_is_deleted_before_it_is_replaced(provider: Provider) -> None:
    old = {"subnetName": "nodes", AUTOMATIC: ["subnetName"]}
    assert provider.type("Subnet").deletes_first(old, old)
    group = {"resourceGroupName": "x1", AUTOMATIC: ["resourceGroupName"]}
    assert not provider.type("ResourceGroup").deletes_first(group, group)


def test_a_version_in_the_token_is_the_api_version(provider: Provider) -> None:
    resource = versioned(provider.session, "azure-native:network/v20241001:VirtualNetwork")
    assert resource
    assert resource.token == "azure-native:network/v20241001:VirtualNetwork"
    inputs, _ = resource.check(
        {
            "resourceGroupName": "demo",
            "virtualNetworkName": "net",
            "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
        },
        name="net",
    )
    assert resource.create(inputs, timeout=5.0).outputs["azureApiVersion"] == "2024-10-01"
    preview = versioned(provider.session, "azure-native:containerservice/v20250602preview:ManagedCluster")
    assert getattr(preview, "version", "") == "2025-06-02-preview"
    assert versioned(provider.session, "azure-native:network/v20241001:Nothing") is None
    assert versioned(provider.session, "azure-native:network:VirtualNetwork") is None
    unheard = versioned(provider.session, "azure-native:network/v19990101:VirtualNetwork")
    assert unheard
    with pytest.raises(RefusedError, match="NoRegisteredProviderFound"):
        unheard.read(f"{NETWORK}/virtualNetworks/net", {})


def test_what_arm_adds_to_what_it_was_given_is_no_drift_until_it_changes(provider: Provider) -> None:
    kind = provider.type("ManagedCluster")
    proxy = {"httpProxy": "http://proxy:3128/", "noProxy": ["corp.example"]}
    given = {"httpProxyConfig": proxy, "tags": {"a": "b"}}
    answered = {"httpProxyConfig": {**proxy, "noProxy": ["corp.example", "konnectivity"]}, "tags": {"a": "b"}}
    assert kind.refreshed(answered, given, answered) == given
    other = {**answered, "httpProxyConfig": {**proxy, "noProxy": ["konnectivity"]}}
    assert kind.refreshed(other, given, answered)["httpProxyConfig"] == {**proxy, "noProxy": ["konnectivity"]}
    # An import knows nothing of before.
    assert kind.refreshed(answered, {}, {}) == answered
