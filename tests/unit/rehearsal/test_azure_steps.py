"""The simulated Azure subscription, call by call, as azure_steps.yaml lists it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from karpenter import clock
from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.faults import Fault
from rehearsal.azure.arm.identifiers import ResourceId, within
from rehearsal.azure.arm.operations import Durations
from rehearsal.azure.arm.rows import ROWS, latest
from rehearsal.azure.clusters import http_proxy
from rehearsal.azure.clusters.provisioning import default_manifests
from rehearsal.azure.control import AzureControl
from rehearsal.azure.identity import roles
from rehearsal.azure.identity.entra import TENANT_ID, EntraError, Principal
from rehearsal.azure.monitor.workspaces import DELETED_TYPE
from rehearsal.azure.network.networks import SCALE_SET_TYPE
from rehearsal.azure.subscription import Subscription
from rehearsal.timing import Timing
from tests.unit.made_certificates import certificate
from tests.unit.rehearsal.azure_world import (
    AKS,
    CLUSTER,
    COMPUTE,
    GROUP,
    IMAGE,
    NETWORK,
    REGION,
    SCOPE,
    SUBJECT,
    Body,
    FakeCluster,
    World,
    assertion,
    form,
    machine_id,
)
from tests.unit.rehearsal.steps import Row, Steps, cases

ISSUER = "https://westus2.oic.prod-aks.azure.com/tenant/guid/"
NODES = f"{SCOPE}/resourceGroups/MC_demo_demo_westus2"


class Place:
    """A subscription, and what the rows call beside what its world has."""

    def __init__(self, folder: Path) -> None:
        self.world = World()
        self.azure, self.arm = self.world.azure, self.world.arm
        self.control = AzureControl(self.azure)
        self.running = FakeCluster(folder)

    def root(self, name: str) -> Any:
        """What the first part of a call names: something of this place, or of its world."""
        return getattr(self, name) if hasattr(self, name) else getattr(self.world, name)

    def known(self) -> dict[str, Any]:
        """What the rows name as `<...>`; an ID below one is written `<group>/providers/...`."""
        return {
            **{role.name: lambda role=role: role for role in roles.BUILT_IN.values()},
            **{"group": GROUP, "subscription": SCOPE, "cluster": CLUSTER, "nodes": NODES, "tenant": TENANT_ID},
            "root": base64.b64encode(certificate().encode()).decode(),
        }

    # Azure Resource Manager.

    def put(self, at: str, caller: str = "", version: str = "", **body: Any) -> Body:
        identifier = _id(at)
        row = ROWS[ResourceId.parse(identifier).type]
        wanted = {"location": row.location or REGION, **body}
        if caller:
            return self.arm.begin_put(identifier, version or latest(row.type), wanted, caller).body
        return self.arm.put(identifier, version or latest(row.type), wanted)

    def get(self, at: str) -> Body:
        return self.arm.get(_id(at), self._version(_id(at)))

    def delete(self, at: str) -> None:
        self.arm.delete(_id(at), self._version(_id(at)))

    def list(self, at: str) -> Any:
        return self.arm.list(_id(at), self._version(f"{_id(at)}/any"))

    def patch(self, at: str, **body: Any) -> Body:
        return self.arm.patch(_id(at), self._version(_id(at)), body)

    def post(self, at: str, action: str) -> Body:
        return self.arm.post(_id(at), action, self._version(_id(at)))

    @staticmethod
    def _version(identifier: str) -> str:
        kind = ResourceId.parse(identifier).type.lower()
        return next(row.versions[-1] for row in ROWS.values() if row.type.lower() == kind)

    def cluster(
        self,
        identity: Body | None = None,
        subnet: str = "",
        caller: str = "",
        version: str = AKS,
        tags: Any = None,
        **changes: Any,
    ) -> Body:
        named = {path.replace(".", "__"): value for path, value in changes.items()}
        body = {**self.world.cluster_body(identity, subnet, **named), **({"tags": tags} if tags else {})}
        if caller:
            return self.arm.begin_put(CLUSTER, version, body, caller).body
        return self.arm.put(CLUSTER, version, body)

    def machine(
        self,
        nic: str = "",
        name: str = "aks-one",
        group: str = GROUP,
        caller: str = "",
        zone: str = "1",
        image: str = "",
        disk: str = "",
        custom_data: str = "",
        size: str = "Standard_D2s_v5",
        **changes: Any,
    ) -> Body:
        body = self.world.machine_body(nic or self.world.interface(self.world.subnet())["id"], size, **changes)
        storage = body["properties"]["storageProfile"]
        if image:
            storage["imageReference"]["communityGalleryImageId"] = f"{IMAGE.rpartition('/')[0]}/{image}"
        storage["osDisk"] |= {"name": disk} if disk else {}
        body["properties"]["osProfile"] |= {"customData": custom_data} if custom_data else {}
        return self.put(machine_id(name, group), caller, **{**body, "zones": [zone]})

    def outcome(self, **options: Any) -> str:
        """Azure's code when one more machine is asked for; empty when it is made."""
        try:
            self.machine(**options)
        except ArmError as error:
            return error.code
        finally:
            self.arm.delete(machine_id(), COMPUTE)
        return ""

    def throttled(self, times: int, method: str) -> None:
        self.azure.faults.inject(Fault.throttled(times, method))

    def move_deleted(self, location: str) -> None:
        (kept,) = self.azure._context.store.of_type(DELETED_TYPE)
        kept.body["location"] = location

    def value(self, value: Any) -> Any:
        return value

    # Who may do what.

    def allows(self, principal: str, action: str, scope: str) -> bool:
        return self.arm.access.allows(principal, action, _id(scope))

    def allows_data(self, principal: str, action: str, scope: str) -> bool:
        return self.arm.access.allows_data(principal, action, _id(scope))

    def recorded(self) -> Any:
        """What is known of who asked for what, and how often; whoever deploys is not recorded."""
        found = self.azure.uses.recording.principals
        return [[one.name, use.question.action, use.count] for one in found for use in one.uses]

    def principal(self, object_id: str) -> str | None:
        found = self.azure.directory.principal(object_id)
        return found.name if found else None

    def somebody(self) -> str:
        added = self.azure.directory.add(Principal("00000000-0000-0000-0000-00000000000b", "User", "somebody"))
        return added.object_id

    def join(self, identity: Body, subnet: str) -> None:
        self.world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)

    def operate(self, identity: Body, other: str) -> None:
        self.world.grant(other, identity["properties"]["principalId"], roles.MANAGED_IDENTITY_OPERATOR)

    def node_identities(self) -> Any:
        """Those of the scale sets, which Karpenter's nodes have too."""
        (one,) = self.azure._context.store.of_type(SCALE_SET_TYPE)
        return [identity.rpartition("/")[2] for identity in one.body["identity"]["userAssignedIdentities"]]

    # Tokens of pods.

    def pod(self) -> None:
        identity = self.world.identity()
        self.azure.directory.trust(ISSUER, self.running)
        self.world.credential(identity["id"], ISSUER)

    def ask(
        self,
        issuer: str = ISSUER,
        subject: str = SUBJECT,
        audience: str = "api://AzureADTokenExchange",
        tenant: str = TENANT_ID,
        **changes: str,
    ) -> str:
        client = self.world.identity()["properties"]["clientId"]
        fields = form(client, assertion(issuer, subject, audience), **changes)
        return str(self.azure.directory.exchange(tenant, fields)["access_token"])

    def mend(self, **options: str) -> str:
        with pytest.raises(EntraError) as caught:
            self.ask(**options)
        assert "federatedIdentityCredentials" not in str(caught.value.body)
        assert caught.value.body["error_codes"] == [caught.value.number]
        return caught.value.mend

    def unvouched(self) -> None:
        self.running.subject = None

    def bearer(self, token: str) -> str | None:
        found = self.azure.directory.bearer(token)
        return found.name if found else None


