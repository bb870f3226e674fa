"""What the look before `up` finds of registries and vaults, in the simulated subscription."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.documents.roles import Role
from preflight.azure import addons, assignments, locks, rights, subscription
from preflight.azure.api_versions import LOG_WORKSPACES, METRIC_WORKSPACES, REGISTRIES, VAULTS
from rehearsal.azure.identity import roles
from rehearsal.azure.monitor.workspaces import LOG_WORKSPACE_TYPE, METRIC_WORKSPACE_TYPE
from tests.unit.example_stack import aks
from tests.unit.rehearsal.azure_world import GROUP, REGION, SCOPE, World
from tests.unit.rehearsal.preflight_azure_world import found, lock, looked_at, one, somebody

REGISTRY_TYPE, VAULT_TYPE = "Microsoft.ContainerRegistry/registries", "Microsoft.KeyVault/vaults"
REGISTRY = f"{GROUP}/providers/{REGISTRY_TYPE}/platform"
VAULT = f"{GROUP}/providers/{VAULT_TYPE}/team-secrets"
ADDONS = {"registryIds": [REGISTRY], "secretsProvider": True, "vaultIds": [VAULT]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World()
    made.azure.start(tmp_path)
    yield made
    made.azure.stop()


def registry(world: World, **properties: Any) -> None:
    world.arm.put(REGISTRY, REGISTRIES, {"location": REGION, "properties": properties})


def vault(world: World, **properties: Any) -> None:
    world.arm.put(
        VAULT,
        VAULTS,
        {
            "location": REGION,
            "properties": {"tenantId": world.azure.tenant_id, "enableRbacAuthorization": True, **properties},
        },
    )


def test_what_is_there_and_goes_by_roles_is_not_told(world: World) -> None:
    registry(world, roleAssignmentMode="LegacyRegistryPermissions")
    vault(world)
    seen = looked_at(world, addons=ADDONS)
    assert not found(addons.registries, seen)
    assert not found(addons.vaults, seen)


def test_what_is_not_there(world: World) -> None:
    seen = looked_at(world, addons=ADDONS)
    assert "registries/platform is not there" in one(addons.registries, seen).what
    assert "vaults/team-secrets is not there" in one(addons.vaults, seen).what


def test_a_registry_that_gives_rights_by_repository(world: World) -> None:
    registry(world, roleAssignmentMode="AbacRepositoryPermissions")
    finding = one(addons.registries, looked_at(world, addons=ADDONS))
    assert "does not honour AcrPull" in finding.consequence
    assert "Container Registry Repository Reader" in finding.fix


def test_a_vault_of_another_tenant(world: World) -> None:
    vault(world, tenantId="22222222-2222-2222-2222-222222222222")
    assert "of the tenant 22222222" in one(addons.vaults, looked_at(world, addons=ADDONS)).what


@pytest.mark.parametrize("told", [{"enableRbacAuthorization": False}, {"enableRbacAuthorization": None}])
def test_a_vault_that_goes_by_access_policies(world: World, told: dict[str, Any]) -> None:
    vault(world, **told)
    assert "access policies" in one(addons.vaults, looked_at(world, addons=ADDONS)).what


def test_a_right_to_give_roles_is_needed_on_each(world: World) -> None:
    registry(world)
    vault(world)
    own = somebody(world, roles.CONTRIBUTOR, roles.READER)
    world.grant(REGISTRY, own.object_id, roles.RBAC_ADMINISTRATOR, kind="User")
    said = [finding.what for finding in rights.rights(looked_at(world, principal=own, addons=ADDONS))]
    lacking = [what for what in said if "roleAssignments/write" in what]
    assert [what.rsplit(" on ", 1)[1] for what in lacking] == [SCOPE, VAULT]


def test_a_lock_on_one_is_in_the_way(world: World) -> None:
    registry(world)
    lock(world, REGISTRY, "ReadOnly")
    assert one(locks.locks, looked_at(world, addons=ADDONS)).severity == "error"


def test_the_deployers_condition_and_places() -> None:
    other = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/hub/providers"
    foreign = f"{other}/{REGISTRY_TYPE}/shared"
    given = assignments.assignments(aks("aks-nap", addons={**ADDONS, "registryIds": [foreign]}))
    assert [each.scope for each in given if foreign in each.scope] == [foreign]
    assert all(role.value in given[0].condition for role in (Role.ACR_PULL, Role.KEY_VAULT_SECRETS_USER))
    assert not any(role.value in assignments.assignments(aks("aks-nap"))[0].condition for role in (Role.ACR_PULL,))


# Workspaces.

LOGS = f"{GROUP}/providers/{LOG_WORKSPACE_TYPE}/logs"
METRICS = f"{GROUP}/providers/{METRIC_WORKSPACE_TYPE}/metrics"
MONITORED = {"containerInsights": True, "prometheus": True, "metricsWorkspaceId": METRICS}


def workspaces(world: World) -> None:
    world.arm.put(LOGS, LOG_WORKSPACES, {"location": REGION})
    world.arm.put(METRICS, METRIC_WORKSPACES, {"location": REGION})


def test_workspaces_that_are_there_are_not_told(world: World) -> None:
    workspaces(world)
    assert not found(addons.workspaces, looked_at(world, cluster__logWorkspaceId=LOGS, addons=MONITORED))
    assert not found(addons.workspaces, looked_at(world))


def test_workspaces_that_are_not_there(world: World) -> None:
    said = found(addons.workspaces, looked_at(world, cluster__logWorkspaceId=LOGS, addons=MONITORED))
    assert [severity for severity, _ in said] == ["error", "error"]


def test_a_workspace_elsewhere_needs_its_location(world: World) -> None:
    workspaces(world)
    elsewhere = MONITORED | {"metricsWorkspaceLocation": "eastus"}
    finding = one(addons.workspaces, looked_at(world, cluster__logWorkspaceId=LOGS, addons=elsewhere))
    assert f"lies in {REGION}, and its data collection rule would lie in eastus" in finding.what
    assert finding.fix == f"set karpstack:addons.metricsWorkspaceLocation to {REGION}"


@pytest.mark.parametrize("insights", [True, False])
def test_container_insights_needs_to_read_the_workspaces_keys(world: World, insights: bool) -> None:
    action = "Microsoft.OperationalInsights/workspaces/sharedKeys/read"
    own = looked_at(world, addons={"logRetentionDays": 30, "containerInsights": insights})
    assert any(action in grant.actions for grant in rights.needed(own.settings)) == insights
    given = looked_at(world, cluster__logWorkspaceId=LOGS, addons={"containerInsights": insights})
    assert (action in assignments.definition(given.settings)["Actions"]) == insights
    asked = dict(rights._by_scope(given))[LOGS]
    assert any(action in grant.actions for grant in asked) == insights


def test_monitoring_needs_its_own_rights_and_providers(world: World) -> None:
    plain, more = (
        {action for grant in rights.needed(looked_at(world, addons=each).settings) for action in grant.actions}
        for each in ({}, {"logRetentionDays": 30, "containerInsights": True, "prometheus": True})
    )
    assert {action.rpartition("/")[0] for action in more - plain} == {
        "Microsoft.Insights/dataCollectionEndpoints",
        "Microsoft.Insights/dataCollectionRuleAssociations",
        "Microsoft.Insights/dataCollectionRules",
        "Microsoft.Insights/diagnosticSettings",
        "Microsoft.Monitor/accounts",
        "Microsoft.OperationalInsights/workspaces",
        "Microsoft.OperationalInsights/workspaces/sharedKeys",
    }
    world.azure.unregistered.add("microsoft.monitor")
    assert not found(subscription.providers, looked_at(world))
    finding = one(subscription.providers, looked_at(world, addons={"prometheus": True}))
    assert "Microsoft.Monitor is" in finding.what
