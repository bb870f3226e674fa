"""The look at an Azure subscription before `pulumi up`: each finding provoked once in the simulated one."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from karpstack.preflight.azure import charts, names, rights, subscription, versions
from karpstack.preflight.azure.checks import CHECKS
from karpstack.preflight.azure.scopes import within
from karpstack.preflight.azure.subject import CLUSTER, subject
from karpstack.preflight.azure.subject import GROUP as GROUP_TYPE
from karpstack.preflight.finding import NotAskedError, UnknowableError, blockers, run
from karpstack.preflight.stack import State
from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.faults import Fault
from karpstack.rehearsal.azure.arm.rows import latest
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.entra import TENANT_ID
from karpstack.rehearsal.azure.monitor.workspaces import DELETED_TYPE, LOG_WORKSPACE_TYPE
from tests.unit.preflight.preflight_azure_world import (
    GROUP,
    NODES,
    Token,
    asked,
    deny,
    found,
    lock,
    looked_at,
    made,
    one,
    somebody,
    unjudged,
)
from tests.unit.rehearsal.azure_world import AKS, GROUPS, REGION, SCOPE, World
from tests.unit.rehearsal.azure_world import GROUP as OTHER_GROUP

UP = made((GROUP_TYPE, GROUP), (CLUSTER, f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks"))


@pytest.mark.parametrize("stack", ["aks-self-hosted", "aks-nap"])
def test_nothing_is_in_the_way_of_the_examples(world: World, stack: str) -> None:
    checked = run(CHECKS, looked_at(world, stack))
    assert [one.name for one in checked] == list(CHECKS)
    said = {(one.name, finding.severity, finding.what) for one in checked for finding in one.findings}
    assert {(name, severity) for name, severity, _ in said} == {("subscription", "note")}, said


def test_it_says_who_asks_and_where(world: World) -> None:
    finding = one(subscription.subscription, looked_at(world))
    assert f"checked as a test in the subscription rehearsal ({world.azure.subscription_id})" in finding.what


@pytest.mark.parametrize(
    ("claims", "changes", "refused"),
    [
        ({"tid": "22222222-2222-2222-2222-222222222222"}, {}, True),
        ({"tid": "22222222-2222-2222-2222-222222222222"}, {"cluster__localAccounts": True}, False),
        ({"tid": TENANT_ID.upper()}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_login_of_another_tenant(
    world: World, monkeypatch: pytest.MonkeyPatch, claims: dict[str, str], changes: dict[str, Any], refused: bool
) -> None:
    seen = looked_at(world, **changes)
    token = f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"
    monkeypatch.setattr(Token, "get_token", lambda *_: AccessToken(token, 0))
    said = [text for severity, text in found(subscription.subscription, seen) if severity == "error"]
    assert any("belongs to the tenant 22222222-2222-2222-2222-222222222222" in text for text in said) == refused


def test_a_subscription_that_is_disabled(world: World) -> None:
    seen = looked_at(world)
    disabled = replace(seen, told={**seen.told, "state": "Warned"})
    assert [severity for severity, _ in found(subscription.subscription, disabled)] == ["note", "error"]


def test_a_state_that_could_not_be_read_is_told(world: World) -> None:
    said = found(subscription.subscription, looked_at(world, state=State(unread="no stack named 'aks' found")))
    assert "no stack named 'aks' found" in said[1][1]


def test_without_rights_nothing_can_be_asked(world: World) -> None:
    with pytest.raises(UnknowableError, match=r"AuthorizationFailed .* give Azure credentials"):
        looked_at(world, principal=somebody(world))


def test_another_subscription_is_not_there(world: World) -> None:
    azure = asked(world)
    azure.subscription = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(UnknowableError, match="SubscriptionNotFound"):
        subject(azure, unjudged("aks-nap"), State())


def test_what_fails_is_told_and_hides_no_other_check(world: World) -> None:
    world.azure.faults.inject(Fault("LocationRequired", "GET", "Microsoft.Compute/skus"))
    checked = {each.name: each.findings for each in run(CHECKS, looked_at(world))}
    assert "could not be checked: 400 LocationRequired The location" in checked["system node size"][0].what
    assert not checked["Kubernetes version"]


def test_a_page_elsewhere_is_not_followed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    azure = asked(world)
    monkeypatch.setattr(azure, "find", lambda *given, **query: {"value": [], "nextLink": "https://example.com/"})
    with pytest.raises(NotAskedError, match="elsewhere"):
        azure.all("Microsoft.Compute/skus/read", "/x", "1")


@pytest.mark.parametrize(
    ("location", "severity"), [(REGION, "warning"), ("eastus", "error")], ids=["same place", "elsewhere"]
)
def test_a_deleted_workspace_of_the_stacks_name(world: World, location: str, severity: str) -> None:
    seen = looked_at(world, addons={"logRetentionDays": 30})
    identifier = f"{GROUP}/providers/{LOG_WORKSPACE_TYPE}/{seen.names.log_workspace}"
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    world.arm.put(identifier, latest(LOG_WORKSPACE_TYPE), {"location": REGION})
    assert not found(names.deleted_workspace, seen)
    world.arm.delete(identifier, latest(LOG_WORKSPACE_TYPE))
    (kept,) = world.azure._context.store.of_type(DELETED_TYPE)
    kept.body["location"] = location
    finding = one(names.deleted_workspace, looked_at(world, addons={"logRetentionDays": 30}))
    assert (finding.severity, f"deleted from {location}" in finding.what) == (severity, True)
    assert "workspace delete --force" in finding.fix
    assert not found(names.deleted_workspace, looked_at(world))


@pytest.mark.parametrize(
    ("stack", "status", "severities"),
    [("aks-self-hosted", 200, []), ("aks-self-hosted", 404, ["error"] * 2), ("aks-nap", 404, [])],
)
def test_charts_that_the_registry_does_not_have(
    world: World, monkeypatch: pytest.MonkeyPatch, stack: str, status: int, severities: list[str]
) -> None:
    asked_for: list[str] = []

    def answer(call: str) -> int:
        asked_for.append(call)
        return status

    monkeypatch.setattr(charts, "_status", answer)
    seen = looked_at(world, stack)
    assert not found(charts.charts, seen)
    assert not asked_for, "a rehearsal asks no registry"
    seen.azure.is_local = False
    assert [severity for severity, _ in found(charts.charts, seen)] == severities
    assert all(call.startswith("GET https://mcr.microsoft.com/v2/aks/karpenter/karpenter") for call in asked_for)


def test_a_registry_that_does_not_answer_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looked_at(world, "aks-self-hosted")
    seen.azure.is_local = False
    monkeypatch.setattr(charts, "_status", lambda _: 503)
    with pytest.raises(NotAskedError, match=r"mcr\.microsoft\.com answers 503"):
        found(charts.charts, seen)


# Rights, deny assignments, locks


@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        ((roles.OWNER,), []),
        ((roles.CONTRIBUTOR, roles.USER_ACCESS_ADMINISTRATOR), []),
        ((roles.CONTRIBUTOR, roles.RBAC_ADMINISTRATOR), []),
        ((roles.CONTRIBUTOR,), ["Microsoft.Authorization/roleAssignments/write"]),
        ((roles.READER, roles.RBAC_ADMINISTRATOR), ["Microsoft.Resources/subscriptions/resourceGroups/write"]),
    ],
)
def test_rights_are_those_that_the_roles_have(world: World, given: tuple[roles.Role, ...], lacking: list[str]) -> None:
    said = list(rights.rights(looked_at(world, principal=somebody(world, *given))))
    assert [finding.severity for finding in said] == ["error"] * len(said)
    assert bool(said) == bool(lacking)
    assert all(any(action in finding.what for finding in said) for action in lacking)


def test_who_may_not_give_roles_is_told_what_to_get(world: World) -> None:
    finding = one(rights.rights, looked_at(world, principal=somebody(world, roles.CONTRIBUTOR)))
    assert finding.fix.startswith(f"assign the role Role Based Access Control Administrator on {SCOPE}")


def test_what_this_stack_does_not_make_needs_no_right(world: World) -> None:
    plain = {action for grant in rights.needed(looked_at(world, "aks-nap").settings) for action in grant.actions}
    workspace = f"{OTHER_GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
    logged = looked_at(world, cluster__logWorkspaceId=workspace)
    more = {action for grant in rights.needed(logged.settings) for action in grant.actions}
    assert {action.split("/")[0] for action in more - plain} == {
        "Microsoft.Insights",
        "Microsoft.ManagedIdentity",
    }


def test_the_administrators_kubeconfig_is_asked_for_with_local_accounts_alone(world: World) -> None:
    action = "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action"
    for local in (True, False):
        grants = rights.needed(looked_at(world, cluster__localAccounts=local).settings)
        assert any(action in grant.actions for grant in grants) == local


def test_a_workspace_is_asked_about_itself(world: World) -> None:
    principal = somebody(world, roles.READER)
    workspace = f"{OTHER_GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
    seen = looked_at(world, principal=principal, cluster__logWorkspaceId=workspace)
    (said,) = [what for _, what in found(rights.rights, seen) if "sharedKeys/action" in what]
    assert said.endswith(f"on {workspace}")


def test_an_existing_subnet_is_asked_about_itself(world: World) -> None:
    principal = somebody(world, roles.READER)
    world.grant(SCOPE, principal.object_id, roles.RBAC_ADMINISTRATOR, kind="User")
    seen = looked_at(world, principal=principal, network__subnetId=world.subnet(), network__subnetCidr=None)
    said = [what for _, what in found(rights.rights, seen) if "subnets/join/action" in what]
    assert len(said) == 1
    assert said[0].endswith("virtualNetworks/net/subnets/nodes")


def test_a_deny_assignment_counts_more_than_roles(world: World) -> None:
    deny(world, "Microsoft.ContainerService/*")
    with pytest.raises(ArmError, match="AuthorizationFailed"):
        world.cluster()


@pytest.mark.parametrize(
    ("outer", "said"),
    [
        ("/", True),
        (SCOPE, True),
        (GROUP.upper(), True),
        (GROUP[:-1], False),
        (f"{GROUP}-2", False),
        ("/providers/Microsoft.Management/managementGroups/hub", True),
    ],
)
def test_a_scope_is_above_by_whole_segments(outer: str, said: bool) -> None:
    assert within(GROUP, outer) == said


def test_a_lock_refuses_in_azures_words(world: World) -> None:
    lock(world, SCOPE, "ReadOnly")
    with pytest.raises(ArmError, match=r"ScopeLocked.*cannot perform write operation because following scope"):
        world.arm.put(GROUP, GROUPS, {"location": REGION})


# What the subscription is registered for


def test_what_is_not_registered_is_refused_in_azures_words(world: World) -> None:
    world.azure.unregistered.add("microsoft.network")
    with pytest.raises(ArmError, match=r"MissingSubscriptionRegistration.*namespace 'Microsoft.Network'"):
        world.network()


@pytest.mark.parametrize(
    ("offered", "severity"),
    [
        ({"capabilities": {"supportPlan": ["AKSLongTermSupport"]}}, "error"),
        ({"capabilities": {"supportPlan": ["KubernetesOfficial"]}, "isPreview": True}, "warning"),
        ({"capabilities": {"supportPlan": ["KubernetesOfficial"]}}, None),
    ],
)
def test_a_version_with_another_support(
    world: World, monkeypatch: pytest.MonkeyPatch, offered: dict[str, Any], severity: str | None
) -> None:
    seen = looked_at(world)
    monkeypatch.setattr(seen.azure, "ask", lambda *given: {"values": [{"version": "1.36", **offered}]})
    assert [one for one, _ in found(versions.kubernetes_version, seen)] == ([severity] if severity else [])


# Sizes and quotas


def test_a_zone_in_which_the_subscription_may_not_have_the_size(world: World) -> None:
    world.azure.restricted["standard_d2s_v5"] = ("2",)
    with pytest.raises(ArmError, match="AvailabilityZoneNotSupported"):
        world.cluster()


# Names and ranges


def test_a_node_resource_group_that_is_there(world: World) -> None:
    world.arm.put(NODES, GROUPS, {"location": REGION})
    with pytest.raises(ArmError, match="NodeResourceGroupAlreadyExists"):
        world.cluster(world.cluster_body(nodeResourceGroup="karpstack-aks-nodes"))


def test_what_a_broken_off_up_left(world: World) -> None:
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    identity = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/karpstack-aks-cluster"
    world.arm.put(identity, "2023-01-31", {"location": REGION})
    seen = looked_at(world, state=made((GROUP_TYPE, GROUP)))
    assert "userAssignedIdentities karpstack-aks-cluster already exists" in one(names.check_group_leftovers, seen).what
    known = made((GROUP_TYPE, GROUP), ("azure-native:managedidentity:UserAssignedIdentity", identity))
    assert not found(names.check_group_leftovers, looked_at(world, state=known))
    assert not found(names.check_group_leftovers, looked_at(world))


def test_an_api_version_that_azure_does_not_know_is_no_answer(world: World) -> None:
    with pytest.raises(NotAskedError, match="InvalidApiVersionParameter"):
        asked(world).ask("Microsoft.Compute/skus/read", f"{SCOPE}/providers/Microsoft.Compute/skus", "2000-01-01")


def test_a_cluster_of_the_stacks_own_is_not_in_its_way(world: World) -> None:
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    cluster = UP_CLUSTER.format(group=GROUP)
    world.arm.put(cluster, AKS, world.cluster_body(nodeResourceGroup="karpstack-aks-nodes"))
    assert blockers(run(CHECKS, looked_at(world, state=UP))) == []


UP_CLUSTER = "{group}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks"
