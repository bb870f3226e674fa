"""Requests to the simulated Azure with bodies that are broken somewhere: done or refused, never a failure of ours."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import DataObject, data, sampled_from

from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.wire.routes import LOGIN_HOST, MANAGEMENT_HOST, HttpRequest, HttpResponse, Routes
from tests.mutations import mutations, within_limits
from tests.unit.rehearsal.azure_world import AKS, COMPUTE, GROUP, GROUPS, NETWORK, REGION, SCOPE, World, machine_id


class Wire:
    """A subscription whose ARM is asked as on the wire, by somebody who may do everything."""

    def __init__(self) -> None:
        self.world = World()
        subnet = self.world.subnet()
        identity = self.world.identity()
        principal = identity["properties"]["principalId"]
        self.world.grant(SCOPE, principal, roles.OWNER)
        found = self.world.azure.directory.principal(principal)
        assert found is not None
        self._token = self.world.azure.directory.issue(found)
        self._routes = Routes(self.world.azure._context, self.world.arm, lambda _: None)
        interface = self.world.interface(subnet)
        subnets = [{"name": "a", "properties": {"addressPrefix": "10.1.0.0/24"}}]
        network = {"location": REGION, "properties": {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}}}
        self.bodies: list[tuple[str, str, Any]] = [
            (GROUP, GROUPS, {"location": "West US 2", "tags": {"a": "b"}}),
            (f"{GROUP}/providers/Microsoft.Network/virtualNetworks/other", NETWORK, network | {"subnets": subnets}),
            (machine_id("aks-other"), COMPUTE, self.world.machine_body(interface["id"])),
            (
                f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/other",
                AKS,
                self.world.cluster_body(identity, subnet),
            ),
        ]

    def put(self, path: str, version: str, body: bytes) -> HttpResponse:
        return self._ask("PUT", path, version, body)

    def get(self, path: str, version: str) -> HttpResponse:
        return self._ask("GET", path, version)

    def _ask(self, method: str, path: str, version: str, body: bytes = b"") -> HttpResponse:
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json; charset=utf-8"}
        return self._routes.answer(HttpRequest(method, MANAGEMENT_HOST, f"{path}?api-version={version}", headers, body))

    def login(self, body: bytes) -> HttpResponse:
        return self._routes.answer(HttpRequest("POST", LOGIN_HOST, "/x/oauth2/v2.0/token", {}, body))


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


def test_the_bodies_are_right_before_they_are_broken() -> None:
    wire = Wire()
    statuses = [wire.put(path, version, json.dumps(body).encode()).status for path, version, body in wire.bodies]
    assert all(status < 300 for status in statuses), statuses


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(draw=data())
def test_a_broken_body_is_taken_or_refused(wire: Wire, draw: DataObject) -> None:
    path, version, body = draw.draw(sampled_from(wire.bodies))
    broken = json.dumps(draw.draw(mutations(body))).encode()
    with within_limits(broken):
        answer = wire.put(path, version, broken)
    assert answer.status < 500
    assert json.dumps(answer.body)


HUGE = [f'"k{number}": 1'.encode() for number in range(20_000)]
BODIES = {
    "half": b"{",
    "no UTF-8": b"\xff",
    "endless": b"[" * 100_000,
    "a list": b"[]",
    "a number": b"7",
    "deep": b'{"location": "westus2", "tags": ' + b'{"a": ' * 900 + b"1" + b"}" * 901,
    "no number": b'{"location": "westus2", "tags": {"a": NaN}}',
    "many values": b'{"location": "westus2", "tags": {' + b", ".join(HUGE) + b"}}",
    "a key twice": b'{"location": "westus2", "location": "eastus"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_no_object_is_refused(wire: Wire, body: bytes) -> None:
    answer = wire.put(GROUP, GROUPS, body)
    assert (answer.status, answer.body["error"]["code"]) == (400, "InvalidRequestContent")
    assert 400 <= wire.login(body).status < 500


def test_what_is_half_made_when_it_is_refused_is_not_kept(wire: Wire) -> None:
    path = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/half"
    properties = {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}, "subnets": [7]}
    assert wire.put(path, NETWORK, json.dumps({"location": REGION, "properties": properties}).encode()).status == 400
    assert wire.get(path, NETWORK).status == 404


def test_a_network_of_as_many_subnets_as_a_body_holds_is_answered_in_seconds(wire: Wire) -> None:
    """The subscription answers one request at a time."""
    prefixes = [f"10.{number // 256}.{number % 256}.0/24" for number in range(2_400)]
    subnets = [{"name": f"s{number}", "properties": {"addressPrefix": each}} for number, each in enumerate(prefixes)]
    properties = {"addressSpace": {"addressPrefixes": prefixes}, "subnets": subnets[:1_200]}
    body = json.dumps({"location": REGION, "properties": properties}).encode()
    started = time.process_time()
    assert wire.put(f"{GROUP}/providers/Microsoft.Network/virtualNetworks/wide", NETWORK, body).status < 300
    assert time.process_time() - started < 20
