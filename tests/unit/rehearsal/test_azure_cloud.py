"""The cloud as a cluster sees it, and the wire: tunnel, tokens, paths and long-running operations over real sockets."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from rehearsal.azure.arm.operations import Durations
from rehearsal.azure.cloud import CLIENT_ANNOTATION, USE_LABEL, AzureCloud
from rehearsal.azure.identity import roles
from rehearsal.azure.identity.entra import TENANT_ID
from rehearsal.azure.machines.bootstrap import Bootstrap
from rehearsal.cluster.cloud import ControllerIdentityError
from tests.unit.rehearsal.azure_world import (
    AKS,
    CLUSTER,
    COMPUTE,
    SCOPE,
    FakeCluster,
    World,
    assertion,
    form,
    machine_id,
    script,
)

NODE_GROUP = f"{SCOPE}/resourceGroups/MC_demo_demo_westus2"
LABELS, ANNOTATIONS = {USE_LABEL: "true"}, {CLIENT_ANNOTATION: "client"}


class Running:
    """A cluster that runs in a subscription on the wire."""

    def __init__(self, folder: Path, durations: Durations | None = None) -> None:
        self.world = World(durations)
        self.azure = self.world.azure
        self.cluster = self.world.cluster()
        self.fqdn: str = self.cluster["properties"]["fqdn"]
        self.issuer: str = self.cluster["properties"]["oidcIssuerProfile"]["issuerURL"]
        self.cloud: AzureCloud = self.azure.cloud(CLUSTER)
        self.control_plane = FakeCluster(folder)
        self.cloud.bind(self.control_plane)  # type: ignore[arg-type]
        self.azure.start(folder / "azure")

    def node(self, custom_data: str = "", **changes: Any) -> str:
        body = self.world.machine_body(self.world.interface(self.world.subnet())["id"], **changes)
        body["properties"]["osProfile"]["customData"] = custom_data or script(self.fqdn)
        id = str(self.world.arm.put(machine_id(group=NODE_GROUP), COMPUTE, body)["id"])
        return f"azure://{id}"

    def call(
        self, method: str, host: str, target: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        proxy = urlsplit(self.azure.proxy)
        context = ssl.create_default_context(cafile=str(self.azure.authority))
        connection = http.client.HTTPSConnection(str(proxy.hostname), proxy.port, context=context, timeout=10)
        connection.set_tunnel(host, 443)
        try:
            data = body if isinstance(body, str) else None if body is None else json.dumps(body)
            connection.request(method, quote(target, safe="/?=&%$"), data, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None, dict(answer.getheaders())
        finally:
            connection.close()

    def token(self, *granted: roles.Role) -> str:
        identity = self.world.identity()
        self.world.credential(identity["id"], self.issuer)
        for role in granted:
            self.world.grant(NODE_GROUP, identity["properties"]["principalId"], role)
        fields = urlencode(form(identity["properties"]["clientId"], assertion(self.issuer)))
        status, answer, _ = self.call("POST", "login.microsoftonline.com", f"/{TENANT_ID}/oauth2/v2.0/token", fields)
        assert status == 200
        return f"Bearer {answer['access_token']}"

    def arm(
        self, method: str, path: str, token: str, body: Any = None, version: str = COMPUTE
    ) -> tuple[int, Any, dict[str, str]]:
        separator = "&" if "?" in path else "?"
        return self.call(
            method, "management.azure.com", f"{path}{separator}api-version={version}", body, Authorization=token
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path)
    yield found
    found.azure.stop()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Host": "management.azure.com:443"}, 401),
        ({"Host": "login.microsoftonline.com"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "https://portal.azure.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": str(2**40)}, 413),
    ],
)
def test_in_the_tunnel_a_request_is_guarded_too(running: Running, headers: dict[str, str], status: int) -> None:
    found, answer, _ = running.call("GET", "management.azure.com", "/subscriptions", None, **headers)
    assert (found, "error" in answer) == (status, True)


def test_a_machine_registers_as_its_script_says(running: Running) -> None:
    machine = running.cloud.machine(running.node())
    assert machine is not None
    assert (machine.refusal, machine.kubelet_version, machine.node_name) == ("", "v1.36.3", "aks-one")
    assert machine.labels["karpenter.sh/nodepool"] == "default"
    assert machine.labels["topology.kubernetes.io/zone"] == "westus2-1"
    assert machine.labels["node.kubernetes.io/instance-type"] == "Standard_D2s_v5"


@pytest.mark.parametrize(
    ("custom_data", "text"),
    [
        ("bm90aGluZw==", "no AKS bootstrap script"),
        (script("other.hcp.westus2.azmk8s.io"), "CLUSTER_ENDPOINT"),
    ],
)
def test_a_machine_that_could_not_join_says_why(running: Running, custom_data: str, text: str) -> None:
    machine = running.cloud.machine(running.node(custom_data))
    assert machine is not None
    assert text in machine.refusal


def test_a_machine_whose_token_opens_nothing_does_not_join(running: Running) -> None:
    running.control_plane.bootstrap_tokens.clear()
    machine = running.cloud.machine(running.node())
    assert machine is not None
    assert "the VM aks-one is not let in with its bootstrap token abcdef: Unauthorized" in machine.refusal


def test_the_cluster_is_not_asked_whether_there_is_a_machine(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is asked of each node all the time, and a hundred of them would keep the API server busy."""
    provider_id = running.node()
    monkeypatch.delattr(FakeCluster, "refused_bootstrap")
    with pytest.raises(AttributeError):
        running.cloud.machine(provider_id)
    assert running.cloud.has_machine(provider_id)


