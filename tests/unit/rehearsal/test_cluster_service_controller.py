"""Services of type LoadBalancer, as their controller sees them come and go."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from rehearsal.cluster import service_controller as module
from rehearsal.cluster.cloud import LoadBalancerError
from rehearsal.cluster.service_controller import FINALIZER, ServiceController
from tests.unit.rehearsal.cluster_world import World

SERVICES = "/api/v1/services"
BACK_OFF = 0.1
PATH = "/api/v1/namespaces/shop/services/web"


class Balancers:
    """Says in which order it was asked."""

    def __init__(self) -> None:
        self.asked: queue.Queue[str] = queue.Queue()
        self.refusal = ""

    def ensure(self, service: Mapping[str, Any]) -> str:
        self.asked.put(f"ensure {service['metadata']['name']}")
        if self.refusal:
            raise LoadBalancerError(self.refusal)
        return "web.elb.example"

    def remove(self, service: Mapping[str, Any]) -> None:
        self.asked.put(f"remove {service['metadata']['name']}")
        if self.refusal:
            raise LoadBalancerError(self.refusal)


def service(**changes: Any) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": "web", **changes.pop("metadata", {})}
    spec = {"type": "LoadBalancer", **changes}
    status: dict[str, Any] = {"loadBalancer": {}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": status}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def balancers(world: World) -> Iterator[Balancers]:
    made = Balancers()
    controller = ServiceController(world.objects(), made)
    controller.start()
    yield made
    controller.stop()


def test_its_finalizer_is_there_before_its_load_balancer(world: World, balancers: Balancers) -> None:
    world.happen(SERVICES, "ADDED", service(metadata={"finalizers": ["somebody.else/s"]}))
    assert world.patched.get(timeout=5) == (PATH, {"metadata": {"finalizers": ["somebody.else/s", FINALIZER]}})
    assert balancers.asked.get(timeout=5) == "ensure web"
    path, body = world.patched.get(timeout=5)
    assert path == f"{PATH}/status"
    assert body["status"]["loadBalancer"]["ingress"] == [{"hostname": "web.elb.example"}]


@pytest.mark.parametrize(
    "changed", [{"metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"}}, {"type": "ClusterIP"}]
)
def test_its_finalizer_goes_after_its_load_balancer(
    world: World, balancers: Balancers, changed: dict[str, Any]
) -> None:
    metadata = {"finalizers": [FINALIZER, "somebody.else/s"], **changed.pop("metadata", {})}
    world.happen(SERVICES, "MODIFIED", service(metadata=metadata, **changed))
    assert balancers.asked.get(timeout=5) == "remove web"
    assert world.patched.get(timeout=5)[0] == f"{PATH}/status"
    assert world.patched.get(timeout=5) == (PATH, {"metadata": {"finalizers": ["somebody.else/s"]}})


@pytest.mark.parametrize(("asks", "verb"), [({}, "ensure"), ({"type": "ClusterIP"}, "delete")])
def test_what_fails_is_said_of_the_service(world: World, balancers: Balancers, asks: dict[str, Any], verb: str) -> None:
    balancers.refusal = "no subnets"
    world.happen(SERVICES, "ADDED", service(metadata={"finalizers": [FINALIZER]}, **asks))
    event = world.created.get(timeout=5)
    assert (event["reason"], event["involvedObject"]["name"]) == ("SyncLoadBalancerFailed", "web")
    assert event["message"] == f"Error syncing load balancer: failed to {verb} load balancer: no subnets"


@pytest.mark.parametrize(("asks", "verb"), [({}, "ensure"), ({"type": "ClusterIP"}, "remove")])
def test_what_failed_is_tried_again_until_it_succeeds(
    world: World, balancers: Balancers, monkeypatch: pytest.MonkeyPatch, asks: dict[str, Any], verb: str
) -> None:
    monkeypatch.setattr(module, "_FIRST_BACK_OFF", BACK_OFF)
    balancers.refusal = "no subnets"
    world.present[PATH] = service(metadata={"finalizers": [FINALIZER]}, **asks)
    world.happen(SERVICES, "ADDED", service(metadata={"finalizers": [FINALIZER]}, **asks))
    tried = []
    for _ in range(3):
        assert balancers.asked.get(timeout=5) == f"{verb} web"
        tried.append(time.monotonic())
    first, second = (after - before for before, after in pairwise(tried))
    assert first < second
    balancers.refusal = ""
    assert balancers.asked.get(timeout=5) == f"{verb} web"
    with pytest.raises(queue.Empty):
        balancers.asked.get(timeout=BACK_OFF)


def test_a_back_off_has_an_end(world: World, balancers: Balancers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_BACK_OFF", 0.001)
    monkeypatch.setattr(module, "_LONGEST_BACK_OFF", 0.002)
    balancers.refusal = "no subnets"
    world.present[PATH] = service()
    world.happen(SERVICES, "ADDED", service())
    for _ in range(20):  # the last of which would wait for minutes
        balancers.asked.get(timeout=5)


def test_only_a_change_of_what_is_asked_for_is_tried_before(world: World, balancers: Balancers) -> None:
    balancers.refusal = "no subnets"
    world.happen(SERVICES, "ADDED", service())
    world.happen(SERVICES, "MODIFIED", service(metadata={"finalizers": [FINALIZER]}))
    world.happen(SERVICES, "MODIFIED", service(metadata={"annotations": {"a": "b"}}))
    world.happen(SERVICES, "DELETED", service())
    world.happen(SERVICES, "ADDED", service(metadata={"name": "last"}))
    asked = [balancers.asked.get(timeout=5) for _ in range(3)]
    assert asked == ["ensure web", "ensure web", "ensure last"]


def test_what_failed_and_was_given_up_is_tried_at_once_when_it_is_asked_for_again(
    world: World, balancers: Balancers
) -> None:
    balancers.refusal = "no subnets"
    world.happen(SERVICES, "ADDED", service())
    world.happen(SERVICES, "MODIFIED", service(type="ClusterIP"))  # without the finalizer: nothing to remove
    world.happen(SERVICES, "MODIFIED", service())
    assert [balancers.asked.get(timeout=5) for _ in range(2)] == ["ensure web", "ensure web"]


def test_what_is_gone_is_not_tried_again(world: World, balancers: Balancers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_BACK_OFF", BACK_OFF)
    balancers.refusal = "no subnets"
    world.happen(SERVICES, "ADDED", service())
    assert balancers.asked.get(timeout=5) == "ensure web"
    with pytest.raises(queue.Empty):
        balancers.asked.get(timeout=3 * BACK_OFF)


@pytest.mark.parametrize("other", [{"type": "ClusterIP"}, {"loadBalancerClass": "service.k8s.aws/nlb"}])
def test_what_is_somebody_elses_is_left_alone(world: World, balancers: Balancers, other: dict[str, Any]) -> None:
    world.happen(SERVICES, "ADDED", service(**other))
    world.happen(SERVICES, "ADDED", service(metadata={"name": "last"}))
    assert balancers.asked.get(timeout=5) == "ensure last"
