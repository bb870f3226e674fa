"""Machines become nodes after their boot time, or say why not."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.cluster.cloud import Machine
from rehearsal.cluster.registrar import Registrar
from rehearsal.timing import Timing
from tests.unit.rehearsal.cluster_world import UnaskedCloud, World

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?metadata.name=nodeclaims.karpenter.sh"
NODES = "/api/v1/nodes"
DEFINITION = {
    "metadata": {"name": "nodeclaims.karpenter.sh"},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
MACHINE = Machine("aws:///us-east-1a/i-1", "ip-1", {}, "v1.36.3", capacity={"cpu": "2"})
REFUSED = Machine("aws:///us-east-1a/i-1", "ip-1", {}, "v1.36.3", refusal="no access entry")


class TheCloud(UnaskedCloud):
    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.asked = threading.Event()

    def machine(self, provider_id: str) -> Machine | None:
        self.asked.set()
        return self.machines.get(provider_id)

    def has_machine(self, provider_id: str) -> bool:
        return provider_id in self.machines


def claim(provider_id: str = MACHINE.provider_id) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "default-1", "uid": "u"},
        "spec": {},
        "status": {"providerID": provider_id} if provider_id else {},
    }


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def cloud() -> TheCloud:
    return TheCloud()


@pytest.fixture
def registrar(world: World, cloud: TheCloud) -> Iterator[Registrar]:
    registrar = Registrar(world.objects(), cloud, Timing(node_boot=0.05, system_node_boot=0))
    registrar.start()
    yield registrar
    registrar.stop()


@pytest.mark.usefixtures("registrar")
def test_a_claim_gets_its_node_once(world: World, cloud: TheCloud) -> None:
    cloud.machines[MACHINE.provider_id] = MACHINE
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", claim(provider_id=""))
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.2)
    world.happen(CLAIMS, "MODIFIED", claim())
    world.happen(CLAIMS, "MODIFIED", claim())
    node = world.created.get(timeout=5)
    assert (node["path"], node["spec"]["providerID"]) == (NODES, MACHINE.provider_id)
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.2)


@pytest.mark.usefixtures("registrar")
def test_a_machine_that_boots_while_the_api_server_is_away_joins_later(world: World, cloud: TheCloud) -> None:
    cloud.machines[MACHINE.provider_id] = MACHINE
    world.away = 2
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", claim())
    assert world.created.get(timeout=5)["kind"] == "Node"


@pytest.mark.usefixtures("registrar")
def test_claims_are_found_although_their_kind_is_served_late(world: World, cloud: TheCloud) -> None:
    cloud.machines[MACHINE.provider_id] = MACHINE
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", None)
    cloud.asked.wait(0.3)  # until the second watch has taken the place of the first
    world.happen(CLAIMS, "ADDED", claim())
    assert world.created.get(timeout=5)["kind"] == "Node"


@pytest.mark.usefixtures("registrar")
def test_a_refused_machine_says_why_and_joins_when_it_may(
    world: World, cloud: TheCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.cluster.registrar._SECONDS_BETWEEN_TRIES", 0.1)
    cloud.machines[MACHINE.provider_id] = REFUSED
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", claim())
    event = world.created.get(timeout=5)
    assert (event["kind"], event["reason"]) == ("Event", "NodeRegistrationFailed")
    assert "no access entry" in event["message"]
    assert event["involvedObject"]["kind"] == "NodeClaim"
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.4)
    cloud.machines[MACHINE.provider_id] = MACHINE
    assert world.created.get(timeout=5)["kind"] == "Node"


@pytest.mark.usefixtures("registrar")
def test_a_machine_with_an_earlier_ones_address_joins_when_that_ones_node_has_gone(
    world: World, cloud: TheCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.cluster.registrar._SECONDS_BETWEEN_TRIES", 0.1)
    cloud.machines[MACHINE.provider_id] = MACHINE
    path = f"{NODES}/{MACHINE.node_name}"
    world.present[path] = {"metadata": {"name": MACHINE.node_name}, "spec": {"providerID": "aws:///us-east-1a/i-0"}}
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", claim())
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.4)
    del world.present[path]
    assert world.created.get(timeout=5)["spec"]["providerID"] == MACHINE.provider_id


@pytest.mark.usefixtures("registrar")
def test_a_machine_that_ends_while_it_boots_is_forgotten(world: World, cloud: TheCloud) -> None:
    world.happen(DEFINITIONS, "ADDED", DEFINITION)
    world.happen(CLAIMS, "ADDED", claim())
    assert cloud.asked.wait(5)
    with pytest.raises(queue.Empty):
        world.created.get(timeout=0.2)


def test_a_node_whose_machine_is_gone_is_removed(
    world: World, cloud: TheCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.cluster.registrar._SECONDS_BETWEEN_LOOKS", 0.05)
    cloud.machines[MACHINE.provider_id] = MACHINE
    registrar = Registrar(world.objects(), cloud, Timing())
    registrar.start()
    try:
        world.happen(NODES, "ADDED", {"metadata": {"name": "alive"}, "spec": {"providerID": MACHINE.provider_id}})
        world.happen(NODES, "ADDED", {"metadata": {"name": "dead"}, "spec": {"providerID": "aws:///us-east-1a/i-2"}})
        assert world.deleted.get(timeout=5) == "/api/v1/nodes/dead"
    finally:
        registrar.stop()


PODS_OF_DEAD = "/api/v1/pods?spec.nodeName=dead"
LATE_POD = {"metadata": {"namespace": "kube-system", "name": "cilium-1"}}


@pytest.fixture
def swept_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.cluster.registrar._SECONDS_UNTIL_SWEPT", (0.05, 0.5))


@pytest.mark.usefixtures("swept_soon", "registrar")
def test_pods_that_are_bound_to_a_node_after_it_has_gone_go_too(world: World) -> None:
    world.happen(NODES, "DELETED", {"metadata": {"name": "dead"}, "spec": {}})
    with pytest.raises(queue.Empty):
        world.deleted.get(timeout=0.2)
    world.listed[PODS_OF_DEAD] = [LATE_POD]
    assert world.deleted.get(timeout=5) == "/api/v1/namespaces/kube-system/pods/cilium-1"


@pytest.mark.usefixtures("swept_soon", "registrar")
def test_a_node_that_took_the_name_of_one_that_has_gone_keeps_its_pods(world: World) -> None:
    world.listed[PODS_OF_DEAD] = [LATE_POD]
    for kind in ("DELETED", "ADDED"):
        world.happen(NODES, kind, {"metadata": {"name": "dead"}, "spec": {}})
    with pytest.raises(queue.Empty):
        world.deleted.get(timeout=0.8)


def test_a_group_whose_machines_may_not_join_fails_at_once(registrar: Registrar) -> None:
    assert registrar.join([Machine("p", "ip-2", capacity={"cpu": "1"}, refusal="no")], [], {}, 30) == ["ip-2"]


def test_a_group_waits_for_ready_nodes(world: World, cloud: TheCloud) -> None:
    registrar = Registrar(world.objects(), cloud, Timing(system_node_boot=0))
    left: queue.Queue[list[str]] = queue.Queue()
    threading.Thread(target=lambda: left.put(registrar.join([MACHINE], [], {}, 30)), daemon=True).start()
    node = world.created.get(timeout=5)
    world.happen(NODES, "ADDED", node)
    with pytest.raises(queue.Empty):
        left.get(timeout=0.2)
    ready = {**node, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world.happen(NODES, "MODIFIED", ready)
    assert left.get(timeout=5) == []
    assert registrar.join([MACHINE], [], {}, 0.1) == ["ip-1"]
