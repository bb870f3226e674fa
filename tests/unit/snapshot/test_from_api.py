"""A snapshot of a cluster's objects: what scheduling depends on is in it, and nothing that may be secret."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from karpenter.instance_types import Facts
from snapshot.anonymise import anonymised
from snapshot.from_api import snapshot_of
from snapshot.model import Snapshot, Workload
from snapshot.objects import objects
from snapshot.reading import as_data, checked
from tests.unit.snapshot import api

TAKEN = datetime(2026, 11, 22, 10, tzinfo=UTC)


def take(items: list[api.Item]) -> Snapshot:
    return snapshot_of(items, TAKEN, "exports")


@pytest.fixture(scope="module")
def taken() -> Snapshot:
    return take(api.cluster())


def named(snapshot: Snapshot, name: str) -> Workload:
    (found,) = (one for one in snapshot.workloads if one.name == name)
    return found


def left_out(snapshot: Snapshot) -> dict[str, int]:
    return {one.what: one.count for one in snapshot.left_out}


def test_nothing_secret_is_in_it(taken: Snapshot) -> None:
    text = json.dumps(as_data(taken))
    assert api.CANARY not in text
    assert "registry.acme.example" not in text


def test_it_is_what_its_file_says(taken: Snapshot) -> None:
    assert checked(as_data(taken)).snapshot == taken


def test_the_order_of_the_objects_is_none(taken: Snapshot) -> None:
    assert take(api.cluster()[::-1]) == taken


def test_pods_of_one_controller_are_one_workload(taken: Snapshot) -> None:
    assert {(one.name, one.controller.kind): (one.replicas, one.pending) for one in taken.workloads} == {
        ("agent", "DaemonSet"): (4, 0),
        ("kube-proxy", "Node"): (1, 0),
        ("ledger", "StatefulSet"): (3, 0),
        ("lonely", "Pod"): (1, 0),
        ("nightly", "CronJob"): (2, 0),
        ("payroll", "Deployment"): (3, 1),
        ("rollout-a", "Rollout"): (1, 0),
    }
    assert named(taken, "rollout-a").controller.api_version == "argoproj.io/v1alpha1"
    assert named(taken, "payroll").nodes == {f"ip-10-0-0-{number}.ec2.internal": 1 for number in (0, 1)}


def test_a_pod_has_all_that_scheduling_depends_on(taken: Snapshot) -> None:
    data = as_data(taken)
    (web,) = (one for one in data["workloads"] if one["name"] == "payroll")
    assert web["pod"] == {
        "labels": {"app": "payroll"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "nodeSelector": {"acme.example/tier": "gold"},
        "affinity": api.WEB["affinity"],
        "tolerations": [api.TOLERATION],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": api.SELECTOR,
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "priorityClassName": "gold",
        "priority": 1000,
    }


def test_a_daemon_sets_pods_are_bound_to_no_node_and_tolerate_what_they_say(taken: Snapshot) -> None:
    (agent,) = (one for one in as_data(taken)["workloads"] if one["name"] == "agent")
    assert agent["pod"] == {
        "labels": {"app": "agent"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "hostPorts": [{"port": 9100}],
    }


def test_volumes_are_where_they_are(taken: Snapshot) -> None:
    ledger = as_data(taken)["workloads"][2]
    assert ledger["name"] == "ledger"
    assert ledger["pod"]["doNotDisrupt"] == "true"
    assert ledger["volumes"] == [
        {
            "size": "8Gi",
            "storageClass": "fast-ssd",
            "places": [{"zones": [zone], "pods": 1} for zone in api.ZONES],
        }
    ]


def test_nodes_are_as_they_are(taken: Snapshot) -> None:
    price = Facts.load("aws").price("m5.large", "on-demand", "us-east-1", "us-east-1a", simulated=False)
    data = as_data(taken)
    assert data["cluster"] == {
        "cloud": "aws",
        "region": "us-east-1",
        "kubernetes": "v1.34.1-eks-113cf36",
        "nodes": 4,
        "pods": 15,
    }
    assert data["nodes"][0] == {
        "name": "ip-10-0-0-0.ec2.internal",
        "nodePool": "general",
        "instanceType": "m5.large",
        "zone": "us-east-1a",
        "capacityType": "on-demand",
        "created": "2026-11-20T08:00:00Z",
        "pricePerHour": price,
        "nodeClaim": "general-0",
        "architecture": "amd64",
        "labels": {"acme.example/tier": "gold"},
        "taints": [{"key": "acme.example/tier", "value": "gold", "effect": "NoSchedule"}],
        "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
        "allocatable": {"cpu": "1930m", "memory": "7291Mi", "pods": "29"},
    }
    spot = data["nodes"][-1]
    assert (spot["capacityType"], spot["architecture"]) == ("spot", "arm64")
    assert "pricePerHour" not in spot  # nobody knows it
    assert data["nodeClaims"][0]["conditions"] == ["Consolidatable", "Launched"]
    assert data["nodeClaims"][0]["node"] == "ip-10-0-0-0.ec2.internal"
    assert data["nodeClaims"][0]["requests"] == {"cpu": "1", "memory": "2Gi", "pods": "4"}


def test_of_node_classes_is_kept_what_says_how_large_nodes_are(taken: Snapshot) -> None:
    (kept,) = as_data(taken)["nodeClasses"]
    assert kept["spec"] == {
        "amiSelectorTerms": [{"alias": "al2023@v20261101"}],
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi", "volumeType": "gp3"}}],
        "kubelet": {"maxPods": 110},
    }
    assert kept["zones"] == list(api.ZONES)
    (pool,) = as_data(taken)["nodePools"]
    assert pool["spec"]["template"]["metadata"] == {"labels": {"acme.example/tier": "gold"}}


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


def test_labels_of_namespaces_are_kept_where_something_selects_by_them(taken: Snapshot) -> None:
    assert as_data(taken)["namespaces"] == [{"name": "kube-system"}, {"name": "shop", "labels": {"team": "gold"}}]


def test_it_says_what_it_left_out(taken: Snapshot) -> None:
    told = left_out(taken)
    assert told["images"] == 15
    assert told["environment variables"] == 45
    assert told["commands and arguments"] == 30
    assert told["objects of kind Secret"] == 1
    assert told["pods that have ended"] == told["pods that are ending"] == told["pods with scheduling gates"] == 1
    assert told["userData of node classes"] == told["kubelet.clusterDNS of node classes"] == 1
    assert told["annotations"] == 17  # one of every pod, the mirror's own, and the NodePool's
    assert told["labels of pods"] == 3


def test_without_pods_the_templates_say_how_many_there_are() -> None:
    taken = take([one for one in api.cluster() if one["kind"] != "Pod"])
    assert {one.name: (one.replicas, one.nodes) for one in taken.workloads} == {
        "nightly": (2, {}),
        "payroll": (3, {}),
        "rollout-a": (1, {}),
    }
    web = named(taken, "payroll").pod
    assert web.labels == {"app": "payroll"}
    assert web.requests == {"cpu": "500m", "memory": "1Gi"}


def test_pods_that_are_not_alike_are_workloads_of_their_own() -> None:
    items = api.cluster()
    pods = [one for one in items if one["kind"] == "Pod" and one["metadata"]["name"].startswith("payroll")]
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    taken = take(items)
    assert named(taken, "payroll").replicas == 2
    assert named(taken, "payroll-2").replicas == 1
    assert named(taken, "payroll-2").pod.requests["cpu"] == "2"


def test_what_the_format_does_not_have_is_named_and_the_rest_is_there() -> None:
    items = api.cluster()
    for one in items:
        if one["metadata"]["name"] == "lonely":
            one["spec"]["tolerations"] = [{"key": "a", "operator": "Exists", "newField": 1}]
        if one["metadata"]["name"] == "rollout-a-1-x":
            one["spec"]["tolerations"] = [{"key": "a", "operator": "Like", "value": "b"}]
    taken = take(items)
    assert named(taken, "lonely").pod.tolerations[0].key == "a"
    assert "newField of pods" in left_out(taken)
    assert left_out(taken)["objects of kind Pod that are not understood"] == 1
    # Its controller says what it would be.
    assert named(taken, "rollout-a").nodes == {}


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
    assert named(taken, "payroll").replicas == 3
    assert not any(one.name == "lonely" for one in taken.workloads)
    assert any("not understood" in what for what in left_out(taken))


@pytest.mark.parametrize("kind", ["Node", "NodeClaim", "NodePool", "EC2NodeClass", "PodDisruptionBudget", "Namespace"])
@pytest.mark.parametrize("broken", [{"spec": 5, "status": 5}, {"metadata": {"name": "x", "labels": 5}}])
def test_a_broken_object_of_another_kind_leaves_the_others_whole(kind: str, broken: Any) -> None:
    taken = take([{**one, **broken} if one["kind"] == kind else one for one in api.cluster()])
    assert named(taken, "payroll").replicas == 3


def test_owners_in_a_circle_have_an_end() -> None:
    items = api.cluster()
    for one in items:
        if one["metadata"]["name"] == "rollout-a-1":
            one["metadata"]["ownerReferences"] = api.owner("ReplicaSet", "rollout-a-1")
    assert named(take(items), "rollout-a-1").controller.kind == "ReplicaSet"


def test_a_claim_of_several_pods_is_theirs_together() -> None:
    items = api.cluster()
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-ledger-0"}}
    for one in items:
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith("payroll"):
            one["spec"]["volumes"].append(volume)
    (shared,) = named(take(items), "payroll").volumes
    assert shared.claim == "data-ledger-0"
    assert [(place.zones, place.pods) for place in shared.places] == [([api.ZONES[0]], 3)]


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


def test_what_a_daemon_set_itself_says_of_nodes_is_kept() -> None:
    arm = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    items = api.cluster()
    for one in items:
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith("agent"):
            node = one["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            node["nodeSelectorTerms"][0]["matchExpressions"] = [arm]
    affinity = named(take(items), "agent").pod.affinity
    assert affinity is not None
    assert affinity.model_dump(mode="json", by_alias=True, exclude_defaults=True) == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [arm]}]}
        }
    }
