"""What the look before `up` finds of registries and vaults, in the simulated subscription."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.components.documents.roles import Role
from karpstack.preflight.azure import assignments, rights, subscription
from karpstack.preflight.azure.api_versions import REGISTRIES, VAULTS
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.monitor.workspaces import LOG_WORKSPACE_TYPE
from tests.unit.example_stack import aks
from tests.unit.preflight.preflight_azure_world import found, looked_at, one, somebody
from tests.unit.rehearsal.azure_world import GROUP, REGION, SCOPE, World

REGISTRY_TYPE, VAULT_TYPE = "Microsoft.ContainerRegistry/registries", "Microsoft.KeyVault/vaults"
REGISTRY = f"{GROUP}/providers/{REGISTRY_TYPE}/platform"
VAULT = f"{GROUP}/providers/{VAULT_TYPE}/team-secrets"
ADDONS = {"registryIds": [REGISTRY], "secretsProvider": True, "vaultIds": [VAULT]}


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


def test_a_right_to_give_roles_is_needed_on_each(world: World) -> None:
    registry(world)
    vault(world)
    own = somebody(world, roles.CONTRIBUTOR, roles.READER)
    world.grant(REGISTRY, own.object_id, roles.RBAC_ADMINISTRATOR, kind="User")
    said = [finding.what for finding in rights.rights(looked_at(world, principal=own, addons=ADDONS))]
    lacking = [what for what in said if "roleAssignments/write" in what]
    assert [what.rsplit(" on ", 1)[1] for what in lacking] == [SCOPE, VAULT]


def test_the_deployers_condition_and_places() -> None:
    other = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/hub/providers"
    foreign = f"{other}/{REGISTRY_TYPE}/shared"
    given = assignments.assignments(aks("aks-nap", addons={**ADDONS, "registryIds": [foreign]}))
    assert [each.scope for each in given if foreign in each.scope] == [foreign]
    assert all(role.value in given[0].condition for role in (Role.ACR_PULL, Role.KEY_VAULT_SECRETS_USER))
    assert not any(role.value in assignments.assignments(aks("aks-nap"))[0].condition for role in (Role.ACR_PULL,))


# Workspaces.

LOGS = f"{GROUP}/providers/{LOG_WORKSPACE_TYPE}/logs"


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
