"""Pods move from nodes to others: what is refused before, what stops it, and what is seen meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from karpstack.karpenter.selectors import MORE_THAN_ONE
from karpstack.scale_test.acting import draining, moving
from karpstack.scale_test.acting.cluster import Cluster, ClusterError
from karpstack.scale_test.acting.draining import MoveError
from karpstack.scale_test.acting.moving import MARK
from playbooks.plugins.module_utils.actions import FailedError, call
from playbooks.plugins.module_utils.actions import move as action
from tests.serving import serving
from tests.unit.scale_test.api_server import ApiServer

GROUP = "eks.amazonaws.com/nodegroup"
PATIENCE = 30.0


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": {**labels}}, "spec": {}}


def pod(name: str, on: str = "", owner: str = "ReplicaSet", phase: str = "Running", **more: Any) -> dict[str, Any]:
    reference = {"kind": owner, "apiVersion": "apps/v1", "name": name, "uid": f"{name}-owner", "controller": True}
    owners = [reference] if owner else []
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners}
    said = [{"type": "PodScheduled", "status": "False", "message": "no NodePool fits"}]
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, **more},
        "status": {"phase": phase, "conditions": said},
    }


def pool(name: str, cpu: str = "100", ready: str = "True") -> dict[str, Any]:
    message = "its node class is not ready" if ready == "False" else ""
    conditions = [{"type": "Ready", "status": ready, "message": message}]
    return {
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"limits": {"cpu": cpu}},
        "status": {"conditions": conditions},
    }


def budget(healthy: int = 3, desired: int = 2, allowed: int = 1, name: str = "web", **labels: str) -> dict[str, Any]:
    status = {"expectedPods": 3, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed}
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": status,
    }


class Live:
    """A cluster of a few objects, in which time passes when somebody sleeps."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = [*deepcopy(items)]
        self.now = 0.0
        self.evicted: list[str] = []
        self.changed: list[str] = []
        #: Why a pod must stay, while it must.
        self.held: Callable[[str], str] = lambda name: ""
        #: What becomes of a pod that was evicted.
        self.after: Callable[[str], None] = lambda name: None
        self.passing: Callable[[], None] = lambda: None

    def labelled(self, api: str, kind: str, selector: str, fields: str = "") -> list[dict[str, Any]]:
        found = [one for one in self.items if one["kind"] == kind]
        if selector:
            key, _, value = selector.partition("=")
            found = [one for one in found if one["metadata"].get("labels", {}).get(key) == value]
        for field in filter(None, fields.split(",")):
            (section, key), value = field.partition("=")[0].split("."), field.partition("=")[2]
            found = [one for one in found if one[section].get(key) == value]
        return deepcopy(found)

    def read(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        name = wanted["metadata"]["name"]
        return next(
            (one for one in self.items if one["kind"] == wanted["kind"] and one["metadata"]["name"] == name), None
        )

    def tell(self, about: str, reason: str, message: str, at: str, source: str = "karpenter") -> None:
        """Let somebody have said something of a pod."""
        event = {"reason": reason, "message": message, "lastTimestamp": at, "source": {"component": source}}
        self.items.append({"kind": "Event", "metadata": {"name": at}, "involvedObject": {"uid": about}, **event})

    def change(self, wanted: dict[str, Any], patch: dict[str, Any]) -> None:
        (one,) = (one for one in self.items if one["metadata"]["name"] == wanted["metadata"]["name"])
        self.changed.append(wanted["metadata"]["name"])
        one["spec"] |= patch["spec"]
        one["metadata"].setdefault("annotations", {}).update(patch["metadata"]["annotations"])
        one["metadata"]["annotations"] = {key: value for key, value in one["metadata"]["annotations"].items() if value}

    def evict(self, given: dict[str, Any]) -> str:
        name = given["metadata"]["name"]
        if reason := self.held(name):
            return reason
        self.evicted.append(name)
        self.items = [one for one in self.items if one["metadata"]["name"] != name]
        self.after(name)
        return ""

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.passing()

    @property
    def cluster(self) -> Cluster:
        return cast(Cluster, self)

    def drain(self, name: str = "a", accepted: tuple[str, ...] = ()) -> draining.Drained:
        return draining.drain(self.cluster, name, PATIENCE, accepted, None, lambda: self.now, self.sleep)

    def refused(self, *node_pools: str) -> str:
        nodes = moving.chosen(self.cluster, [] if node_pools else ["batch"], node_pools)
        with pytest.raises(MoveError) as error:
            self.refuse(nodes, node_pools)
        return str(error.value)

    def refuse(self, nodes: list[moving.Object], node_pools: Collection[str] = (), **given: Any) -> None:
        options: dict[str, Any] = {"accept_waiting": False, "clock": lambda: self.now, "sleep": self.sleep}
        moving.refuse(self.cluster, nodes, node_pools, **options | given)


def test_nodes_are_those_of_the_groups_in_their_order_on_either_cloud() -> None:
    pools = {"kubernetes.azure.com/agentpool": "general"}
    live = Live(node("b", **{GROUP: "batch"}), node("a", **{GROUP: "batch"}), node("c", **pools), node("d"))
    found = moving.chosen(live.cluster, ["general", "batch"], [])
    assert [one["metadata"]["name"] for one in found] == ["c", "a", "b"]
    assert moving.group_names(live.cluster) == ["batch", "general"]
    azure, aws = moving.scale_down_commands(found)
    assert azure.startswith("az aks nodepool scale")
    assert azure.endswith("--name general --node-count 0")
    assert "--nodegroup-name batch --scaling-config minSize=0" in aws


def test_in_check_mode_a_move_says_what_it_would_change_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    live = Live(node("a", **{GROUP: "batch"}), pod("web", "a"), pool("default"))
    monkeypatch.setattr(action, "Cluster", lambda: live)
    options = {"groups": ["batch"], "node_pools": [], "patience": 1, "accept_waiting": False, "accepted": []}

    def move(state: str, *, check: bool) -> dict[str, Any]:
        return call("move.move", {**options, "state": state, "node": "a"}, check=check)

    would = move("cordoned", check=True)
    assert (would["changed"], would["nodes"], live.changed) == (True, ["a"], [])
    assert call("move.move", {**options, "state": "listed"}, check=True)["taking"] == ["a"]
    assert move("cordoned", check=False) == would
    listed = call("move.move", {**options, "state": "listed"}, check=True)
    assert listed == {"changed": False, "nodes": ["a"], "taking": [], "pods": ["shop/web"]}
    assert live.changed == ["a"]
    assert not move("cordoned", check=True)["changed"]
    assert move("drained", check=True)["changed"]
    assert live.evicted == []
    would = move("undone", check=True)
    assert (would["changed"], would["uncordoned"], live.changed) == (True, ["a"], ["a"])
    assert move("undone", check=False) == would
    assert live.changed == ["a", "a"]


def test_what_a_move_has_cordoned_it_takes_back_and_nothing_else() -> None:
    live = Live(node("a", **{GROUP: "batch"}), node("b", **{GROUP: "batch"}))
    live.items[1]["spec"]["unschedulable"] = True  # by somebody else
    nodes = moving.chosen(live.cluster, ["batch"], [])
    assert moving.cordon(live.cluster, nodes) == ["a"]
    assert MARK in live.items[0]["metadata"]["annotations"]
    assert moving.cordon(live.cluster, moving.chosen(live.cluster, ["batch"], [])) == []
    assert moving.uncordon(live.cluster, moving.chosen(live.cluster, ["batch"], [])) == ["a"]
    assert not live.items[0]["spec"]["unschedulable"]
    assert live.items[1]["spec"]["unschedulable"]


def test_all_that_would_go_wrong_is_told_before_anything_is_changed() -> None:
    live = Live(node("a", **{GROUP: "batch"}), pod("bare", "a", owner=""), pod("new", phase="Pending"))
    nodes = moving.chosen(live.cluster, ["batch"], [])
    with pytest.raises(MoveError) as error:
        live.refuse(nodes, autoscalers=["kube-system/cluster-autoscaler"])
    assert "kubectl scale deployment cluster-autoscaler --namespace kube-system --replicas 0; no" in str(error.value)
    said = live.refused()
    assert said.startswith("nothing was changed: no NodePool is ready")
    assert "shop/bare on a would not come again" in said
    assert "shop/new is without a node already" in said
    live.items.append(pool("default", ready="False"))
    assert "without one (default: its node class is not ready): bring the stack up" in live.refused()
    assert live.now == 0
    live.items.append(pool("other"))
    assert "no NodePool is ready" not in live.refused()
    assert live.changed == []


def test_pods_under_two_budgets_are_told_before_anything_is_changed() -> None:
    web, other = pod("web-1", "a"), pod("db-1", "a")
    web["metadata"]["labels"], other["metadata"]["labels"] = {"app": "web"}, {"app": "db"}
    live = Live(node("a", **{GROUP: "batch"}), pool("default"), web, other, budget(app="web"))
    nodes = moving.chosen(live.cluster, ["batch"], [])
    moving.refuse(live.cluster, nodes, [], accept_waiting=False)
    live.items.append(budget(name="all"))
    said = live.refused()
    assert "shop/web-1 on a would not go: the PodDisruptionBudgets shop/all and shop/web select" in said
    assert "db-1" not in said
    assert live.changed == []


def test_a_group_without_nodes_beside_one_with_some_is_refused_by_name() -> None:
    live = Live(node("a", **{GROUP: "batch"}), pool("default"))
    nodes = moving.chosen(live.cluster, ["batch", "genral"], [])
    with pytest.raises(MoveError, match=r"no node is of genral, .* groups with nodes are batch"):
        live.refuse(nodes, groups=["batch", "genral"])
    live.refuse([], groups=["genral"])


@pytest.mark.parametrize("judged", [{"status": "Unknown"}, {"status": "False", "observedGeneration": 1}])
def test_karpenter_gets_a_minute_to_judge_its_node_pools(judged: dict[str, Any]) -> None:
    live = Live(node("a", **{GROUP: "batch"}), pool("default"))
    live.items[1]["metadata"]["generation"] = 2
    (condition,) = live.items[1]["status"]["conditions"]
    condition |= judged
    assert "in 60 s Karpenter has not judged default: see that it runs" in live.refused()
    assert 60 < live.now < 65

    def passing() -> None:
        if live.now > 90:
            condition.update(status="True", observedGeneration=2)

    live.passing = passing
    live.refuse(moving.chosen(live.cluster, ["batch"], []))
    live.items.pop()
    assert "without one: bring the stack up" in live.refused()


def test_a_move_that_was_broken_off_goes_on_and_waits_for_the_pods_that_it_had_evicted() -> None:
    live = Live(node("a", **{GROUP: "batch"}), node("b", **{GROUP: "batch"}), pool("default"))
    moving.cordon(live.cluster, moving.chosen(live.cluster, ["batch"], []))
    live.items += [pod("web-1", phase="Pending"), pod("web-2", "b")]
    live.refuse(moving.chosen(live.cluster, ["batch"], []))
    with pytest.raises(MoveError, match="the pod shop/web-1 is without a node for 30 s"):
        live.drain("a")


def test_pods_that_wait_already_may_be_accepted() -> None:
    live = Live(node("a", **{GROUP: "batch"}), pool("default"), pod("new", phase="Pending"))
    nodes = moving.chosen(live.cluster, ["batch"], [])
    live.refuse(nodes, accept_waiting=True)
    moving.cordon(live.cluster, nodes)
    assert live.drain(accepted=("shop/new",)).waited == 0


def test_a_node_that_takes_pods_again_is_not_drained_and_one_that_is_gone_is_empty() -> None:
    live = Live(node("a", **{GROUP: "batch"}), pool("default"), pod("web-1", "a"))
    with pytest.raises(MoveError, match="a takes new pods again"):
        live.drain("a")
    assert live.evicted == []
    assert live.drain("gone").pods == 0


def test_on_the_way_back_karpenter_must_make_no_more() -> None:
    live = Live(node("a", **{"karpenter.sh/nodepool": "default"}), pool("default"), pool("other"))
    assert "the NodePool default would make new nodes" in live.refused("default")
    live.items[1]["spec"]["limits"]["cpu"] = "0"
    live.refuse(moving.chosen(live.cluster, [], ["default"]), ["default"], autoscalers=["kube-system/any"])


def test_pods_leave_and_the_move_waits_until_each_has_a_node() -> None:
    live = Live(pod("web-1", "a"), pod("web-2", "a"), pod("agent", "a", owner="DaemonSet"))
    live.items += [pod("done", "a", phase="Succeeded"), pod("elsewhere", "b")]
    live.after = lambda name: live.items.append(pod(f"{name}-again", phase="Pending"))

    def passing() -> None:
        if live.now >= 10:
            for one in live.items:
                if not one["spec"]["nodeName"]:
                    one["spec"]["nodeName"], one["status"]["phase"] = "c", "Running"

    live.passing = passing
    done = live.drain()
    assert live.evicted == ["web-1", "web-2"]
    assert (done.pods, done.broken) == (2, set())
    assert 8 <= done.waited <= 11
    # Again, there is nothing to do.
    assert live.drain().pods == 0


def test_a_budget_is_waited_for_as_long_as_pods_go() -> None:
    live = Live(*(pod(f"web-{number}", "a") for number in range(3)), budget())
    last = [0.0]

    def held(name: str) -> str:
        if live.now - last[0] < PATIENCE - 5:
            return "the budget web needs 2 healthy pods"
        last[0] = live.now
        return ""

    live.held = held
    assert live.drain().pods == 3
    assert live.now > 2 * PATIENCE


def test_a_pod_that_no_budget_lets_go_stops_the_move_by_name() -> None:
    live = Live(pod("web-1", "a"), budget(allowed=0))
    live.held = lambda name: "Cannot evict pod; The disruption budget web needs 3 healthy pods and has 3 currently"
    assert moving.blocking_budgets(live.cluster) == ["shop/web"]
    with pytest.raises(MoveError, match=r"a: the pod shop/web-1 was not let go for 30 s: .* budget web needs 3"):
        live.drain()
    assert live.now < PATIENCE + 5


def test_an_api_server_with_too_much_to_do_is_asked_again(tmp_path: Path) -> None:
    with serving(ApiServer()) as server:
        server.too_busy = {"/api/v1/namespaces/shop/pods/web-1/eviction"}
        reason = Cluster(server.write_kubeconfig(tmp_path / "kubeconfig")).evict(pod("web-1", "a"))
    assert reason == "Too many requests, please try again later."


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"{MORE_THAN_ONE}, which the eviction subresource does not support.", MORE_THAN_ONE),
        ("Internal error occurred: failed calling webhook", None),
    ],
)
def test_of_answers_500_that_of_two_budgets_is_one_of_the_pod(tmp_path: Path, message: str, reason: str | None) -> None:
    """As kube-apiserver answers the eviction of a pod that two budgets select (eviction.go)."""
    with serving(ApiServer()) as server:
        status = {"kind": "Status", "status": "Failure", "message": message, "code": 500}
        server.failing = {"/api/v1/namespaces/shop/pods/web-1/eviction": (500, status)}
        cluster = Cluster(server.write_kubeconfig(tmp_path / "kubeconfig"))
        if reason is None:
            with pytest.raises(ClusterError, match=r"500 .* failed calling webhook"):
                cluster.evict(pod("web-1", "a"))
        else:
            assert cluster.evict(pod("web-1", "a")).startswith(reason)


