"""Which pod goes to which node."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from karpstack.snapshot.placement import Placement, Room, place_pods
from tests.unit.snapshot.made import snapshot, workload

VOLUME = {"size": "10Gi", "places": [{"zones": ["a"], "pods": 1}, {"zones": ["b"], "pods": 2}]}


def room(node: str, zone: str = "a", cpu: str = "4", pods: int = 110) -> Room:
    return Room(node, zone, {"cpu": Decimal(cpu), "memory": Decimal(2**34), "pods": Decimal(pods)})


def seated(*workloads: dict[str, Any], **rooms: Room) -> Placement:
    return place_pods({one.name: one for one in snapshot(workloads=list(workloads)).workloads}, rooms)


def test_pods_go_to_the_node_that_stands_for_theirs() -> None:
    found = seated(workload(nodes={"one": 2, "gone": 1}), one=room("ip-1"))
    assert found.nodes == {"web": ["ip-1", "ip-1", None]}
    assert found.without_room == 0


def test_what_a_node_has_no_room_for_is_left_to_the_scheduler() -> None:
    found = seated(workload(nodes={"one": 3}), one=room("ip-1", cpu="1"))
    assert found.nodes == {"web": ["ip-1", "ip-1", None]}
    assert found.without_room == 1
    assert seated(workload(nodes={"one": 3}), one=room("ip-1", pods=1)).without_room == 2


def test_pods_of_daemon_sets_have_their_room_and_no_seat() -> None:
    agent = workload("agent", controller={"apiVersion": "apps/v1", "kind": "DaemonSet"}, nodes={"one": 1}, replicas=1)
    found = seated(workload(nodes={"one": 3}), agent, one=room("ip-1", cpu="1.5"))
    assert found.nodes == {"web": ["ip-1", "ip-1", None]}


def test_a_pod_with_a_volume_goes_where_it_reaches_it() -> None:
    database = workload(
        "database",
        controller={"apiVersion": "apps/v1", "kind": "StatefulSet"},
        volumes=[VOLUME],
        nodes={"one": 1, "two": 1, "three": 1},
    )
    found = seated(database, one=room("ip-b1", "b"), two=room("ip-a", "a"), three=room("ip-b2", "b"))
    assert found.nodes == {"database": ["ip-a", "ip-b1", "ip-b2"]}

    found = seated(database, one=room("ip-b1", "b"), three=room("ip-b2", "b"))
    assert found.nodes == {"database": [None, "ip-b1", "ip-b2"]}
