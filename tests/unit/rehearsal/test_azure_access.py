"""Role assignments, authorisation, and tokens for service accounts; each precondition is broken once."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.identity import roles
from rehearsal.azure.identity.access import Access
from rehearsal.azure.identity.entra import DEPLOYER, TENANT_ID, EntraError
from tests.unit.rehearsal.azure_world import (
    COMPUTE,
    GROUP,
    NETWORK,
    ROLES,
    SCOPE,
    SUBJECT,
    FakeCluster,
    World,
    assertion,
    form,
    machine_id,
)

ISSUER = "https://westus2.oic.prod-aks.azure.com/tenant/guid/"


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        (roles.VIRTUAL_MACHINE_CONTRIBUTOR, "Microsoft.Compute/virtualMachines/write", True),
        (roles.VIRTUAL_MACHINE_CONTRIBUTOR, "Microsoft.Network/networkInterfaces/join/action", True),
        (roles.VIRTUAL_MACHINE_CONTRIBUTOR, "Microsoft.Network/virtualNetworks/write", False),
        (roles.NETWORK_CONTRIBUTOR, "Microsoft.Network/virtualNetworks/subnets/join/action", True),
        (roles.NETWORK_CONTRIBUTOR, "Microsoft.Compute/virtualMachines/read", False),
        (roles.MANAGED_IDENTITY_OPERATOR, "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", True),
        (roles.MANAGED_IDENTITY_OPERATOR, "Microsoft.ManagedIdentity/userAssignedIdentities/write", False),
        (roles.CONTRIBUTOR, "Microsoft.Authorization/roleAssignments/write", False),
        (roles.CONTRIBUTOR, "Microsoft.Compute/virtualMachines/delete", True),
        (roles.READER, "microsoft.network/virtualnetworks/READ", True),
        (roles.READER, "Microsoft.Network/virtualNetworks/write", False),
    ],
)
def test_roles_allow_what_azure_documents(role: roles.Role, action: str, allowed: bool) -> None:
    assert role.allows(action) is allowed


def test_what_the_controller_asks_is_recorded_and_what_the_deployer_asks_is_not() -> None:
    world = World()
    principal = world.identity()["properties"]["principalId"]
    world.grant(GROUP, principal, roles.VIRTUAL_MACHINE_CONTRIBUTOR)
    for caller in ("", DEPLOYER, principal):
        world.arm.access.require(caller, "Microsoft.Compute/virtualMachines/write", machine_id())
    (recorded,) = world.azure.uses.recording.principals
    assert recorded.name == world.identity()["name"]
    assert [use.count for use in recorded.uses] == [1]


def test_a_role_counts_at_and_below_its_scope() -> None:
    world = World()
    principal = world.identity()["properties"]["principalId"]
    access = world.arm.access
    write = "Microsoft.Compute/virtualMachines/write"
    assert not access.allows(principal, write, machine_id())
    world.grant(GROUP, principal, roles.VIRTUAL_MACHINE_CONTRIBUTOR)
    assert access.allows(principal, write, machine_id())
    assert not access.allows(principal, write, machine_id(group=f"{GROUP}-other"))


def test_refusals_name_action_and_scope() -> None:
    world = World()
    identity = world.identity()["properties"]
    body = world.machine_body(world.interface(world.subnet())["id"])
    with pytest.raises(ArmError) as caught:
        world.arm.begin_put(machine_id(), COMPUTE, body, identity["principalId"])
    assert (caught.value.code, caught.value.status) == ("AuthorizationFailed", 403)
    for part in (
        "Microsoft.Compute/virtualMachines/write",
        machine_id(),
        identity["clientId"],
        identity["principalId"],
    ):
        assert part in caught.value.message


def test_linked_resources_need_a_right_of_their_own() -> None:
    world = World()
    principal = world.identity()["properties"]["principalId"]
    other = f"{SCOPE}/resourceGroups/nodes"
    world.arm.put(other, "2024-03-01", {"location": "westus2"})
    world.grant(other, principal, roles.NETWORK_CONTRIBUTOR)
    subnet = world.subnet()
    nic = f"{other}/providers/Microsoft.Network/networkInterfaces/nic"
    body = {
        "location": "westus2",
        "properties": {"ipConfigurations": [{"name": "a", "properties": {"subnet": {"id": subnet}}}]},
    }
    with pytest.raises(ArmError) as caught:
        world.arm.begin_put(nic, NETWORK, body, principal)
    assert caught.value.code == "LinkedAuthorizationFailed"
    assert "subnets/join/action" in caught.value.message
    world.grant(subnet, principal, roles.NETWORK_CONTRIBUTOR)
    world.arm.begin_put(nic, NETWORK, body, principal)


def test_an_assignment_is_made_once_and_kept() -> None:
    world = World()
    principal = world.identity()["properties"]["principalId"]
    name = str(uuid.uuid4())
    world.grant(GROUP, principal, roles.READER, name)
    world.grant(GROUP, principal, roles.READER, name)
    with pytest.raises(ArmError, match="RoleAssignmentExists"):
        world.grant(GROUP, principal, roles.READER)
    with pytest.raises(ArmError, match="RoleAssignmentUpdateNotPermitted"):
        world.grant(GROUP, principal, roles.OWNER, name)
    world.grant(SCOPE, principal, roles.READER)


def test_people_and_groups_are_believed() -> None:
    world = World()
    group = str(uuid.uuid4())
    assert (
        world.grant(GROUP, group, roles.AKS_RBAC_CLUSTER_ADMIN, kind="Group")["properties"]["principalType"] == "Group"
    )
    assert Access.allows_data(world.arm.access, group, "Microsoft.ContainerService/managedClusters/pods/read", GROUP)


def test_assignments_go_with_their_scope() -> None:
    world = World()
    principal = world.identity()["properties"]["principalId"]
    subnet = world.subnet()
    assignment = world.grant(subnet, principal, roles.READER)
    world.arm.delete(subnet, NETWORK)
    with pytest.raises(ArmError, match="ResourceNotFound"):
        world.arm.get(assignment["id"], ROLES)


class Pod:
    """A service account's pod that asks Entra for a token."""

    def __init__(self, folder: Path) -> None:
        self.world = World()
        self.identity = self.world.identity()
        self.cluster = FakeCluster(folder)
        self.world.azure.directory.trust(ISSUER, self.cluster)
        self.world.credential(self.identity["id"], ISSUER)

    def ask(self, token: str = "", tenant: str = TENANT_ID, client: str = "", **changes: str) -> str:
        client = client or self.identity["properties"]["clientId"]
        answer = self.world.azure.directory.exchange(tenant, form(client, token or assertion(ISSUER), **changes))
        return str(answer["access_token"])


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def test_a_matching_token_is_exchanged(pod: Pod) -> None:
    found = pod.world.azure.directory.bearer(pod.ask())
    assert found is not None
    assert found.object_id == pod.identity["properties"]["principalId"]
    assert pod.cluster.audiences == ["api://AzureADTokenExchange"]


