"""The nodes of a snapshot are made, waited for, kept from disruption, and let go."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.scale_test.acting.cluster import ClusterError
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.portability import Place
from karpstack.whatif import base_nodes
from tests.unit.snapshot.made import snapshot
from tests.unit.snapshot.test_node_claims import node, pool
from tests.unit.whatif.live import Clock, Live

PLACE = Place("aws", "us-east-1")
NODE_POOL = {"kind": "NodePool", **pool()}
NODE_CLASS = {
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "status": {"subnets": [{"id": "subnet-1", "zone": "us-east-1a"}]},
}


def taken(*names: str) -> Snapshot:
    return snapshot(nodes=[node(name, nodeClaim=f"web-{name}") for name in names])


def event(claim: dict[str, Any], reason: str, message: str, at: str) -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": f"{claim['metadata']['name']}-{at}"},
        "involvedObject": {"kind": "NodeClaim", **{key: claim["metadata"][key] for key in ("name", "uid")}},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-11-23T{at}Z",
    }


def launch(live: Live, *refused: str) -> None:
    """As Karpenter does: what cannot be launched is deleted, the others are initialized at once."""
    for claim in live.all("NodeClaim"):
        name = claim["metadata"]["name"]
        if name in refused:
            live.delete(claim, "")
            live.create(event(claim, "InsufficientCapacityError", "no m5.large to be had", "10:00:02"))
            live.create(event(claim, "InsufficientCapacityError", "an earlier word", "10:00:01"))
            live.create(event(claim, "TerminationGracePeriodExpiring", "All pods will be deleted by", "10:00:03"))
        else:
            conditions = [{"type": one, "status": "True"} for one in ("Launched", "Registered", "Initialized")]
            claim["status"] = {"conditions": conditions, "nodeName": f"of-{name}"}


def test_each_node_is_made_and_waited_for() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    clock = Clock(lambda: launch(live))
    assert base_nodes.make(live, taken("a", "b"), PLACE, 300, clock, clock.sleep) == base_nodes.CreatedNodes(2, 2, [])
    assert base_nodes.standing(live) == {"a": "of-web-a", "b": "of-web-b"}


def test_what_the_cloud_does_not_have_is_told_in_karpenters_words() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    clock = Clock(lambda: launch(live, "web-b"))
    made = base_nodes.make(live, taken("a", "b"), PLACE, 300, clock, clock.sleep)
    assert (made.of, made.nodes) == (2, 1)
    (sentence,) = made.left_out
    assert sentence.endswith("Karpenter could not launch them: no m5.large to be had (b)")


def test_what_an_older_node_claim_of_that_name_met_is_not_its_reason() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    older = {"metadata": {"name": "web-a", "uid": "older"}}
    live.create(event(older, "InsufficientCapacityError", "yesterday", "10:00:02"))
    clock = Clock(lambda: live.end("NodeClaim"))
    made = base_nodes.make(live, taken("a"), PLACE, 300, clock, clock.sleep)
    assert made.left_out[0].endswith("Karpenter could not launch them (a)")


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (
            [{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "quota exceeded"}],
            "Karpenter could not launch them (quota exceeded) (a)",
        ),
        (
            [{"type": "Launched", "status": "Unknown", "reason": "AwaitingReconciliation", "message": "awaiting"}],
            "Karpenter could not launch them (a)",
        ),
        ([{"type": "Launched", "status": "True"}], "Karpenter removed them before they were Registered (a)"),
    ],
)
def test_what_the_claim_said_last_is_the_reason(conditions: list[dict[str, Any]], said: str) -> None:
    live = Live(NODE_POOL, NODE_CLASS)

    def each() -> None:
        for claim in live.all("NodeClaim"):
            if "status" in claim:
                live.delete(claim, "")
            claim["status"] = {"conditions": conditions}

    clock = Clock(each)
    made = base_nodes.make(live, taken("a"), PLACE, 300, clock, clock.sleep)
    assert made.left_out[0].endswith(said)


def test_what_does_not_come_in_time_is_removed_again() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    clock = Clock()
    made = base_nodes.make(live, taken("a"), PLACE, 300, clock, clock.sleep)
    assert made.nodes == 0
    assert made.left_out[0].endswith("they were not Launched in time (a)")
    assert live.all("NodeClaim") == []


def test_a_name_that_is_taken_is_left_alone() -> None:
    other: dict[str, Any] = {"kind": "NodeClaim", "metadata": {"name": "web-a", "labels": {}}}
    live = Live(NODE_POOL, NODE_CLASS, other)
    clock = Clock(lambda: launch(live))
    made = base_nodes.make(live, taken("a", "b"), PLACE, 300, clock, clock.sleep)
    assert made.nodes == 1
    assert "another NodeClaim has their name (a)" in made.left_out[0]


def test_hundreds_are_not_launched_at_once() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    most = 0

    def each() -> None:
        nonlocal most
        most = max(most, sum("status" not in claim for claim in live.all("NodeClaim")))
        launch(live)

    clock = Clock(each)
    names = [f"n{number}" for number in range(3 * base_nodes.LAUNCHED_AT_ONCE)]
    made = base_nodes.make(live, taken(*names), PLACE, 300, clock, clock.sleep)
    assert made == base_nodes.CreatedNodes(len(names), len(names), [])
    assert most == base_nodes.LAUNCHED_AT_ONCE


def test_those_that_wait_are_made_after_some_that_did_not_come() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    stuck = {f"web-n{number}" for number in range(base_nodes.LAUNCHED_AT_ONCE)}
    clock = Clock(
        lambda: launch(live) if not stuck & {one["metadata"]["name"] for one in live.all("NodeClaim")} else None
    )
    names = [f"n{number}" for number in range(base_nodes.LAUNCHED_AT_ONCE + 5)]
    made = base_nodes.make(live, taken(*names), PLACE, 300, clock, clock.sleep)
    assert made.nodes == 5


def test_without_a_subnet_in_the_zone_nothing_is_tried() -> None:
    live = Live(NODE_POOL, {**NODE_CLASS, "status": {"subnets": [{"zone": "us-east-1b"}]}})
    made = base_nodes.make(live, taken("a"), PLACE, 300)
    assert "has no subnet in us-east-1a" in made.left_out[0]


def test_a_pool_without_its_hash_is_waited_for_and_then_refused() -> None:
    bare = {**NODE_POOL, "metadata": {**NODE_POOL["metadata"], "annotations": {}}}
    clock = Clock()
    with pytest.raises(ClusterError, match="web has no annotation"):
        base_nodes.make(Live(bare, NODE_CLASS), taken("a"), PLACE, 10, clock, clock.sleep)


def test_nodes_that_are_let_go_lose_what_kept_them() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    clock = Clock(lambda: launch(live))
    base_nodes.make(live, taken("a"), PLACE, 300, clock, clock.sleep)
    base_nodes.allow_disruption(live)
    gone = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": None}}}
    assert live.changed == [("NodeClaim", "web-a", gone), ("Node", "of-web-a", gone)]


def test_what_the_node_pool_asks_for_itself_stays() -> None:
    of = pool(metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    live = Live({"kind": "NodePool", **of}, NODE_CLASS)
    clock = Clock(lambda: launch(live))
    base_nodes.make(live, taken("a"), PLACE, 300, clock, clock.sleep)
    base_nodes.allow_disruption(live)
    assert {patch["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] for *_, patch in live.changed} == {"true"}


def test_a_node_that_karpenter_may_not_disrupt_in_the_cluster_stays_so() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    clock = Clock(lambda: launch(live))
    snapshot = taken("a", "b")
    kept, other = snapshot.nodes
    nodes = [kept.model_copy(update={"do_not_disrupt": True}), other]
    base_nodes.make(live, snapshot.model_copy(update={"nodes": nodes}), PLACE, 300, clock, clock.sleep)
    base_nodes.allow_disruption(live)
    assert {
        name: patch["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] for _, name, patch in live.changed
    } == {
        "web-a": "true",
        "of-web-a": "true",
        "web-b": None,
        "of-web-b": None,
    }


def test_what_was_made_is_removed() -> None:
    live = Live(NODE_POOL, NODE_CLASS)
    live.create({"kind": "NodeClaim", "metadata": {"name": "own", "labels": {"karpenter.sh/nodepool": "web"}}})
    clock = Clock(lambda: launch(live))
    base_nodes.make(live, taken("a", "b"), PLACE, 300, clock, clock.sleep)
    assert base_nodes.remove(live, 60, clock, clock.sleep) == 2
    assert [claim["metadata"]["name"] for claim in live.all("NodeClaim")] == ["own"]