def test_a_pod_that_does_not_end_stops_the_move_by_name_when_its_own_time_is_over() -> None:
    live = Live(pod("web-1", "a"), pod("web-2", "a"))
    live.items[1]["metadata"] |= {"deletionTimestamp": "2026-11-23T10:00:00Z", "deletionGracePeriodSeconds": 60}
    with pytest.raises(MoveError, match=r"a: the pod shop/web-2 does not end, 30 s after the 60 s that it has"):
        live.drain()
    assert live.evicted == ["web-1"]
    assert 60 + PATIENCE < live.now < 60 + PATIENCE + 5


def test_the_first_pod_without_a_node_stops_the_move_by_name() -> None:
    live = Live(pod("web-1", "a"), pod("web-2", "a"))
    live.after = lambda name: live.items.append(pod(f"{name}-again", phase="Pending"))
    live.held = lambda name: "" if name == "web-1" else "the budget web"
    with pytest.raises(MoveError, match=r"the pod shop/web-1-again is without a node for 30 s: no NodePool fits"):
        live.drain()
    assert live.evicted == ["web-1"]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "Karpenter has said nothing of it yet"),
        (
            [("FailedScheduling", "0/3 nodes", "2026-11-23T10:00:00Z", "default-scheduler")],
            "has said nothing of it yet",
        ),
        (
            [
                ("Nominated", "on: nodeclaim/a", "2026-11-23T10:00:00Z"),
                ("FailedScheduling", "too large", "2026-11-23T11:00:00Z"),
            ],
            "No NodePool makes one for it, says Karpenter: too large: mend",
        ),
        (
            [
                ("Nominated", "on: nodeclaim/a", "2026-11-23T11:00:00Z"),
                ("FailedScheduling", "too large", "2026-11-23T10:00:00Z"),
            ],
            "Karpenter has decided, and its node is not there yet: on: nodeclaim/a: see",
        ),
    ],
)
def test_what_karpenter_makes_of_a_pod_without_a_node_is_told_as_it_tells_it(
    events: list[tuple[str, ...]], said: str
) -> None:
    live = Live(pod("web-1", "a"), pod("web-2", phase="Pending"))
    live.tell("web-1", "FailedScheduling", "another pod", "2026-11-23T12:00:00Z")
    for event in events:
        live.tell("web-2", *event)
    with pytest.raises(MoveError, match=f"{said}.*; then run the move again, or take it back, with -e undo=true"):
        live.drain()


