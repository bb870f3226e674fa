"""Each azure-native type through its life: created, read, changed, imported, deleted twice; and what replaces it."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from rehearsal.attachment.difference import changes
from rehearsal.attachment.resource import AUTOMATIC, UNKNOWN, RefusedError
from rehearsal.azure.provider import TYPES
from tests.unit.rehearsal.azure_world import GROUP, REGION
from tests.unit.rehearsal.provider_azure_world import LIVES, Provider

NETWORK = f"{GROUP}/providers/Microsoft.Network"


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


def test_every_type_has_a_case() -> None:
    assert {kind.token.rsplit(":", 1)[1] for kind in TYPES} == LIVES.keys()


@pytest.mark.parametrize("name", LIVES)
def test_life_of_a_resource(provider: Provider, name: str) -> None:
    life, resource = LIVES[name], provider.type(name)
    inputs = provider.check(name, **life.inputs(provider))

    known = resource.preview(inputs, id="", state={})
    assert known["name"] == life.id.rsplit("/", 1)[1]
    assert not known.keys() & ((resource.outputs - resource.accepts) | {"id"}), "ARM computes these"

    created = resource.create(inputs, timeout=5.0)
    assert created.id == life.id
    assert created.outputs["name"] == known["name"]
    assert created.outputs["azureApiVersion"] == resource.default_version
    assert provider.read(name, created) == created.outputs
    drift = changes(inputs, resource.inputs_of(created.outputs, inputs), resource.replace_on)
    assert not drift, "a refresh finds drift"
    with pytest.raises(RefusedError, match="cannot create already existing resource"):
        resource.create(inputs, timeout=5.0)

    id, found = resource.imported(created.id)
    outputs = resource.read(id, found)
    assert outputs is not None
    taken = resource.refreshed(outputs, {}, found)
    for parameter in resource.parameters:
        assert str(taken[parameter]).strip("/").lower() == str(inputs[parameter]).strip("/").lower()
    with pytest.raises(RefusedError, match="is not of the form"):
        resource.imported("karpstack-eks")

    new = {**inputs, **life.changed}
    assert not any(change.replaces for change in changes(inputs, new, resource.replace_on))
    after = resource.update(created.id, created.outputs, new, timeout=5.0)
    assert resource.inputs_of(after, new) == new, "the change did not arrive"

    provider.delete(name, created)
    provider.delete(name, created)
    assert provider.read(name, created) is None


_CHANGES = [
    pytest.param(name, path, value, replaces, id=f"{name}-{path}")
    for name, life in LIVES.items()
    for replaces, paths in ((True, life.replaces), (False, life.updates))
    for path, value in paths.items()
]


@pytest.mark.parametrize(("name", "path", "value", "replaces"), _CHANGES)
def test_what_replaces_is_azure_natives(provider: Provider, name: str, path: str, value: Any, replaces: bool) -> None:
    resource = provider.type(name)
    before = LIVES[name].inputs(provider)
    key, _, below = path.partition(".")
    after = {**before, key: {**before[key], below: value} if below else value}
    assert any(change.replaces for change in changes(before, after, resource.replace_on)) == replaces
    assert resource.deletes_first(before, after), "azure-native deletes first, even under another name"


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_the_path_and_the_location_replace(kind: Any) -> None:
    assert {*kind.parameters} <= kind.replace_on
    assert ("location" in kind.replace_on) == ("location" in kind.accepts)


def test_the_preview_of_an_update_knows_no_more_than_that_of_a_new_resource(provider: Provider) -> None:
    """As in azure-native: roles of the kubelet's identity preview as replaced whenever the cluster is updated."""
    created = provider.cluster()
    state = {key: value for key, value in created.outputs.items() if key not in provider.cluster_inputs()}
    inputs = provider.check("ManagedCluster", **provider.cluster_inputs(tags={"a": "b"}))
    previewed = provider.type("ManagedCluster").preview(inputs, id=created.id, state=state)
    assert {"fqdn", "identityProfile", "currentKubernetesVersion"} <= state.keys() - previewed.keys()
    assert (previewed["name"], previewed["location"], previewed["tags"]) == ("rehearsed", REGION, {"a": "b"})


def test_nested_resources_are_flat_in_the_program(provider: Provider) -> None:
    network = provider.create("VirtualNetwork", **LIVES["VirtualNetwork"].inputs(provider)).outputs
    assert network["subnets"][0]["addressPrefix"] == "10.1.0.0/24"
    assert (
        provider.azure.arm.get(f"{NETWORK}/virtualNetworks/net/subnets/nodes", "2024-05-01")["properties"][
            "addressPrefix"
        ]
        == "10.1.0.0/24"
    )


def test_a_network_keeps_the_subnets_that_it_does_not_name(provider: Provider) -> None:
    subnet = provider.create("Subnet", **LIVES["Subnet"].inputs(provider))
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
    pool = provider.create("AgentPool", **LIVES["AgentPool"].inputs(provider))
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
    forms = {name: (provider.type(name).name_digits, provider.type(name).name_separator) for name in LIVES}
    children = {"Subnet", "FederatedIdentityCredential", "AgentPool"}
    assert forms == {name: (0 if name in children else 8, "") for name in LIVES}


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