def _id(at: str) -> str:
    for name, value in {"<group>": GROUP, "<subscription>": SCOPE, "<cluster>": CLUSTER, "<nodes>": NODES}.items():
        at = at.replace(name, value)
    return at if at.startswith("/") else f"{GROUP}/providers/{at}"


@pytest.mark.parametrize("rows", cases("azure_steps.yaml"))
def test_each_call_is_answered_as_azure_answers_it(tmp_path: Path, rows: list[Row]) -> None:
    place = Place(tmp_path)
    Steps(place.root, place.known()).run(rows)


# What takes its time.


def test_operations_take_their_time() -> None:
    world = World(Durations(0.2, 0, 0.3, 0.2))
    accepted = world.arm.begin_put(CLUSTER, AKS, world.cluster_body())
    assert accepted.body["properties"]["provisioningState"] == "Creating"
    with pytest.raises(ArmError, match="another operation"):
        world.cluster()
    assert accepted.operation is not None
    world.azure._context.operations.wait(accepted.operation)
    assert world.arm.get(CLUSTER, AKS)["properties"]["provisioningState"] == "Succeeded"
    world.machine(world.machine_body(world.interface(world.subnet())["id"]))
    begun = clock.monotonic()
    world.arm.delete(machine_id(), COMPUTE)
    assert clock.monotonic() - begun >= 0.2
    with pytest.raises(ArmError, match="ResourceNotFound"):
        world.arm.get(machine_id(), COMPUTE)