def test_a_pod_that_somebody_holds_back_is_not_waited_for() -> None:
    gated = pod("held", phase="Pending", schedulingGates=[{"name": "quota"}])
    assert Live(pod("web-1", "a"), gated).drain().waited == 0


@pytest.mark.parametrize(("before", "broken"), [(3, {"shop/web"}), (1, set())])
def test_a_budget_that_is_broken_meanwhile_is_told(before: int, broken: set[str]) -> None:
    live = Live(pod("web-1", "a"), budget(healthy=before))

    def after(name: str) -> None:
        live.items[-1]["status"]["currentHealthy"] = 1

    live.after = after
    assert live.drain().broken == broken


def owned(name: str, kind: str, version: str = "apps/v1", **more: Any) -> dict[str, Any]:
    """A pod whose owner, `web`, makes another one."""
    made = pod(name, **more)
    reference = {"kind": kind, "apiVersion": version, "name": "web", "uid": "web-uid", "controller": True}
    made["metadata"]["ownerReferences"] = [reference]
    return made


def owner(kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "web", "namespace": "shop", "uid": "web-uid"}, "spec": spec} | (
        {"status": status} if status else {}
    )


JOB = ("Job", "batch/v1")


@pytest.mark.parametrize(
    ("whose", "after", "said"),
    [
        # A Job makes another pod ten seconds later, and an idle StatefulSet when the old one is gone.
        ((*JOB, {"completions": 1}), 11.0, "the pod shop/web-2 is without a node for 30 s"),
        (("StatefulSet", "apps/v1", {"replicas": 1}), 3.0, "the pod shop/web-2 is without a node for 30 s"),
        (("ReplicaSet", "apps/v1", {"replicas": 1}), None, "the ReplicaSet shop/web has fewer pods than before"),
        ((*JOB, {"parallelism": 1}), None, "the Job shop/web has fewer pods than before"),
    ],
)
def test_a_move_waits_for_the_pods_that_are_made_later(
    whose: tuple[str, str, dict[str, Any]], after: float | None, said: str
) -> None:
    """It looked for pods without a node once, and said that all had moved: the group was scaled to nothing."""
    kind, version, spec = whose
    live = Live(owned("web-1", kind, version, on="a"), owner(kind, spec))

    def passing() -> None:
        if after is not None and live.now >= after and live.items[-1]["metadata"]["name"] != "web-2":
            live.items.append(owned("web-2", kind, version, phase="Pending"))

    live.passing = passing
    with pytest.raises(MoveError, match=said):
        live.drain()