def test_a_machine_that_is_gone_is_none(running: Running) -> None:
    provider_id = running.node()
    assert running.cloud.has_machine(provider_id)
    running.world.arm.delete(provider_id.removeprefix("azure://"), COMPUTE)
    assert running.cloud.machine(provider_id) is None
    assert not running.cloud.has_machine(provider_id)


def test_agent_pools_are_machines_too(running: Running) -> None:
    machines = running.cloud.agent_pool("system")
    assert [machine.labels["topology.kubernetes.io/zone"] for machine in machines] == ["westus2-1", "westus2-2"]
    assert machines[0].allocatable["cpu"] == "1900m"
    assert running.cloud.machine(machines[1].provider_id) == machines[1]
    assert running.cloud.has_machine(machines[1].provider_id)
    running.world.arm.delete(CLUSTER, AKS)
    assert running.cloud.machine(machines[1].provider_id) is None
    assert not running.cloud.has_machine(machines[1].provider_id)


def test_the_webhook_adds_an_identity(running: Running, tmp_path: Path) -> None:
    found = running.cloud.controller_environment("kube-system", "karpenter-sa", ANNOTATIONS, tmp_path, LABELS)
    assert (found["AZURE_CLIENT_ID"], found["AZURE_TENANT_ID"]) == ("client", TENANT_ID)
    token = Path(found["AZURE_FEDERATED_TOKEN_FILE"])
    assert token.read_text() == "token of kube-system/karpenter-sa for api://AzureADTokenExchange"
    assert token.stat().st_mode & 0o077 == 0
    assert found["HTTPS_PROXY"] == running.azure.proxy


@pytest.mark.parametrize(
    ("annotations", "labels", "text"),
    [
        ({}, LABELS, CLIENT_ANNOTATION),
        (ANNOTATIONS, {}, USE_LABEL),
        (ANNOTATIONS, None, USE_LABEL),
        (ANNOTATIONS, {USE_LABEL: "yes"}, USE_LABEL),
    ],
)
def test_the_webhook_adds_nothing(
    running: Running, tmp_path: Path, annotations: dict[str, str], labels: dict[str, str] | None, text: str
) -> None:
    with pytest.raises(ControllerIdentityError, match=text):
        running.cloud.controller_environment("kube-system", "karpenter-sa", annotations, tmp_path, labels)


def test_without_workload_identity_there_is_no_webhook(running: Running, tmp_path: Path) -> None:
    running.world.cluster(running.world.cluster_body(securityProfile={}))
    with pytest.raises(ControllerIdentityError, match="workload identity disabled"):
        running.cloud.controller_environment("kube-system", "karpenter-sa", ANNOTATIONS, tmp_path, LABELS)


def test_bootstrap_scripts_are_read() -> None:
    found = Bootstrap.read(script("x.hcp.westus2.azmk8s.io"))
    assert found is not None
    assert (found.api_server, found.kubernetes_version) == ("x.hcp.westus2.azmk8s.io", "1.36.3")
    assert Bootstrap.read("///") is None


def test_nobody_gets_out(running: Running) -> None:
    with pytest.raises(OSError, match="403"):
        running.call("GET", "example.com", "/")
    assert running.azure.refused_hosts == ["example.com:443"]


def test_arm_wants_a_token(running: Running) -> None:
    status, body, _ = running.call("GET", "management.azure.com", f"{SCOPE}?api-version=x")
    assert (status, body["error"]["code"]) == (401, "AuthenticationFailed")
    status, body, _ = running.arm("GET", SCOPE, "Bearer nonsense")
    assert (status, body["error"]["code"]) == (401, "InvalidAuthenticationToken")


