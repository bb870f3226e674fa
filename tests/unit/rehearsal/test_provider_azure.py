"""The azure-native stand-in: each type through its life, what replaces it, and what a cluster brings about."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.attachment.difference import changes
from karpstack.rehearsal.attachment.resource import AUTOMATIC, UNKNOWN, Created, IncompleteError, RefusedError
from karpstack.rehearsal.azure.clusters.resources import system_workloads
from karpstack.rehearsal.azure.provider import TYPES, configuration
from karpstack.rehearsal.cluster.cilium import unreachable
from tests.steering import IDS_OF_NOTHING
from tests.unit.rehearsal.azure_world import GROUP, REGION
from tests.unit.rehearsal.provider_azure_world import LIVES, SYSTEM, Provider
from tests.unit.rehearsal.steps import Row, Steps, cases

NETWORK = f"{GROUP}/providers/Microsoft.Network"


class Place(Provider):
    """A provider on the wire, and what the rows call beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.made: Created | None = None
        self.made_pool: Created | None = None

    def _kept(self, token: str, **inputs: Any) -> Created:
        """One that is made, also if not wholly; the last of its type goes with `remove`."""
        try:
            return super().create(token, **inputs)
        except IncompleteError as error:
            self.made = error.created
            raise

    def root(self, name: str) -> Any:
        """What the first part of a call names."""
        return getattr(self, "make" if name == "cluster" else "refuse" if name == "create" else name)

    def make(self, **inputs: Any) -> Any:
        self.made = self._kept("ManagedCluster", **self.cluster_inputs(**inputs))
        return {"outputs": self.made.outputs}

    def change(self, **inputs: Any) -> None:
        assert self.made
        self.update("ManagedCluster", self.made, **self.cluster_inputs(**inputs))

    def count(self, nodes: int) -> None:
        self.change(agentPoolProfiles=[{**SYSTEM, "count": nodes}])

    def remove(self) -> None:
        assert self.made
        self.delete("ManagedCluster", self.made)
        assert self.read("ManagedCluster", self.made) is None

    def group(self, name: str) -> None:
        super().create("ResourceGroup", resourceGroupName=name)

    def remove_group(self, name: str) -> None:
        group = self.type("ResourceGroup")
        group.delete(group.resource_id({"resourceGroupName": name}), {}, timeout=5.0)

    def pool_inputs(self, **inputs: Any) -> dict[str, Any]:
        of_cluster = {"resourceGroupName": "demo", "resourceName": "rehearsed", "agentPoolName": "more"}
        return {**of_cluster, "vmSize": "Standard_D2s_v5", **inputs}

    def pool(self, **inputs: Any) -> None:
        self.made_pool = super().create("AgentPool", **self.pool_inputs(**inputs))

    def change_pool(self, **inputs: Any) -> None:
        assert self.made_pool
        self.update("AgentPool", self.made_pool, **self.pool_inputs(**inputs))

    def remove_pool(self) -> None:
        assert self.made_pool
        self.delete("AgentPool", self.made_pool)

    def failures(self, *token: str, **inputs: Any) -> dict[str, str]:
        return super().failures(*token or ("ManagedCluster",), **(inputs if token else self.cluster_inputs(**inputs)))

    def refuse(self, token: str, changed: dict[str, Any]) -> None:
        """Make one by its row with changes, and see that nothing is left of it."""
        inputs = {**LIVES[token].inputs(self), **changed}
        try:
            super().create(token, **inputs)
        finally:
            assert self.type(token).read(self.type(token).resource_id(inputs), {}) is None

    def invoke(self, function: str, arguments: dict[str, Any]) -> Any:
        return self.invokes[f"azure-native:{function}"](arguments)

    def configure(self, type: str = "azure-native:network:VirtualNetwork", **changed: Any) -> bool:
        made = configuration(self.azure, self.session.clusters, self.folder)
        good = {"subscriptionId": self.azure.subscription_id, "location": "West US 2"}
        assert made.replaces(good, {**good, "subscriptionId": "other"}) == ["subscriptionId"]
        assert made.replaces(good, {"location": "West US 2"}) == []
        return made.configure({**good, **changed}, threading.Event()).resource(type).token == type

    # What runs.

    def never_ready(self) -> None:
        self.clusters.never_ready = True

    def broken_controller(self, problem: str) -> None:
        self.running.controller.problem = problem

    def runs(self) -> bool:
        return bool(self.clusters.running)

    def started(self) -> Any:
        names = ("name", "version", "service_cidr", "issuer")
        return [[*(one[name] for name in names), one["cloud"].bound is self.running] for one in self.clusters.started]

    def nodes(self, pool: str = "") -> Any:
        known = [{"name": name, **node} for name, node in self.running.nodes.items()]
        return [one for one in known if pool in ("", one["labels"]["kubernetes.azure.com/agentpool"])]

    def manifest(self, kind: str, name: str) -> Any:
        return self.running.manifests[kind, name]

    def names(self, kind: str) -> Any:
        return sorted(name for found, name in self.running.manifests if found == kind)

    def hosted(self) -> dict[str, Any]:
        """The environment of node auto provisioning's controller, and the type of its bootstrap token's secret."""
        assert self.running.controller.hosted
        environment = self.running.controller.environment
        name, _, secret = environment["KUBELET_BOOTSTRAP_TOKEN"].partition(".")
        kept = self.running.manifests["Secret", f"bootstrap-token-{name}"]
        assert kept["stringData"]["token-secret"] == secret
        return {**environment, "token": kept["type"]}


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.azure.start(tmp_path / "wire")
    yield made
    made.azure.stop()