@pytest.mark.parametrize(
    "whose",
    [
        [],
        [owner("ReplicaSet", {"replicas": 0})],
        [owner("ReplicaSet", {"replicas": 1}) | {"metadata": {"name": "web", "uid": "another"}}],
    ],
    ids=["gone", "scaled down", "another of its name"],
)
def test_an_owner_that_wants_no_more_pods_is_not_waited_for(whose: list[dict[str, Any]]) -> None:
    live = Live(owned("web-1", "ReplicaSet", on="a"), *whose)
    assert live.drain().pods == 1


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"completions": 1}, {"conditions": [{"type": "Failed", "status": "True"}]}),
        ({"completions": 2}, {"succeeded": 2}),
        ({"parallelism": 3}, {"succeeded": 1}),
    ],
)
def test_a_job_that_is_done_makes_no_more_pods(spec: dict[str, Any], status: dict[str, Any]) -> None:
    live = Live(owned("web-1", *JOB, on="a"), owner("Job", spec, **status))
    assert live.drain().pods == 1


def test_of_an_owner_that_does_not_say_how_many_it_wants_the_move_tells() -> None:
    live = Live(owned("web-1", "EphemeralRunner", "actions.github.com/v1alpha1", on="a"))
    done = live.drain()
    assert done.fewer == ["EphemeralRunner shop/web (it does not say how many it wants)"]
    assert live.now >= PATIENCE


