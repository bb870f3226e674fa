"""The look at an Azure subscription before `pulumi up`: each finding provoked once in the simulated one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from azure.core.credentials import AccessToken

from preflight.azure import charts, locks, names, network, quotas, rights, sizes, subscription, versions
from preflight.azure.checks import CHECKS
from preflight.azure.scopes import within
from preflight.azure.subject import CLUSTER, subject
from preflight.azure.subject import GROUP as GROUP_TYPE
from preflight.finding import NotAskedError, UnknowableError, in_the_way, run
from preflight.stack import State
from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.faults import Fault
from rehearsal.azure.arm.rows import latest
from rehearsal.azure.identity import roles
from rehearsal.azure.identity.entra import TENANT_ID
from rehearsal.azure.monitor.workspaces import DELETED_TYPE, LOG_WORKSPACE_TYPE
from tests.unit.rehearsal.azure_world import AKS, GROUPS, NETWORK, REGION, SCOPE, World
from tests.unit.rehearsal.azure_world import GROUP as OTHER_GROUP
from tests.unit.rehearsal.preflight_azure_world import (
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

SYSTEM = "standardDSv5Family"
UP = made((GROUP_TYPE, GROUP), (CLUSTER, f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks"))


@pytest.fixture
def world() -> Iterator[World]:
    started = World()
    started.azure.start()
    yield started
    started.azure.stop()


@pytest.mark.parametrize("stack", ["aks-self-hosted", "aks-nap"])
def test_nothing_is_in_the_way_of_the_examples(world: World, stack: str) -> None:
    checked = run(CHECKS, looked_at(world, stack))
    assert [one.name for one in checked] == list(CHECKS)
    said = {(one.name, finding.severity, finding.what) for one in checked for finding in one.findings}
    assert {(name, severity) for name, severity, _ in said} == {("subscription", "note")}, said


def test_it_says_who_asks_and_where(world: World) -> None:
    finding = one(subscription.subscription, looked_at(world))
    assert f"asked as a test in the subscription rehearsal ({world.azure.subscription_id})" in finding.what


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
    assert any("is of the tenant 22222222-2222-2222-2222-222222222222" in text for text in said) == refused


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
    world.azure.faults.inject(Fault("InternalServerError", "try again", 400, "GET", "Microsoft.Compute/skus"))
    checked = {each.name: each.findings for each in run(CHECKS, looked_at(world))}
    assert "could not be judged: 400 InternalServerError try again" in checked["system nodes' size"][0].what
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
    assert finding.fix.startswith(f"give Role Based Access Control Administrator on {SCOPE}")


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
    finding = one(rights.deny_assignments, looked_at(world))
    assert finding.severity == "error"
    assert "Microsoft.ContainerService/managedClusters/write" in finding.what
    with pytest.raises(ArmError, match="AuthorizationFailed"):
        world.cluster()


def test_a_deny_assignment_with_exceptions_may_be_meant_for_others(world: World) -> None:
    deny(world, "Microsoft.ContainerService/*", excluded="00000000-0000-0000-0000-000000000001")
    assert one(rights.deny_assignments, looked_at(world)).severity == "warning"


def test_a_deny_assignment_on_an_existing_subnet(world: World) -> None:
    subnet = world.subnet()
    deny(world, "Microsoft.Network/virtualNetworks/subnets/join/action", scope=subnet)
    seen = looked_at(world, network__subnetId=subnet, network__subnetCidr=None)
    finding = one(rights.deny_assignments, seen)
    assert "forbids Microsoft.Network/virtualNetworks/subnets/join/action" in finding.what


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


def test_a_lock_on_the_network_of_an_existing_subnet(world: World) -> None:
    subnet = world.subnet()
    lock(world, subnet.rpartition("/subnets/")[0], "ReadOnly")
    seen = looked_at(world, network__subnetId=subnet, network__subnetCidr=None)
    assert one(locks.locks, seen).severity == "error"
    assert not found(locks.locks, looked_at(world))


def test_a_deny_assignment_elsewhere_or_of_other_things(world: World) -> None:
    deny(world, "Microsoft.ContainerService/*", scope=OTHER_GROUP)
    deny(world, "Microsoft.Sql/*")
    assert not found(rights.deny_assignments, looked_at(world))


@pytest.mark.parametrize(("level", "severity"), [("ReadOnly", "error"), ("CanNotDelete", "note")])
def test_a_lock_on_the_subscription(world: World, level: str, severity: str) -> None:
    lock(world, SCOPE, level)
    finding = one(locks.locks, looked_at(world))
    assert (finding.severity, finding.fix.split()[:4]) == (severity, ["az", "lock", "delete", "--ids"])


def test_a_lock_refuses_in_azures_words(world: World) -> None:
    lock(world, SCOPE, "ReadOnly")
    with pytest.raises(ArmError, match=r"ScopeLocked.*cannot perform write operation because following scope"):
        world.arm.put(GROUP, GROUPS, {"location": REGION})


def test_locks_of_others_are_theirs(world: World) -> None:
    lock(world, OTHER_GROUP, "ReadOnly")
    assert not found(locks.locks, looked_at(world))


# What the subscription is registered for


@pytest.mark.parametrize(
    ("namespace", "severity"),
    [("microsoft.containerservice", "warning"), ("microsoft.compute", "error"), ("microsoft.insights", None)],
)
def test_resource_providers_that_are_not_registered(world: World, namespace: str, severity: str | None) -> None:
    world.azure.unregistered.add(namespace)
    said = found(subscription.providers, looked_at(world))
    assert [one for one, _ in said] == ([severity] if severity else [])


def test_what_is_not_registered_is_refused_in_azures_words(world: World) -> None:
    world.azure.unregistered.add("microsoft.network")
    with pytest.raises(ArmError, match=r"MissingSubscriptionRegistration.*namespace 'Microsoft.Network'"):
        world.network()


def test_encryption_at_host_is_a_feature_to_register(world: World) -> None:
    encrypted = {"default": {"imageFamily": "Ubuntu", "security": {"encryptionAtHost": True}}}
    finding = one(subscription.features, looked_at(world, "aks-nap", nodeClasses=encrypted))
    assert (finding.severity, "--name EncryptionAtHost" in finding.fix) == ("error", True)
    world.azure.features.add("Microsoft.Compute/EncryptionAtHost")
    assert not found(subscription.features, looked_at(world, "aks-nap", nodeClasses=encrypted))


def test_a_location_that_is_not_there(world: World) -> None:
    elsewhere: dict[str, Any] = {"azure-native:location": "westus9"}
    finding = one(subscription.region, looked_at(world, **elsewhere))
    assert (finding.severity, finding.fix) == ("error", f"set it to one of {REGION}")


def test_a_version_that_aks_does_not_offer(world: World) -> None:
    finding = one(versions.kubernetes_version, looked_at(world, cluster__version="1.29"))
    assert (finding.severity, finding.fix) == ("error", "set karpstack:cluster.version to one of 1.34, 1.35, 1.36")


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


@pytest.mark.parametrize("size", ["Standard_D4s_v9", "Standard_D4s_v5"])
def test_a_size_that_the_subscription_may_not_have(world: World, size: str) -> None:
    world.azure.restricted["standard_d4s_v5"] = ("1", "2", "3")
    finding = one(sizes.system_nodes, looked_at(world, systemNodes__vmSize=size))
    assert finding.severity == "error"
    assert size in finding.what


def test_a_zone_in_which_the_subscription_may_not_have_the_size(world: World) -> None:
    world.azure.restricted["standard_d2s_v5"] = ("2",)
    finding = one(sizes.system_nodes, looked_at(world, systemNodes__vmSize="Standard_D2s_v5"))
    assert (finding.severity, "in zone 2 of westus2" in finding.what) == ("error", True)
    assert "systemNodes.zones to [1, 3]" in finding.fix
    assert not found(sizes.system_nodes, looked_at(world, systemNodes__zones=[1, 3]))
    with pytest.raises(ArmError, match="AvailabilityZoneNotSupported"):
        world.cluster()


def pool_of(*names: str, kinds: tuple[str, ...] = ("on-demand",), **changes: Any) -> dict[str, Any]:
    """A NodePool of some sizes."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(names)},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(kinds)},
    ]
    return {"small": {"template": {"spec": {"requirements": requirements}}, **changes}}


