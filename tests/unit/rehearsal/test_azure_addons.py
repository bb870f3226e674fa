"""AKS's add-ons in the simulated subscription, and the registries and vaults for which they have roles."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.rows import latest
from rehearsal.azure.clusters.addons import SECRETS_PROVIDER
from rehearsal.azure.identity import roles
from rehearsal.azure.identity.access import Access
from rehearsal.azure.identity.entra import Principal
from rehearsal.azure.identity.identities import IDENTITY_TYPE
from rehearsal.azure.monitor.workspaces import DELETED_TYPE
from rehearsal.azure.network.networks import SCALE_SET_TYPE
from tests.unit.rehearsal.azure_world import AKS, CLUSTER, GROUP, GROUPS, REGION, SCOPE, Body, World

ON: Body = {"enabled": True, "config": {"enableSecretRotation": "true", "rotationPollInterval": "2m"}}
REGISTRIES, VAULTS = "Microsoft.ContainerRegistry/registries", "Microsoft.KeyVault/vaults"
WORKSPACES = "Microsoft.OperationalInsights/workspaces"
REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/platform"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/team-secrets"


def cluster(world: World, **profiles: Any) -> Body:
    return world.cluster(world.cluster_body(addonProfiles=profiles) if profiles else None)


def scale_sets(world: World) -> list[set[str]]:
    """The identities of each."""
    store = world.azure._context.store
    return [set(one.body["identity"]["userAssignedIdentities"]) for one in store.of_type(SCALE_SET_TYPE)]


def test_an_add_on_has_an_identity_that_every_node_has() -> None:
    world = World()
    made = cluster(world, **{SECRETS_PROVIDER: ON})
    profile = made["properties"]["addonProfiles"][SECRETS_PROVIDER]
    assert profile["config"] == ON["config"]
    identity = profile["identity"]
    group = made["properties"]["nodeResourceGroup"]
    assert identity["resourceId"].endswith(f"{group}/providers/{IDENTITY_TYPE}/azurekeyvaultsecretsprovider-demo")
    assert world.azure.directory.principal(identity["objectId"]) is not None
    assert scale_sets(world) == [
        {made["properties"]["identityProfile"]["kubeletidentity"]["resourceId"], identity["resourceId"]}
    ]


def test_the_identity_stays_with_an_update_that_says_nothing_and_goes_with_the_add_on() -> None:
    world = World()
    before = cluster(world, **{SECRETS_PROVIDER: ON})["properties"]["addonProfiles"][SECRETS_PROVIDER]["identity"]
    assert cluster(world)["properties"]["addonProfiles"][SECRETS_PROVIDER]["identity"] == before
    off = cluster(world, **{SECRETS_PROVIDER: {"enabled": False, "identity": before}})["properties"]["addonProfiles"][
        SECRETS_PROVIDER
    ]
    assert "identity" not in off
    assert world.azure.directory.principal(before["objectId"]) is None
    assert [len(identities) for identities in scale_sets(world)] == [1]


def test_node_auto_provisioning_is_told_of_the_identity(tmp_path: Path) -> None:
    world = World()
    made = cluster(world, **{SECRETS_PROVIDER: ON})
    cloud = world.azure.cloud(made["id"])
    world.azure.start(tmp_path)
    try:
        told = cloud.provisioning_environment("abcdef.0123456789abcdef", "key")["NODE_IDENTITIES"].split(",")
    finally:
        world.azure.stop()
    assert [one.rsplit("/", 1)[1] for one in told] == ["demo-agentpool", "azurekeyvaultsecretsprovider-demo"]


@pytest.mark.parametrize(
    "profiles",
    [
        {"azurekeyvault": ON},
        {SECRETS_PROVIDER: {"enabled": True, "config": {"rotationPollInterval": "two minutes"}}},
    ],
)
def test_what_aks_does_not_know_is_refused(profiles: Body) -> None:
    with pytest.raises(ArmError, match="addonProfiles") as raised:
        cluster(World(), **profiles)
    assert raised.value.code == "InvalidParameter"


def test_roles_on_a_registry_and_a_vault() -> None:
    world = World()
    world.arm.put(REGISTRY, latest(REGISTRIES), {"location": REGION})
    world.arm.put(
        VAULT,
        latest(VAULTS),
        {"location": REGION, "properties": {"tenantId": world.azure.directory.tenant}},
    )
    made = cluster(world, **{SECRETS_PROVIDER: ON})["properties"]
    kubelet = made["identityProfile"]["kubeletidentity"]["objectId"]
    reader = made["addonProfiles"][SECRETS_PROVIDER]["identity"]["objectId"]
    world.grant(REGISTRY, kubelet, roles.ACR_PULL)
    world.grant(VAULT, reader, roles.KEY_VAULT_SECRETS_USER)
    access = Access(world.azure._context.store, world.azure.directory)
    assert access.allows(kubelet, "Microsoft.ContainerRegistry/registries/pull/read", REGISTRY)
    assert access.allows_data(reader, "Microsoft.KeyVault/vaults/secrets/getSecret/action", VAULT)
    assert not access.allows_data(kubelet, "Microsoft.KeyVault/vaults/secrets/getSecret/action", VAULT)


def test_no_role_on_what_is_not_there() -> None:
    world = World()
    kubelet = cluster(world)["properties"]["identityProfile"]["kubeletidentity"]["objectId"]
    with pytest.raises(ArmError) as raised:
        world.grant(REGISTRY, kubelet, roles.ACR_PULL)
    assert raised.value.status == 404


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (REGISTRIES, "my-registry"),
        (VAULTS, "1st"),
        (VAULTS, "a--b"),
    ],
)
def test_names_that_azure_refuses(kind: Any, name: str) -> None:
    world = World()
    body = {"location": REGION, "properties": {"tenantId": world.azure.directory.tenant}}
    with pytest.raises(ArmError) as raised:
        world.arm.put(f"{GROUP}/providers/{kind}/{name}", latest(kind), body)
    assert raised.value.code in ("InvalidResourceName", "VaultNameNotValid")


def test_a_vault_says_whose_tenant_may_use_it() -> None:
    with pytest.raises(ArmError, match="tenantId"):
        World().arm.put(VAULT, latest(VAULTS), {"location": REGION})


# Monitoring.

LOGS = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
LOGS_VERSION = latest(WORKSPACES)


@pytest.mark.parametrize("what", [LOGS, GROUP])
def test_a_deleted_workspace_keeps_its_name_and_data(what: str) -> None:
    """https://learn.microsoft.com/rest/api/loganalytics/workspaces/delete"""
    world = World()
    before = world.arm.put(LOGS, LOGS_VERSION, {"location": REGION})
    world.arm.delete(what, GROUPS if what == GROUP else LOGS_VERSION)
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    deleted = f"{SCOPE}/providers/{DELETED_TYPE}"
    (listed,) = world.arm.list(deleted, LOGS_VERSION)
    assert (listed["id"], listed["name"], listed["location"]) == (LOGS, "logs", REGION)
    (kept,) = world.azure._context.store.of_type(DELETED_TYPE)
    kept.body["location"] = "eastus"
    with pytest.raises(ArmError, match="was deleted from eastus within the last 14 days"):
        world.arm.put(LOGS, LOGS_VERSION, {"location": REGION})
    kept.body["location"] = REGION
    again = world.arm.put(LOGS, LOGS_VERSION, {"location": REGION})
    assert again["properties"]["customerId"] == before["properties"]["customerId"]
    assert not world.arm.list(deleted, LOGS_VERSION)