@pytest.mark.parametrize(
    ("status", "fewer"),
    [
        ({"conditions": [{"type": "Failed", "status": "True"}]}, ["Job shop/web (it has failed)"]),
        ({"failedIndexes": "0,2-4"}, ["Job shop/web (4 indexes have failed)"]),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, []),
    ],
)
def test_a_job_that_fails_for_the_move_is_told(status: dict[str, Any], fewer: list[str]) -> None:
    """It counted as moved; and one with indexes was waited for until the move stopped."""
    live = Live(owned("web-1", *JOB, on="a"), owner("Job", {"completions": 4, "parallelism": 4}, **status))
    assert live.drain().fewer == fewer


def test_an_owner_that_makes_pods_one_after_the_other_is_waited_for_as_long_as_it_does() -> None:
    live = Live(
        *(owned(f"web-{number}", "StatefulSet", on="a") for number in range(4)), owner("StatefulSet", {"replicas": 4})
    )

    def passing() -> None:
        there = sum(one["kind"] == "Pod" for one in live.items)
        if not any(one["spec"].get("nodeName") == "a" for one in live.items) and live.now > 25 * (there + 1):
            live.items.append(owned(f"new-{there}", "StatefulSet", on="b"))

    live.passing = passing
    assert live.drain().pods == 4
    assert live.now > 3 * PATIENCE