def test_a_token_opens_what_its_roles_allow(running: Running) -> None:
    token = running.token(roles.NETWORK_CONTRIBUTOR)
    path = f"{NODE_GROUP}/providers/Microsoft.Network/networkSecurityGroups"
    status, body, _ = running.arm("GET", path, token, version="2022-01-01")
    assert (status, len(body["value"])) == (200, 1)
    status, body, _ = running.arm("PUT", machine_id(group=NODE_GROUP), token, {"location": "westus2"})
    assert (status, body["error"]["code"]) == (403, "AuthorizationFailed")


def test_the_catalogue_needs_a_role_in_the_subscription(running: Running) -> None:
    without = running.token()
    skus = f"{SCOPE}/providers/Microsoft.Compute/skus"
    status, body, _ = running.arm("GET", skus, without, version="2021-07-01")
    assert (status, body["error"]["code"]) == (403, "AuthorizationFailed")
    principal = running.world.identity()["properties"]["principalId"]
    running.world.grant(NODE_GROUP, principal, roles.READER)
    status, body, _ = running.arm("GET", f"{skus}?$filter=location eq 'westus2'", without, version="2021-07-01")
    assert status == 200
    assert len(body["value"]) > 300


def test_machines_are_made_and_found_over_the_wire(tmp_path: Path) -> None:
    running = Running(tmp_path, Durations(0, 0, 0.2, 0.2))
    try:
        token = running.token(roles.VIRTUAL_MACHINE_CONTRIBUTOR, roles.NETWORK_CONTRIBUTOR)
        subnet = running.world.subnet()
        principal = running.world.identity()["properties"]["principalId"]
        running.world.grant(subnet, principal, roles.NETWORK_CONTRIBUTOR)
        nic = f"{NODE_GROUP}/providers/Microsoft.Network/networkInterfaces/aks-one"
        interface = {
            "location": "westus2",
            "tags": {"karpenter.sh_nodepool": "default"},
            "properties": {"ipConfigurations": [{"name": "a", "properties": {"subnet": {"id": subnet}}}]},
        }
        assert running.arm("PUT", nic, token, interface, "2022-01-01")[0] == 201
        status, body, headers = running.arm("PUT", machine_id(group=NODE_GROUP), token, running.world.machine_body(nic))
        assert (status, body["properties"]["provisioningState"]) == (201, "Creating")
        operation = headers["Azure-AsyncOperation"].removeprefix("https://management.azure.com").split("?")[0]
        assert running.arm("GET", operation, token)[1]["status"] == "InProgress"
        running.azure._context.operations._closed.wait(0.3)
        assert running.arm("GET", operation, token)[1]["status"] == "Succeeded"
        query = (
            'Resources | where type == "microsoft.compute/virtualmachines" '
            '| where resourceGroup == "mc_demo_demo_westus2" '
            '| where tags has_cs "karpenter.sh_nodepool" '
            '| where not(tags has_cs "karpenter.azure.com_aksmachine_nodeclaim")'
        )
        status, body, _ = running.arm(
            "POST", "/providers/Microsoft.ResourceGraph/resources", token, {"query": query}, "2020-09-01-preview"
        )
        assert [row["name"] for row in body["data"]] == ["aks-one"]
        assert running.arm("DELETE", machine_id(group=NODE_GROUP), token)[0] == 202
    finally:
        running.azure.stop()


def test_resource_graph_refuses_what_it_does_not_know(running: Running) -> None:
    token = running.token(roles.READER)
    status, body, _ = running.arm(
        "POST",
        "/providers/Microsoft.ResourceGraph/resources",
        token,
        {"query": "Resources | where location == 'x'"},
        "2020-09-01-preview",
    )
    assert (status, body["error"]["code"]) == (400, "InvalidQuery")


def test_the_managed_identity_endpoint_wants_the_secret(running: Running) -> None:
    environment = running.cloud.provisioning_environment("abcdef.0123456789abcdef", "ssh-ed25519 x")
    url = urlsplit(environment["IDENTITY_ENDPOINT"])
    for secret, status in ((environment["IDENTITY_HEADER"], 200), ("nonsense", 400)):
        connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=10)
        connection.request(
            "GET",
            f"{url.path}?api-version=2019-08-01&resource=https://management.azure.com",
            headers={"X-IDENTITY-HEADER": secret},
        )
        assert connection.getresponse().status == status
        connection.close()


def test_kubeconfigs_come_from_the_running_cluster(running: Running) -> None:
    answer = running.world.arm.post(CLUSTER, "listClusterUserCredential", AKS)
    assert base64.b64decode(answer["kubeconfigs"][0]["value"]) == b"apiVersion: v1\n"