@pytest.mark.parametrize(
    ("change", "number", "named"),
    [
        ({"token": assertion("https://other/")}, 700211, "issuer 'https://other/'"),
        ({"token": assertion(ISSUER.rstrip("/"))}, 700211, ISSUER.rstrip("/")),
        ({"token": assertion(ISSUER, f"{SUBJECT}-2")}, 700213, f"subject '{SUBJECT}-2'"),
        ({"token": assertion(ISSUER, audience="other")}, 700212, "audience 'other'"),
        ({"token": "nonsense"}, 50027, "malformed"),
        ({"tenant": str(uuid.uuid4())}, 90002, "Tenant"),
        ({"client": str(uuid.uuid4())}, 700016, "was not found in the directory"),
        ({"scope": "https://graph.microsoft.com/.default"}, 500011, "https://graph.microsoft.com"),
        ({"grant_type": "password"}, 70003, "password"),
        ({"client_assertion": ""}, 7000216, "client_assertion"),
    ],
)
def test_tokens_are_refused_as_entra_does(pod: Pod, change: dict[str, str], number: int, named: str) -> None:
    with pytest.raises(EntraError) as caught:
        pod.ask(**change)
    assert caught.value.number == number
    assert caught.value.body["error_codes"] == [number]
    assert named in caught.value.body["error_description"]


@pytest.mark.parametrize(
    "token", [assertion("https://other/"), assertion(ISSUER, "other"), assertion(ISSUER, audience="other")]
)
def test_a_refusal_names_the_credential_to_mend(pod: Pod, token: str) -> None:
    """Entra's own words name none; the rehearsal's log does."""
    with pytest.raises(EntraError) as caught:
        pod.ask(token)
    credential = f"{pod.identity['id']}/federatedIdentityCredentials/"
    assert credential in caught.value.mend
    assert f"the subject '{SUBJECT}'" in caught.value.mend
    assert credential not in str(caught.value.body)


def test_a_token_that_the_cluster_does_not_vouch_for_is_refused(pod: Pod) -> None:
    pod.cluster.subject = None
    with pytest.raises(EntraError, match="AADSTS50013"):
        pod.ask()


def test_an_identity_without_credentials_gets_none(pod: Pod) -> None:
    other = pod.world.identity("another")["properties"]["clientId"]
    with pytest.raises(EntraError, match="AADSTS70025"):
        pod.ask(client=other)


def test_a_token_ends_with_its_identity(pod: Pod) -> None:
    token = pod.ask()
    pod.world.arm.delete(pod.identity["id"], "2023-01-31")
    assert pod.world.azure.directory.bearer(token) is None