def test_a_node_pool_of_sizes_that_the_subscription_may_not_have(world: World) -> None:
    world.azure.restricted["standard_d2s_v5"] = ("1", "2", "3")
    finding = one(sizes.node_pools, looked_at(world, nodePools=pool_of("Standard_D2s_v5")))
    assert finding.severity == "error"
    assert not found(sizes.node_pools, looked_at(world, nodePools=pool_of("Standard_D2s_v5", "Standard_D4s_v5")))


def test_a_node_pool_without_a_size_in_a_zone(world: World) -> None:
    world.azure.restricted["standard_d2s_v5"] = ("3",)
    finding = one(sizes.node_pools, looked_at(world, nodePools=pool_of("Standard_D2s_v5")))
    assert (finding.severity, finding.what.split()[:3]) == ("warning", ["in", "zone", "3"])


@pytest.mark.parametrize("name", [SYSTEM, "cores"])
def test_system_nodes_without_a_quota(world: World, name: str) -> None:
    world.azure.quotas[name] = 6
    finding = one(quotas.system_nodes, looked_at(world))
    assert finding.severity == "error"
    assert f"{name}: there is room for 6, and the 2 system nodes take 8" in finding.what
    assert "raised by 2" in finding.fix
    assert not found(quotas.system_nodes, looked_at(world, state=UP))


