"""The simulated Azure subscription, call by call, as azure_steps.yaml lists it."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote, urlencode, urlsplit

import pytest

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import ArmError
from karpstack.rehearsal.azure.arm.faults import Fault
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, within
from karpstack.rehearsal.azure.arm.operations import Durations
from karpstack.rehearsal.azure.arm.rows import ROWS, latest
from karpstack.rehearsal.azure.clusters import http_proxy
from karpstack.rehearsal.azure.clusters.provisioning import default_manifests
from karpstack.rehearsal.azure.control import AzureControl
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.entra import TENANT_ID, EntraError, Principal
from karpstack.rehearsal.azure.monitor.workspaces import DELETED_TYPE
from karpstack.rehearsal.azure.network.networks import SCALE_SET_TYPE
from karpstack.rehearsal.azure.subscription import Subscription
from karpstack.rehearsal.azure.wire.routes import Routes
from karpstack.rehearsal.timing import Timing
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
    script,
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
        self.running, self.folder = FakeCluster(folder), folder

    def root(self, name: str) -> Any:
        """What the first part of a call names: something of this place, or of its world."""
        return getattr(self, name) if hasattr(self, name) else getattr(self.world, name)

    def known(self) -> dict[str, Any]:
        """What the rows name as `<...>`; an ID below one is written `<group>/providers/...`."""
        return {
            **{role.name: lambda role=role: role for role in roles.BUILT_IN.values()},
            **{"group": GROUP, "subscription": SCOPE, "cluster": CLUSTER, "nodes": NODES, "tenant": TENANT_ID},
            "script of another cluster": script("other.hcp.westus2.azmk8s.io"),
            "root": base64.b64encode(certificate().encode()).decode(),
            "deep": f"e30.{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.sig",
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

    # As a cluster and the wire see it.

    def run(self) -> None:
        """Let a control plane run, and put the subscription on the wire."""
        self.cloud = self.azure.cloud(CLUSTER)
        self.cloud.bind(self.running)  # type: ignore[arg-type]  # it is asked for tokens alone
        self.azure.start(self.folder / "azure")

    def node(self, custom_data: str = "") -> str:
        server = self.get(CLUSTER)["properties"]["fqdn"]
        return f"azure://{self.machine(group=NODES, custom_data=custom_data or script(server))['id']}"

    def seen(self, provider_id: str) -> dict[str, Any] | None:
        found = self.cloud.machine(provider_id)
        assert self.cloud.has_machine(provider_id) == (found is not None)
        return asdict(found) if found else None

    def pool(self, name: str) -> Any:
        return [asdict(machine) for machine in self.cloud.agent_pool(name)]

    def environment(self, annotations: dict[str, str], labels: dict[str, str] | None = None) -> dict[str, str]:
        """The controller's, with what is in its token file and that file's mode."""
        given = self.cloud.controller_environment("kube-system", "karpenter-sa", annotations, self.folder, labels)
        token = Path(given["AZURE_FEDERATED_TOKEN_FILE"])
        return given | {"AZURE_FEDERATED_TOKEN_FILE": token.read_text(), "mode": oct(token.stat().st_mode & 0o777)}

    def call(
        self, target: str, method: str = "GET", host: str = "management.azure.com", body: Any = None, **headers: str
    ) -> dict[str, Any]:
        """A request through the proxy's tunnel, as its clients make it."""
        proxy = urlsplit(self.azure.proxy)
        context = ssl.create_default_context(cafile=str(self.azure.authority))
        connection = http.client.HTTPSConnection(str(proxy.hostname), proxy.port, context=context, timeout=10)
        connection.set_tunnel(host, 443)
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        with closing(connection):
            kind = {} if data is None else {"Content-Type": "application/json"}
            connection.request(method, quote(_named(target), safe="/?=&%$"), data, kind | headers)
            answer = connection.getresponse()
            text = answer.read()
            return {
                "status": answer.status,
                "body": json.loads(text) if text else None,
                "operation": answer.headers.get("Azure-AsyncOperation", ""),
            }

    def token(self, *granted: roles.Role) -> str:
        """One that the controller's pod gets on the wire, with roles in the nodes' resource group."""
        identity = self.world.identity()
        issuer = self.get(CLUSTER)["properties"]["oidcIssuerProfile"]["issuerURL"]
        self.world.credential(identity["id"], issuer)
        for role in granted:
            self.world.grant(NODES, identity["properties"]["principalId"], role)
        fields = urlencode(form(identity["properties"]["clientId"], assertion(issuer)))
        path = f"/{TENANT_ID}/oauth2/v2.0/token"
        answer = self.call(path, "POST", "login.microsoftonline.com", fields)
        return f"Bearer {answer['body']['access_token']}"

    def managed_identity(self, secret: str = "") -> int:
        environment = self.cloud.provisioning_environment("abcdef.0123456789abcdef", "ssh-ed25519 x")
        url = urlsplit(environment["IDENTITY_ENDPOINT"])
        connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=10)
        with closing(connection):
            path = f"{url.path}?api-version=2019-08-01&resource=https://management.azure.com"
            connection.request("GET", path, headers={"X-IDENTITY-HEADER": secret or environment["IDENTITY_HEADER"]})
            return connection.getresponse().status


