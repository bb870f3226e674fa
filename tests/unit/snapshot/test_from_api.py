"""A snapshot of a cluster's objects: what scheduling depends on is in it, and nothing that may be secret."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from karpstack.snapshot.anonymise import anonymised
from karpstack.snapshot.from_api import snapshot_of
from karpstack.snapshot.model import Snapshot
from karpstack.snapshot.objects import objects
from karpstack.snapshot.reading import as_data, checked
from tests.unit.snapshot import api

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("from_api.yml").read_text())
TAKEN = datetime(2026, 11, 22, 10, tzinfo=UTC)


def take(items: list[api.Item]) -> Snapshot:
    return snapshot_of(items, TAKEN, "exports")


@pytest.fixture(scope="module")
def taken() -> Snapshot:
    return take(api.cluster())


def replicas(snapshot: Snapshot) -> dict[str, int]:
    return {one.name: one.replicas for one in snapshot.workloads}


def left_out(snapshot: Snapshot) -> dict[str, int]:
    return {one.what: one.count for one in snapshot.left_out}


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_is_in_it(case: dict[str, Any]) -> None:
    items = [one for one in api.cluster() if one["kind"] not in case.get("without", [])]
    for kind, begins, more in case.get("change", []):
        chosen = [one for one in items if one["kind"] == kind and one["metadata"]["name"].startswith(begins)]
        assert chosen
        for one in chosen:
            one |= {key: {**one[key], **value} for key, value in more.items()}
    data, wanted = as_data(take(items)), case["answer"]
    assert {path: jmespath.search(path, data) for path in wanted} == wanted


def test_nothing_secret_is_in_it(taken: Snapshot) -> None:
    text = json.dumps(as_data(taken))
    assert api.CANARY not in text
    assert "registry.acme.example" not in text


def test_it_is_what_its_file_says(taken: Snapshot) -> None:
    assert checked(as_data(taken)).snapshot == taken


def test_the_order_of_the_objects_is_none(taken: Snapshot) -> None:
    assert take(api.cluster()[::-1]) == taken


@pytest.mark.parametrize(
    ("value", "started", "kept"),
    [
        ("6h", "2026-11-22T03:59:59Z", None),
        ("6h", "2026-11-22T04:00:01Z", "0h1m"),
        ("72h", "2026-11-20T00:00:00Z", "14h0m"),
        ("6h", "2026-11-23T00:00:00Z", "6h0m"),  # by a clock that is ahead
        ("true", "2026-11-01T00:00:00Z", "true"),
        ("6h", None, "6h"),
        ("soon", "2026-11-01T00:00:00Z", "soon"),
    ],
)
def test_a_pod_is_protected_for_the_rest_of_its_time(value: str, started: str | None, kept: str | None) -> None:
    items = api.cluster()
    (lonely,) = (one for one in items if one["metadata"]["name"] == "lonely")
    lonely["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": value}
    lonely["status"] = {"startTime": started} if started else {}
    made = take(items)
    (pod,) = (one.pod for one in made.workloads if one.name == "lonely")
    assert pod.do_not_disrupt == kept
    assert any("the time was over" in one.why for one in made.left_out) == (kept is None)


def test_do_not_disrupt_is_kept_of_nodes_and_node_pools() -> None:
    items = api.cluster()
    pools = [one for one in items if one["kind"] == "NodePool"]
    nodes = [one for one in items if one["kind"] == "Node"]
    for one, value in zip(nodes[:3], ("true", "false", "1h"), strict=True):  # Karpenter reads nothing else of a node
        one["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = value
    pools[0]["spec"]["template"]["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true"
    made = take(items)
    for of in (made, anonymised(made, b"key")):
        assert [one.do_not_disrupt for one in of.nodes[:3]] == [True, False, False]
        metadata = as_data(of)["nodePools"][0]["spec"]["template"]["metadata"]
        assert metadata["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}


@pytest.mark.parametrize(("kind", "part"), [("Node", "nodes"), ("NodeClaim", "nodeClaims")])
def test_it_says_which_nodes_are_being_deleted(kind: str, part: str) -> None:
    items = api.cluster()
    first = next(one for one in items if one["kind"] == kind)
    first["metadata"]["deletionTimestamp"] = "2026-11-22T09:59:00Z"
    of = take(items)
    for made in (of, anonymised(of, b"key")):
        assert sum(one.get("deleting", False) for one in as_data(made)[part]) == 1


@pytest.mark.parametrize("kind", ["NodePool", "EC2NodeClass"])
@pytest.mark.parametrize(
    ("deleted", "status", "ready"),
    [
        (None, None, True),
        (None, {}, True),
        (None, {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}, True),
        (None, {"conditions": [{"type": "Ready", "status": "False"}]}, False),
        (None, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, False),
        ("2026-11-22T09:59:00Z", {"conditions": [{"type": "Ready", "status": "True"}]}, False),
    ],
)
def test_it_says_of_what_karpenter_launches_nodes(kind: str, deleted: str | None, status: Any, ready: bool) -> None:
    items = api.cluster()
    (one,) = (one for one in items if one["kind"] == kind)
    one["metadata"]["deletionTimestamp"], one["status"] = deleted, status
    of = take(items)
    for made in (of, anonymised(of, b"key")):
        assert [one.ready for one in (made.node_pools if kind == "NodePool" else made.node_classes)] == [ready]


@pytest.mark.parametrize(
    ("images", "found"),
    [
        ([], []),
        ([["amd64"], ["amd64"]], ["amd64"]),
        ([["arm64"], ["amd64"]], ["amd64", "arm64"]),
        ([["amd64"], []], []),  # one does not say it
    ],
)
def test_of_images_only_the_architectures_are_in_it(images: list[list[str]], found: list[str]) -> None:
    items = api.cluster()
    (of_class,) = (one for one in items if one["kind"] == "EC2NodeClass")
    of_class["status"]["amis"] = [
        {
            "id": f"ami-{api.CANARY}",
            "name": api.CANARY,
            "requirements": [
                {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"},
                *({"key": "kubernetes.io/arch", "operator": "In", "values": values} for values in [each] if each),
            ],
        }
        for each in images
    ]
    of = take(items)
    assert api.CANARY not in json.dumps(as_data(of))
    for made in (of, anonymised(of, b"key")):
        assert [one.architectures for one in made.node_classes] == [found]


@pytest.mark.parametrize("key", ["taints", "startupTaints"])
def test_a_node_pool_with_the_time_of_a_taint_is_in_it(key: str) -> None:
    items = api.cluster()
    (pool,) = (one for one in items if one["kind"] == "NodePool")
    taint = {"key": "acme.example/tier", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    pool["spec"]["template"]["spec"][key] = [taint]
    (made,) = as_data(take(items))["nodePools"]
    assert made["spec"]["template"]["spec"][key] == [taint]


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": None},
        {"spec": 5},
        {"spec": {"containers": "x"}},
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}},
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "1e999999999"}}}]}},
        {"spec": {"containers": [{"ports": [{"hostPort": 70000}]}]}},
        {"spec": {"nodeSelector": {"a": 1}}},
        {"spec": {"affinity": [1]}},
        {"spec": {"affinity": {"nodeAffinity": "x"}}},
        {"metadata": {"name": "lonely", "namespace": "shop", "labels": [1]}},
        {"metadata": {"name": "lonely", "namespace": 1}},
        {"metadata": {"name": "Lonely One", "namespace": "shop"}},
        {"metadata": {"name": "lonely", "namespace": "shop", "ownerReferences": [1]}},
        {"metadata": "x"},
        {"status": "x"},
    ],
)
def test_a_broken_object_leaves_the_others_whole(broken: Any) -> None:
    items = api.cluster()
    taken = take([{**one, **broken} if one["metadata"]["name"] == "lonely" else one for one in items])
    assert replicas(taken)["payroll"] == 3
    assert "lonely" not in replicas(taken)
    assert any("not understood" in what for what in left_out(taken))


@pytest.mark.parametrize("kind", ["Node", "NodeClaim", "NodePool", "EC2NodeClass", "PodDisruptionBudget", "Namespace"])
@pytest.mark.parametrize("broken", [{"spec": 5, "status": 5}, {"metadata": {"name": "x", "labels": 5}}])
def test_a_broken_object_of_another_kind_leaves_the_others_whole(kind: str, broken: Any) -> None:
    taken = take([{**one, **broken} if one["kind"] == kind else one for one in api.cluster()])
    assert replicas(taken)["payroll"] == 3


def test_what_was_taken_can_be_loaded(taken: Snapshot) -> None:
    loaded = objects(taken, {"app.kubernetes.io/instance": "whatif"})
    made = [(one["kind"], one["metadata"]["name"]) for one in loaded.objects]
    assert made[:2] == [("Namespace", "shop"), ("PriorityClass", "gold")]
    assert [one for one in made if one[0] not in ("Namespace", "PriorityClass", "PersistentVolume")] == [
        ("DaemonSet", "agent"),
        ("StatefulSet", "ledger"),
        ("Deployment", "lonely"),
        ("Deployment", "nightly"),
        ("Deployment", "payroll"),
        ("Deployment", "rollout-a"),
        ("PodDisruptionBudget", "payroll"),
    ]


def test_the_controller_and_overlays_are_in_it(taken: Snapshot) -> None:
    assert taken.karpenter is None
    env = [{"name": "FEATURE_GATES", "value": "NodeOverlay=true"}, {"name": "CLUSTER_NAME", "value": api.CANARY}]
    container = {"name": "controller", "image": f"{api.CANARY}/controller:1.15.0", "env": env}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": api.metadata("karpenter", "kube-system"),
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    conditions = [{"type": "Ready", "status": "False"}]
    overlays = [
        {
            "apiVersion": "karpenter.sh/v1alpha1",
            "kind": "NodeOverlay",
            "metadata": api.metadata(name),
            "spec": {"requirements": [], "price": "0.05"},
            "status": {"conditions": conditions if name == "conflict" else [{**conditions[0], "status": "True"}]},
        }
        for name in ("conflict", "cheap")
    ]
    made = as_data(take([*api.cluster(), deployment, *overlays]))
    assert made["karpenter"] == {"version": "1.15.0", "featureGates": {"nodeOverlay": True}}
    assert [(one["name"], one.get("ready", True)) for one in made["nodeOverlays"]] == [
        ("cheap", True),
        ("conflict", False),
    ]
    assert api.CANARY not in json.dumps(made)