def test_no_room_for_the_node_of_an_upgrade(world: World) -> None:
    world.azure.quotas["cores"] = 10
    finding = one(quotas.system_nodes, looked_at(world))
    assert (finding.severity, "leave 2, and the one that is added" in finding.what) == ("warning", True)


def test_what_is_in_use_counts(world: World) -> None:
    world.cluster()  # two Standard_D2s_v5
    world.azure.quotas[SYSTEM] = 11
    assert "room for 7" in one(quotas.system_nodes, looked_at(world)).what


def test_node_pools_that_promise_more_than_a_family_has(world: World) -> None:
    world.azure.quotas[SYSTEM] = 40
    finding = one(quotas.node_pools, looked_at(world, nodePools=pool_of("Standard_D2s_v5", limits={"cpu": 100})))
    assert finding.severity == "warning"
    assert "admit 100 vCPUs, and the subscription has room for 32" in finding.what
    both = pool_of("Standard_D2s_v5", "Standard_D2as_v5", limits={"cpu": 100})
    assert not found(quotas.node_pools, looked_at(world, nodePools=both))


def test_spot_has_a_quota_of_its_own(world: World) -> None:
    world.azure.quotas["lowPriorityCores"] = 10
    pool = pool_of("Standard_D2s_v5", kinds=("spot",), limits={"cpu": 12})
    assert "use lowPriorityCores admit 12 vCPUs" in one(quotas.node_pools, looked_at(world, nodePools=pool)).what
    either = pool_of("Standard_D2s_v5", kinds=("spot", "on-demand"), limits={"cpu": 12})
    assert not found(quotas.node_pools, looked_at(world, nodePools=either))


def test_a_node_pool_without_a_limit(world: World) -> None:
    finding = one(quotas.node_pools, looked_at(world, nodePools=pool_of("Standard_D2s_v5")))
    assert "any number of vCPUs" in finding.what


@pytest.mark.parametrize("name", ["LoadBalancers", "PublicIPAddresses", "VirtualNetworks"])
def test_no_room_in_the_network(world: World, name: str) -> None:
    world.cluster()
    world.network("other")
    world.azure.network_limits[name] = 1
    assert one(quotas.network, looked_at(world)).severity == "error"
    assert not found(quotas.network, looked_at(world, state=UP))


# Names and ranges


def test_a_resource_group_that_somebody_else_has(world: World) -> None:
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    assert one(names.resource_group, looked_at(world)).severity == "error"
    mine = made((GROUP_TYPE, GROUP.replace("resourceGroups", "resourcegroups")))
    assert not found(names.resource_group, looked_at(world, state=mine))
    assert not found(names.resource_group, looked_at(world, name="another"))


def test_a_node_resource_group_that_is_there(world: World) -> None:
    world.arm.put(NODES, GROUPS, {"location": REGION})
    assert one(names.node_resource_group, looked_at(world)).severity == "error"
    assert not found(names.node_resource_group, looked_at(world, state=UP))
    with pytest.raises(ArmError, match="NodeResourceGroupAlreadyExists"):
        world.cluster(world.cluster_body(nodeResourceGroup="karpstack-aks-nodes"))


def test_what_a_broken_off_up_left(world: World) -> None:
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    identity = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/karpstack-aks-cluster"
    world.arm.put(identity, "2023-01-31", {"location": REGION})
    seen = looked_at(world, state=made((GROUP_TYPE, GROUP)))
    assert "userAssignedIdentities karpstack-aks-cluster is there already" in one(names.in_the_group, seen).what
    known = made((GROUP_TYPE, GROUP), ("azure-native:managedidentity:UserAssignedIdentity", identity))
    assert not found(names.in_the_group, looked_at(world, state=known))
    assert not found(names.in_the_group, looked_at(world))