@pytest.mark.parametrize("rows", cases("provider_azure.yaml"))
def test_each_call_does_what_azure_natives_does(place: Place, rows: list[Row]) -> None:
    Steps(place.root, {"unknown": UNKNOWN}).run(rows)


def test_ciliums_pods_reach_the_api_server_where_it_is() -> None:
    endpoint = "https://127.0.0.1:4711"
    workloads = {(item["kind"], item["metadata"]["name"]): item for item in system_workloads(endpoint, "10.0.0.10")}
    for named in (("DaemonSet", "cilium"), ("Deployment", "cilium-operator")):
        template = workloads[named]["spec"]["template"]
        assert unreachable(template, endpoint, kube_proxy=False) == ""
        assert unreachable(template, "https://127.0.0.1:1", kube_proxy=False)


def test_the_issuer_is_unknown_until_there_is_a_cluster(provider: Provider) -> None:
    """A program would otherwise take the preview's profile for a cluster without an issuer."""
    inputs = provider.cluster_inputs(oidcIssuerProfile={"enabled": True})
    foretold = provider.type("ManagedCluster").preview(inputs, id="", state={})
    assert foretold["oidcIssuerProfile"] == {"enabled": True, "issuerURL": UNKNOWN}
    foretold = provider.type("ManagedCluster").preview({**inputs, "oidcIssuerProfile": UNKNOWN}, id="", state={})
    assert foretold["oidcIssuerProfile"] is UNKNOWN


def test_what_arm_adds_to_an_input_is_unknown_at_preview(provider: Provider) -> None:
    inputs = provider.cluster_inputs(addonProfiles={"omsagent": {"enabled": True}})
    foretold = provider.type("ManagedCluster").preview(inputs, id="", state={})
    assert foretold["identity"] == {"type": "SystemAssigned", "principalId": UNKNOWN, "tenantId": UNKNOWN}
    assert foretold["addonProfiles"] == {"omsagent": {"enabled": True, "identity": UNKNOWN}}
    network = LIVES["VirtualNetwork"].inputs(provider)
    foretold = provider.type("VirtualNetwork").preview(network, id="", state={})
    assert foretold["subnets"] == [{"name": "nodes", "addressPrefix": "10.1.0.0/24", "id": UNKNOWN}]
    foretold = provider.type("VirtualNetwork").preview({**network, "subnets": UNKNOWN}, id="", state={})
    assert foretold["subnets"] is UNKNOWN


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_what_is_required_is_asked_for(provider: Provider, kind: Any) -> None:
    name = kind.token.rsplit(":", 1)[1]
    missing = provider.failures(name)
    assert {*kind.required, *kind.parameters} - {kind.name_property} == missing.keys() - {kind.name_property}
    for reason in missing.values():
        assert "missing required property" in reason


def test_every_type_has_a_case() -> None:
    assert {kind.token.rsplit(":", 1)[1] for kind in TYPES} == LIVES.keys()


@pytest.mark.parametrize("name", LIVES)
def test_life_of_a_resource(provider: Provider, name: str) -> None:
    life, resource = LIVES[name], provider.type(name)
    inputs = provider.check(name, **life.inputs(provider))

    known = resource.preview(inputs, id="", state={})
    assert ("name" in known) == (resource.name_property == "name"), "azure-native knows it when the resource exists"
    assert not known.keys() & ((resource.outputs - resource.accepts) | {"id"}), "ARM computes these"

    created = resource.create(inputs, timeout=5.0)
    assert created.id == life.id
    assert created.outputs["name"] == life.id.rsplit("/", 1)[1]
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


def test_the_preview_of_an_update_knows_the_name_and_no_other_output(provider: Provider) -> None:
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


def test_an_id_of_nothing_is_refused_or_found_to_be_gone(provider: Provider) -> None:
    for resource, id in product(provider.all(), IDS_OF_NOTHING):
        with suppress(RefusedError):
            assert resource.read(*resource.imported(id)) is None, (resource.token, id)