def _id(at: str) -> str:
    at = _named(at)
    return at if at.startswith("/") else f"{GROUP}/providers/{at}"


def _named(at: str) -> str:
    for name, value in {"<group>": GROUP, "<subscription>": SCOPE, "<cluster>": CLUSTER, "<nodes>": NODES}.items():
        at = at.replace(name, value)
    return at


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.azure.stop()


@pytest.mark.parametrize("rows", cases("azure_steps.yaml"))
def test_each_call_is_answered_as_azure_answers_it(place: Place, rows: list[Row]) -> None:
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


def test_machines_are_made_and_found_over_the_wire(place: Place) -> None:
    place.azure._context.durations = Durations(0, 0, 0.2, 0.2)
    place.cluster()
    place.run()
    token = place.token(roles.VIRTUAL_MACHINE_CONTRIBUTOR, roles.NETWORK_CONTRIBUTOR)
    subnet, identity = place.world.subnet(), place.world.identity()
    place.join(identity, subnet)

    def ask(method: str, path: str, body: Any = None, version: str = COMPUTE) -> dict[str, Any]:
        return place.call(f"{path}?api-version={version}", method, body=body, Authorization=token)

    nic = f"{NODES}/providers/Microsoft.Network/networkInterfaces/aks-one"
    properties = {"ipConfigurations": [{"name": "a", "properties": {"subnet": {"id": subnet}}}]}
    interface = {"location": REGION, "tags": {"karpenter.sh_nodepool": "default"}, "properties": properties}
    assert ask("PUT", nic, interface, "2022-01-01")["status"] == 201
    made = ask("PUT", machine_id(group=NODES), place.world.machine_body(nic))
    assert (made["status"], made["body"]["properties"]["provisioningState"]) == (201, "Creating")
    operation = made["operation"].removeprefix("https://management.azure.com").split("?")[0]
    assert ask("GET", operation)["body"]["status"] == "InProgress"
    clock.sleep(0.3)
    assert ask("GET", operation)["body"]["status"] == "Succeeded"
    query = (
        'Resources | where type == "microsoft.compute/virtualmachines" '
        '| where resourceGroup == "mc_demo_demo_westus2" | where tags has_cs "karpenter.sh_nodepool" '
        '| where not(tags has_cs "karpenter.azure.com_aksmachine_nodeclaim")'
    )
    found = ask("POST", "/providers/Microsoft.ResourceGraph/resources", {"query": query}, "2020-09-01-preview")
    assert [row["name"] for row in found["body"]["data"]] == ["aks-one"]
    assert ask("DELETE", machine_id(group=NODES))["status"] == 202


def test_a_failure_of_ours_is_an_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("of a test")

    place.cluster()
    place.run()
    monkeypatch.setattr(Routes, "answer", fail)
    answer = place.call("/subscriptions")
    assert (answer["status"], answer["body"]["error"]["code"]) == (500, "InternalServerError")
    assert "logs/daemon.log" in answer["body"]["error"]["message"]


def test_the_cluster_is_not_asked_whether_there_is_a_machine(place: Place) -> None:
    """That is asked of each node all the time, and a hundred of them would keep the API server busy."""
    place.cluster()
    place.run()
    provider_id = place.node()
    with mock.patch.object(place.running, "refused_bootstrap", side_effect=AttributeError):
        with pytest.raises(AttributeError):
            place.cloud.machine(provider_id)
        assert place.cloud.has_machine(provider_id)


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
    assert http_proxy.request_from_response({**answer, "effectiveNoProxy": ["a"]}) == wanted
    assert http_proxy.request_from_response(answer | {"enabled": False}) == {}