def test_an_owner_that_is_being_deleted_is_not_waited_for() -> None:
    whose = owner("ReplicaSet", {"replicas": 1})
    whose["metadata"]["deletionTimestamp"] = "2026-11-23T10:00:00Z"
    assert Live(owned("web-1", "ReplicaSet", on="a"), whose).drain().fewer == []


def test_a_pod_that_was_ending_already_has_a_successor_too() -> None:
    """After Ctrl-C and the same command, the Job's next pod was not waited for."""
    live = Live(owned("web-1", *JOB, on="a"), owner("Job", {"completions": 1}))
    live.items[0]["metadata"]["deletionTimestamp"] = "2026-11-23T10:00:00Z"

    def passing() -> None:
        if live.now >= 3:
            live.items = [one for one in live.items if one["metadata"]["name"] != "web-1"]
        if live.now >= 13 and len(live.items) == 1:
            live.items.append(owned("web-2", *JOB, on="b"))

    live.passing = passing
    live.drain()
    assert live.now >= 13


@pytest.mark.parametrize("tolerates", [True, False])
def test_a_pod_that_comes_back_to_a_cordoned_node_is_not_evicted_for_ever(*, tolerates: bool) -> None:
    """Pods with `operator: Exists` were evicted each second, for ever."""
    more: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]} if tolerates else {}
    live = Live(pod("web-1", "a", **more))
    live.after = lambda name: live.items.append(pod(f"{name}x", "a", **more))
    done = live.drain()
    assert (done.pods == 1) == tolerates
    assert len(moving.still_there(live.cluster, [node("a")])) == 1
    assert live.now <= PATIENCE + 2