METRICS = f"{GROUP}/providers/Microsoft.Monitor/accounts/metrics"
RULE = f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/prometheus"


def agent(workspace: str) -> Body:
    return {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": workspace, "useAADAuth": "true"}}


def rule(**changes: Any) -> Body:
    properties = {
        "destinations": {"monitoringAccounts": [{"name": "one", "accountResourceId": METRICS}]},
        "dataFlows": [{"streams": ["Microsoft-PrometheusMetrics"], "destinations": ["one"]}],
        **changes,
    }
    return {"location": REGION, "kind": "Linux", "properties": properties}


def test_the_agent_has_an_identity_of_its_own() -> None:
    world = World()
    world.arm.put(LOGS, latest(WORKSPACES), {"location": REGION})
    made = cluster(world, omsagent=agent(LOGS))
    assert made["properties"]["addonProfiles"]["omsagent"]["identity"]["resourceId"].endswith("/omsagent-demo")


def test_whoever_names_a_workspace_may_read_its_keys() -> None:
    world = World()
    world.arm.put(LOGS, latest(WORKSPACES), {"location": REGION})
    world.cluster()
    somebody = str(uuid.uuid4())
    world.azure.directory.add(Principal(somebody, "User", "somebody"))
    world.grant(CLUSTER, somebody, roles.CONTRIBUTOR, kind="User")
    for body in (world.cluster_body(), world.cluster_body(addonProfiles={"omsagent": {"enabled": False}})):
        world.arm.begin_put(CLUSTER, AKS, body, somebody)
    named = world.cluster_body(addonProfiles={"omsagent": agent(LOGS)})
    with pytest.raises(ArmError, match=r"'Microsoft\.OperationalInsights/workspaces/sharedkeys/read'") as raised:
        world.arm.begin_put(CLUSTER, AKS, named, somebody)
    assert raised.value.code == "LinkedAuthorizationFailed"
    world.grant(LOGS, somebody, roles.CONTRIBUTOR, kind="User")
    world.arm.begin_put(CLUSTER, AKS, named, somebody)


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        (agent(LOGS), "BadRequest"),
        (agent(""), "LinkedInvalidPropertyId"),
        (agent("logs"), "LinkedInvalidPropertyId"),
        ({"enabled": True}, "LinkedInvalidPropertyId"),
        ({"enabled": False, "config": {"logAnalyticsWorkspaceResourceID": ""}}, "LinkedInvalidPropertyId"),
    ],
)
def test_an_agent_without_a_workspace(profile: Body, code: str) -> None:
    with pytest.raises(ArmError) as raised:
        cluster(World(), omsagent=profile)
    assert raised.value.code == code


