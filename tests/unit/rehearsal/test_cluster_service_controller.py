"""Services of type LoadBalancer, as their controller sees them come and go."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rehearsal.cluster.cloud import LoadBalancerError
from rehearsal.cluster.service_controller import FINALIZER, ServiceController
from tests.unit.rehearsal.cluster_world import World

SERVICES = "/api/v1/services"
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


def test_what_cannot_be_made_is_said_of_the_service(world: World, balancers: Balancers) -> None:
    balancers.refusal = "no subnets"
    world.happen(SERVICES, "ADDED", service())
    event = world.created.get(timeout=5)
    assert (event["reason"], event["involvedObject"]["name"]) == ("SyncLoadBalancerFailed", "web")
    assert "no subnets" in event["message"]


@pytest.mark.parametrize("other", [{"type": "ClusterIP"}, {"loadBalancerClass": "service.k8s.aws/nlb"}])
def test_what_is_somebody_elses_is_left_alone(world: World, balancers: Balancers, other: dict[str, Any]) -> None:
    world.happen(SERVICES, "ADDED", service(**other))
    world.happen(SERVICES, "ADDED", service(metadata={"name": "last"}))
    assert balancers.asked.get(timeout=5) == "ensure last"