def test_a_pod_without_a_controller_that_comes_later_is_not_evicted() -> None:
    """`kubectl debug node/a` made one, which was evicted and counted as moved."""
    live = Live(node("a"), pod("debugger", "a", owner=""))
    live.items[0]["spec"]["unschedulable"] = True
    with pytest.raises(MoveError, match="the pod shop/debugger came since the move began"):
        live.drain()
    live = Live(pod("web-1", "a"))
    live.after = lambda name: live.items.append(pod("debugger", "a", owner=""))
    live.drain()
    assert live.evicted == ["web-1"]


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "team", "operator": "Exists"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "value": "x"}, False),
    ],
)
def test_which_pods_the_scheduler_gives_a_cordoned_node(toleration: dict[str, str], *, tolerates: bool) -> None:
    """As TolerationsTolerateTaint has it, for a taint without a value (component-helpers, scheduling/corev1)."""
    assert draining._tolerates(pod("web-1", "a", tolerations=[toleration])) is tolerates


def test_pods_of_others_that_come_and_go_are_not_waited_for() -> None:
    """With a job every few seconds there was always a pod without a node, and the move had no end."""
    live = Live(pod("web-1", "a"))

    def passing() -> None:
        live.items.append(pod(f"job-{live.now}", phase="Pending"))
        for one in live.items[:-3]:
            one["spec"]["nodeName"] = "b"

    live.passing = passing
    live.drain()
    assert live.now < PATIENCE


def test_cluster_autoscaler_is_found_among_the_deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    containers = [{"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0"}]
    autoscaler = {
        "kind": "Deployment",
        "metadata": {"name": "ca", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    live = Live(node("a", **{GROUP: "batch"}), pool("default"), autoscaler)
    monkeypatch.setattr(action, "Cluster", lambda: live)
    options = {"groups": ["batch"], "node_pools": [], "patience": 1, "accept_waiting": False, "accepted": []}
    with pytest.raises(FailedError, match="the Deployment kube-system/ca is Cluster Autoscaler"):
        call("move.move", {**options, "state": "cordoned"}, check=False)
    with pytest.raises(FailedError, match="patience: Input should be greater than 0"):
        call("move.move", {**options, "state": "cordoned", "patience": -5}, check=False)
    assert live.changed == []


def test_a_pod_whose_owner_is_no_controller_would_be_lost() -> None:
    """It was evicted, and nothing made another one."""
    kept = pod("kept", "a")
    kept["metadata"]["ownerReferences"] = [{"kind": "ConfigMap", "apiVersion": "v1", "name": "batch", "uid": "batch"}]
    live = Live(node("a", **{GROUP: "batch"}), kept, pool("default"))
    assert "shop/kept on a would not come again, for no controller has made it" in live.refused()


def test_a_pod_that_stays_although_its_eviction_is_answered_stops_the_move() -> None:
    live = Live(pod("web-1", "a"))
    kept = live.items
    live.after = lambda name: setattr(live, "items", kept)
    with pytest.raises(MoveError, match="web-1 is there 30 s after the API server has evicted it"):
        live.drain()


def test_a_node_that_is_uncordoned_meanwhile_stops_the_move() -> None:
    """After `undo`, each pod that came back was evicted again, without end."""
    live = Live(node("a"), pod("web-1", "a"))
    live.items[0]["spec"]["unschedulable"] = True
    live.after = lambda name: live.items.append(pod(f"{name}-again", "a"))

    def passing() -> None:
        if live.now >= 5:
            live.items[0]["spec"].pop("unschedulable", None)

    live.passing = passing
    with pytest.raises(MoveError, match="a takes new pods again"):
        live.drain()
    assert live.now < PATIENCE
