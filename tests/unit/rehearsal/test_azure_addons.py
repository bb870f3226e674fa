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


def test_a_rule_that_something_has_stays() -> None:
    world = World()
    world.arm.put(METRICS, latest("Microsoft.Monitor/accounts"), {"location": REGION})
    version = latest("Microsoft.Insights/dataCollectionRules")
    properties = {
        "destinations": {"monitoringAccounts": [{"name": "one", "accountResourceId": METRICS}]},
        "dataFlows": [{"streams": ["Microsoft-PrometheusMetrics"], "destinations": ["one"]}],
    }
    world.arm.put(RULE, version, {"location": REGION, "kind": "Linux", "properties": properties})
    association = f"{cluster(world)['id']}/providers/Microsoft.Insights/dataCollectionRuleAssociations/of-cluster"
    world.arm.put(association, version, {"properties": {"dataCollectionRuleId": RULE}})
    with pytest.raises(ArmError, match="is used by"):
        world.arm.delete(RULE, version)
    world.arm.delete(association, version)
    world.arm.delete(RULE, version)