def test_networks_that_cannot_be_peered(world: World) -> None:
    world.network()  # 10.1.0.0/16
    assert not found(network.ranges, looked_at(world))
    seen = looked_at(world, network__vnetCidr="10.1.0.0/16", network__subnetCidr="10.1.0.0/20")
    finding = one(network.ranges, seen)
    assert (finding.severity, finding.what.endswith("overlaps the network net")) == ("note", True)


def existing(world: World, subnet: str, **changes: Any) -> Any:
    own = {"network__vnetCidr": "10.1.0.0/16", "network__subnetCidr": None, **changes}
    return looked_at(world, network__subnetId=subnet, **own)


def test_an_existing_subnet_that_fits(world: World) -> None:
    assert not found(network.subnet, existing(world, world.subnet()))


def test_a_subnet_that_is_not_there(world: World) -> None:
    subnet = world.subnet()
    assert "there is no subnet nodesx" in one(network.subnet, existing(world, f"{subnet}x")).consequence
    missing = one(network.subnet, existing(world, subnet.replace("/net/", "/gone/")))
    assert "there is no network" in missing.consequence


@pytest.mark.parametrize(("prefix", "severity"), [(29, "error"), (28, None)])
def test_a_subnet_that_is_too_small(world: World, prefix: int, severity: str | None) -> None:
    subnet = world.network("net", ("nodes", f"10.1.0.0/{prefix}"))["properties"]["subnets"][0]["id"]
    said = found(network.subnet, existing(world, subnet, systemNodes__count=4))
    assert [one for one, _ in said] == ([severity] if severity else [])


SQL = {"name": "sql", "properties": {"serviceName": "Microsoft.Sql/managedInstances"}}


def test_a_delegated_subnet(world: World) -> None:
    subnet = world.subnet()
    properties = {"addressPrefix": "10.1.0.0/24", "delegations": [SQL]}
    world.arm.put(subnet, NETWORK, {"properties": properties})
    assert "is delegated to Microsoft.Sql/managedInstances" in one(network.subnet, existing(world, subnet)).what


@pytest.mark.parametrize("key", ["podCidr", "serviceCidr"])
def test_ranges_that_are_the_networks(world: World, key: str) -> None:
    subnet = world.subnet()
    # The stack's file says another range than the network has.
    changes: dict[str, Any] = {"network__vnetCidr": "10.9.0.0/16", f"network__{key}": "10.1.0.0/16"}
    said = found(network.subnet, existing(world, subnet, **changes))
    assert [severity for severity, _ in said] == ["error", "warning"]
    assert said[0][1] == f'karpstack:network.{key} = "10.1.0.0/16" overlaps 10.1.0.0/16 of the network'


def test_a_range_that_is_a_peers(world: World) -> None:
    subnet = world.subnet()
    peering = {"name": "hub", "properties": {"remoteAddressSpace": {"addressPrefixes": ["10.244.128.0/17"]}}}
    space = {"addressPrefixes": ["10.1.0.0/16"]}
    world.arm.put(
        subnet.rpartition("/subnets/")[0],
        NETWORK,
        {"location": REGION, "properties": {"addressSpace": space, "virtualNetworkPeerings": [peering]}},
    )
    finding = one(network.subnet, existing(world, subnet))
    assert (finding.severity, "peered (hub)" in finding.what) == ("warning", True)


def test_an_api_version_that_azure_does_not_know_is_no_answer(world: World) -> None:
    with pytest.raises(NotAskedError, match="InvalidApiVersionParameter"):
        asked(world).ask("Microsoft.Compute/skus/read", f"{SCOPE}/providers/Microsoft.Compute/skus", "2000-01-01")


def test_a_cluster_of_the_stacks_own_is_not_in_its_way(world: World) -> None:
    world.arm.put(GROUP, GROUPS, {"location": REGION})
    cluster = UP_CLUSTER.format(group=GROUP)
    world.arm.put(cluster, AKS, world.cluster_body(nodeResourceGroup="karpstack-aks-nodes"))
    assert in_the_way(run(CHECKS, looked_at(world, state=UP))) == []


UP_CLUSTER = "{group}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks"