def test_stopping_ends_a_wait() -> None:
    world = World(Durations(0, 0, 60, 0))
    accepted = world.arm.begin_put(machine_id(), COMPUTE, world.machine_body(world.interface(world.subnet())["id"]))
    world.azure.stop()
    assert accepted.operation is not None
    with pytest.raises(RuntimeError, match="stopped"):
        world.azure._context.operations.wait(accepted.operation)


def test_a_failed_allocation_shows_at_the_end() -> None:
    world = World(Durations(0, 0, 0.1, 0))
    body = world.machine_body(world.interface(world.subnet())["id"])
    world.azure.faults.inject(Fault.allocation_failed(zone="1"))
    accepted = world.arm.begin_put(machine_id(), COMPUTE, body)
    assert accepted.operation is not None
    with pytest.raises(ArmError, match="ZonalAllocationFailed"):
        world.azure._context.operations.wait(accepted.operation)
    assert world.arm.get(machine_id(), COMPUTE)["properties"]["provisioningState"] == "Failed"
    world.arm.delete(machine_id(), COMPUTE)
    assert world.arm.list(f"{GROUP}/providers/Microsoft.Network/networkInterfaces", NETWORK) == []


def test_a_role_takes_effect_late() -> None:
    world = World(role_effective=0.3)
    subnet, identity = world.subnet(), world.identity("cluster")
    world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)
    with pytest.raises(ArmError, match="LinkedAuthorizationFailed"):
        world.cluster(world.cluster_body(identity, subnet))
    clock.sleep(0.3)
    world.cluster(world.cluster_body(identity, subnet))


# What no call shows.


def test_ids_are_taken_apart() -> None:
    net = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net"
    one = ResourceId.parse(f"{net}/subnets/nodes")
    assert (one.type, one.names, one.group) == ("Microsoft.Network/virtualNetworks/subnets", ("net", "nodes"), "demo")
    extension = ResourceId.parse(f"{net}/providers/Microsoft.Authorization/roleAssignments/x")
    assert (one.parent, extension.scope, extension.parent) == (net, net, net)
    assert extension.subscription == SCOPE.rsplit("/", 1)[-1]
    assert within(f"{net}/subnets/nodes", GROUP.upper())
    assert not within(f"{GROUP}2", GROUP)
    for text in ("", "net", "/subscriptions/x/resourceGroups", f"{GROUP}/providers/Microsoft.Network/virtualNetworks"):
        with pytest.raises(ArmError, match="LinkedInvalidPropertyId"):
            ResourceId.parse(text)


def test_an_unknown_price_region_is_refused() -> None:
    with pytest.raises(ValueError, match="no Azure region 'moon'"):
        Subscription("moon", {REGION: {}}, Timing())


def test_the_default_pools_are_those_of_aks() -> None:
    manifests = default_manifests()
    pools = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests if one["kind"] == "NodePool"}
    assert set(pools) == {"default", "system-surge"}
    assert {pool["nodeClassRef"]["name"] for pool in pools.values()} == {"default"}
    assert {one["spec"]["imageFamily"] for one in manifests if one["kind"] == "AKSNodeClass"} == {"Ubuntu"}
    assert [taint["key"] for taint in pools["system-surge"]["taints"]] == ["CriticalAddonsOnly"]


def test_a_proxy_that_was_answered_is_asked_for_again() -> None:
    answer = {"enabled": True, "httpProxy": "http://p:1", "httpsProxy": "http://q:1/", "noProxy": ["a"]}
    wanted = {"httpProxy": "http://p:1/", "httpsProxy": "http://q:1/", "noProxy": ["a"]}
    assert http_proxy.asked_for({**answer, "effectiveNoProxy": ["a"]}) == wanted
    assert http_proxy.asked_for(answer | {"enabled": False}) == {}