@pytest.mark.parametrize("days", [7, 731])
def test_a_workspace_keeps_no_other_number_of_days(days: int) -> None:
    with pytest.raises(ArmError, match="RetentionInDays"):
        World().arm.put(
            LOGS,
            latest(WORKSPACES),
            {"location": REGION, "properties": {"retentionInDays": days}},
        )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dataFlows": [{"destinations": ["two"]}]}, "'two' is not declared"),
        ({"dataFlows": []}, "at least one data flow"),
        ({"dataCollectionEndpointId": RULE.replace("Rules", "Endpoints")}, "was not found"),
        ({"destinations": {"monitoringAccounts": [{"name": "one", "accountResourceId": LOGS}]}}, "was not found"),
    ],
)
def test_an_invalid_rule(changes: Body, said: str) -> None:
    world = World()
    world.arm.put(METRICS, latest("Microsoft.Monitor/accounts"), {"location": REGION})
    with pytest.raises(ArmError, match=said) as raised:
        world.arm.put(RULE, latest("Microsoft.Insights/dataCollectionRules"), rule(**changes))
    assert raised.value.code == "InvalidPayload"


def test_a_rule_that_something_has_stays() -> None:
    world = World()
    world.arm.put(METRICS, latest("Microsoft.Monitor/accounts"), {"location": REGION})
    version = latest("Microsoft.Insights/dataCollectionRules")
    world.arm.put(RULE, version, rule())
    association = f"{cluster(world)['id']}/providers/Microsoft.Insights/dataCollectionRuleAssociations/of-cluster"
    with pytest.raises(ArmError, match="must be specified"):
        world.arm.put(association, version, {"properties": {}})
    with pytest.raises(ArmError, match="was not found"):
        world.arm.put(association, version, {"properties": {"dataCollectionRuleId": f"{RULE}s"}})
    world.arm.put(association, version, {"properties": {"dataCollectionRuleId": RULE}})
    with pytest.raises(ArmError, match="is used by"):
        world.arm.delete(RULE, version)
    world.arm.delete(association, version)
    world.arm.delete(RULE, version)


# Advanced Container Networking Services.


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ({"enabled": True, "security": {"transitEncryption": {"type": "WireGuard"}}}, "transitEncryption"),
        ({"enabled": True, "security": {"enabled": True, "advancedNetworkPolicies": "DNS"}}, "It must be one of"),
        ({"enabled": True, "security": {"advancedNetworkPolicies": "L7"}}, "security.enabled must be true"),
        ({"enabled": False, "observability": {"enabled": True}}, "it must be true"),
    ],
)
def test_advanced_networking_that_cannot_be(profile: Body, said: str) -> None:
    world = World()
    with pytest.raises(ArmError, match=said):
        world.cluster(world.cluster_body(networkProfile__advancedNetworking=profile))


def test_advanced_networking_is_kept() -> None:
    world = World()
    profile = {"enabled": True, "observability": {"enabled": True}, "security": {"enabled": False}}
    made = world.cluster(world.cluster_body(networkProfile__advancedNetworking=profile))
    assert made["properties"]["networkProfile"]["advancedNetworking"] == profile


def test_security_is_for_cilium_alone() -> None:
    world = World()
    body = world.cluster_body(networkProfile__advancedNetworking={"enabled": True, "security": {"enabled": True}})
    body["properties"]["networkProfile"] |= {"networkDataplane": "azure", "networkPolicy": "azure"}
    with pytest.raises(ArmError, match="networkDataplane cilium only"):
        world.cluster(body)
