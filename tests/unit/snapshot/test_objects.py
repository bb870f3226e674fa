"""A snapshot as objects of a cluster: pods that ask for the same, and what is not loaded is said."""

from __future__ import annotations

from typing import Any

import pytest

from scale_test.recording import timeline
from snapshot.manifests import WORKLOAD_LABEL
from snapshot.objects import Loaded, objects
from snapshot.portability import Place
from snapshot.system_workloads import Existing
from tests.unit.snapshot.made import snapshot, workload

LABELS = {"app.kubernetes.io/part-of": "karpstack-scale-test", "app.kubernetes.io/instance": "whatif"}
INSTANCE = "snapshot.karpstack.io/app.kubernetes.io_instance"
NAME = "snapshot.karpstack.io/app.kubernetes.io_name"


def made(place: Place | None = None, **more: Any) -> Loaded:
    return objects(snapshot(**more), LABELS, place or Place())


def kinds(loaded: Loaded) -> list[str]:
    return [one["kind"] for one in loaded.objects]


def one_of(loaded: Loaded, kind: str) -> dict[str, Any]:
    (found,) = (one for one in loaded.objects if one["kind"] == kind)
    return found


def controller(kind: str, api_version: str = "apps/v1") -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind}


def affine(**terms: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def test_the_scale_test_knows_pods_by_the_same_label() -> None:
    assert WORKLOAD_LABEL == timeline.WORKLOAD_LABEL


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [("CronJob", "true", None), ("Job", "true", None), ("Job", "30m", "30m"), ("Deployment", "true", "true")],
)
def test_a_jobs_pod_holds_its_node_no_longer_than_it_may(kind: str, value: str, kept: str | None) -> None:
    of = controller(kind, "apps/v1" if kind == "Deployment" else "batch/v1")
    loaded = made(workloads=[workload("sums", controller=of, pod={"doNotDisrupt": value})])
    metadata = one_of(loaded, "Deployment")["spec"]["template"]["metadata"]
    assert metadata.get("annotations", {}).get("karpenter.sh/do-not-disrupt") == kept
    said = [note for note in loaded.notes if note.startswith("Loaded without karpenter.sh/do-not-disrupt")]
    assert [note.rpartition(": ")[2] for note in said] == ([] if kept else [f"shop/sums ({kind}, 3 pods)"])
    assert loaded.workloads["shop.sums"].pod.do_not_disrupt == kept


def test_a_deployment_is_made_with_all_that_scheduling_depends_on() -> None:
    pod = {
        "requests": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"},
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "hostPorts": [{"port": 8080}],
        "doNotDisrupt": "true",
        "deletionCost": -5,
        "terminationGracePeriodSeconds": 60,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "labels": {"app": "web"},
    }
    loaded = made(workloads=[workload(pod=pod)])
    assert kinds(loaded) == ["Namespace", "Deployment"]
    deployment = one_of(loaded, "Deployment")
    assert deployment["metadata"] == {"name": "web", "namespace": "shop", "labels": LABELS}
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["selector"] == {"matchLabels": {WORKLOAD_LABEL: "shop.web"}}
    template = deployment["spec"]["template"]
    assert template["metadata"] == {
        "labels": {"app": "web", **LABELS, WORKLOAD_LABEL: "shop.web"},
        "annotations": {"karpenter.sh/do-not-disrupt": "true", "controller.kubernetes.io/pod-deletion-cost": "-5"},
    }
    (container,) = template["spec"]["containers"]
    assert container["resources"] == {"requests": pod["requests"], "limits": {"nvidia.com/gpu": "1"}}
    assert container["ports"] == [{"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}]
    for key in ("nodeSelector", "tolerations", "topologySpreadConstraints", "terminationGracePeriodSeconds"):
        assert template["spec"][key] == pod[key]
    assert list(loaded.workloads) == ["shop.web"]
    assert loaded.notes == ()


def test_labels_that_are_taken_move_on_pods_and_in_every_selector() -> None:
    mine = {"app.kubernetes.io/instance": "web", "app.kubernetes.io/name": "web"}
    selector = {
        "matchLabels": mine,
        "matchExpressions": [{"key": "app.kubernetes.io/instance", "operator": "Exists"}],
    }
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": selector,
        "namespaceSelector": {"matchLabels": {"app.kubernetes.io/part-of": "x"}},
        "matchLabelKeys": ["app.kubernetes.io/instance", "pod-template-hash"],
    }
    pod = {
        "labels": mine,
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ],
    }
    loaded = made(
        workloads=[workload(pod=pod)],
        podDisruptionBudgets=[{"namespace": "shop", "name": "web", "selector": selector, "minAvailable": "50%"}],
        namespaces=[{"name": "shop", "labels": {"app.kubernetes.io/part-of": "x", "team": "a"}}],
    )
    moved = {
        "matchLabels": {INSTANCE: "web", NAME: "web"},
        "matchExpressions": [{"key": INSTANCE, "operator": "Exists"}],
    }
    template = one_of(loaded, "Deployment")["spec"]["template"]
    assert template["metadata"]["labels"][INSTANCE] == "web"
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "whatif"
    away = template["spec"]["affinity"]["podAntiAffinity"]
    wanted = {
        **term,
        "labelSelector": moved,
        "namespaceSelector": {"matchLabels": {"snapshot.karpstack.io/app.kubernetes.io_part-of": "x"}},
        "matchLabelKeys": [INSTANCE, "pod-template-hash"],
    }
    assert away["requiredDuringSchedulingIgnoredDuringExecution"] == [wanted]
    assert away["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"] == wanted
    assert template["spec"]["topologySpreadConstraints"][0]["labelSelector"] == moved
    assert one_of(loaded, "PodDisruptionBudget")["spec"] == {"minAvailable": "50%", "selector": moved}
    assert one_of(loaded, "Namespace")["metadata"]["labels"] == {
        "snapshot.karpstack.io/app.kubernetes.io_part-of": "x",
        "team": "a",
        **LABELS,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("k8s-app", "aws-node"),
        ("k8s-app", "kube-dns"),
        ("io.cilium/app", "operator"),
        ("app.kubernetes.io/name", "karpenter"),
    ],
)
def test_no_pod_is_taken_for_a_part_of_the_cluster(key: str, value: str) -> None:
    own = {key: value, "app": "x"}
    budget = {"namespace": "shop", "name": "web", "selector": {"matchLabels": own}, "maxUnavailable": 1}
    loaded = made(workloads=[workload(pod={"labels": own})], podDisruptionBudgets=[budget])
    labels = one_of(loaded, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert key not in labels
    selector = one_of(loaded, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert selector == {f"snapshot.karpstack.io/{key.replace('/', '_')}": value, "app": "x"}
    assert selector.items() <= labels.items()


def test_a_selector_of_all_is_no_selector_of_none() -> None:
    budgets = [
        {"namespace": "shop", "name": "all", "selector": {}, "maxUnavailable": 1},
        {"namespace": "shop", "name": "none", "maxUnavailable": 0},
    ]
    specs = [one["spec"] for one in made(podDisruptionBudgets=budgets).objects if one["kind"] == "PodDisruptionBudget"]
    assert specs == [{"maxUnavailable": 1, "selector": {}}, {"maxUnavailable": 0}]


@pytest.mark.parametrize(
    ("given", "kind", "number"),
    [
        (controller("StatefulSet"), "StatefulSet", "replicas"),
        (controller("ReplicaSet"), "Deployment", "replicas"),
        (controller("Job", "batch/v1"), "Deployment", "replicas"),
        (controller("CronJob", "batch/v1"), "Deployment", "replicas"),
        (controller("Pod", "v1"), "Deployment", "replicas"),
        (controller("Rollout", "argoproj.io/v1alpha1"), "Deployment", "replicas"),
        (controller("DaemonSet"), "DaemonSet", None),
        (controller("StatefulSet", "apps.kruise.io/v1beta1"), "Deployment", "replicas"),
    ],
)
def test_every_controller_has_a_kind_that_stands_for_it(given: Any, kind: str, number: str | None) -> None:
    loaded = made(workloads=[workload(controller=given)])
    spec = one_of(loaded, kind)["spec"]
    assert {key: value for key, value in spec.items() if key == "replicas"} == ({number: 3} if number else {})
    others = given["apiVersion"] != "apps/v1"
    assert bool(loaded.notes) == others
    if others:
        assert "Made as Deployments" in loaded.notes[0]
        assert "shop/web" in loaded.notes[0]


def test_priority_classes_that_pods_have_are_there() -> None:
    named = [("high", 5), ("unknown", 7), ("system-node-critical", 2000001000)]
    loaded = made(
        workloads=[
            workload(name, pod={"priorityClassName": name, "priority": priority, "preemptionPolicy": "Never"})
            for name, priority in named
        ],
        priorityClasses=[{"name": "high", "value": 5}, {"name": "unused", "value": 1}],
    )
    classes = {one["metadata"]["name"]: one for one in loaded.objects if one["kind"] == "PriorityClass"}
    assert {name: one["value"] for name, one in classes.items()} == {"high": 5, "unknown": 7}
    assert "preemptionPolicy" not in classes["high"]
    assert classes["unknown"]["preemptionPolicy"] == "Never"
    pods = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["priorityClassName"]
        for one in loaded.objects
        if one["kind"] == "Deployment"
    }
    assert pods == {name: name for name, _ in named}


def test_a_stateful_sets_volumes_are_where_they_were() -> None:
    places = [{"zones": ["us-east-1b"], "pods": 1}, {"zones": ["us-east-1a"], "pods": 1}]
    loaded = made(
        workloads=[workload(controller=controller("StatefulSet"), volumes=[{"size": "8Gi", "places": places}])]
    )
    volumes = [one for one in loaded.objects if one["kind"] == "PersistentVolume"]
    terms = [one["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms") for one in volumes]
    zones = [term and term[0]["matchExpressions"][0]["values"] for term in terms]
    claims = [one["spec"]["claimRef"]["name"] for one in volumes]
    # The third was on no volume of a zone; without one it would wait for ever.
    assert list(zip(claims, zones, strict=True)) == [
        ("volume-0-web-0", ["us-east-1a"]),
        ("volume-0-web-1", ["us-east-1b"]),
        ("volume-0-web-2", None),
    ]
    (template,) = one_of(loaded, "StatefulSet")["spec"]["volumeClaimTemplates"]
    assert template["metadata"]["name"] == "volume-0"
    assert template["spec"]["storageClassName"] == volumes[0]["spec"]["storageClassName"]
    assert kinds(loaded).index("PersistentVolume") < kinds(loaded).index("StatefulSet")


def test_pods_of_another_controller_with_volumes_of_their_own_are_a_stateful_set() -> None:
    volumes = [{"size": "8Gi", "places": [{"zones": ["us-east-1a"], "pods": 3}]}]
    loaded = made(workloads=[workload(controller=controller("Kafka", "kafka.strimzi.io/v1beta2"), volumes=volumes)])
    assert kinds(loaded) == ["Namespace", *["PersistentVolume"] * 3, "StatefulSet"]


def test_a_claim_that_workloads_share_is_made_once() -> None:
    volumes = [{"size": "8Gi", "claim": "data", "places": [{"zones": ["us-east-1a"], "pods": 3}]}]
    loaded = made(workloads=[workload(volumes=volumes), workload("other", volumes=volumes)])
    assert kinds(loaded) == ["Namespace", "PersistentVolume", "PersistentVolumeClaim", *["Deployment"] * 2]
    claim = one_of(loaded, "PersistentVolumeClaim")["metadata"]
    assert (claim["namespace"], claim["name"]) == ("shop", "data")
    for deployment in (one for one in loaded.objects if one["kind"] == "Deployment"):
        (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == "data"


@pytest.mark.parametrize(
    "volume",
    [{"size": "1Gi"}, {"size": "1Gi", "ephemeral": True, "places": [{"zones": ["us-east-1a"], "pods": 3}]}],
)
def test_volumes_that_hold_no_pod_anywhere_are_not_made(volume: Any) -> None:
    loaded = made(workloads=[workload(controller=controller("StatefulSet"), volumes=[volume])])
    assert kinds(loaded) == ["Namespace", "StatefulSet"]
    assert one_of(loaded, "StatefulSet")["spec"]["volumeClaimTemplates"] == []


DAEMONS = {"namespace": "kube-system", "controller": controller("DaemonSet")}


def loaded_into(existing: Existing, **more: Any) -> Loaded:
    return objects(snapshot(**more), LABELS, Place(), existing)


def test_no_workload_is_left_out_for_its_name() -> None:
    names = ["aws-node", "ebs-csi-node", "kube-proxy"]
    budget = {"namespace": "kube-system", "name": "coredns", "selector": {}, "maxUnavailable": 1}
    loaded = made(workloads=[workload(name, **DAEMONS) for name in names], podDisruptionBudgets=[budget])
    found = [(one["kind"], one["metadata"]["name"]) for one in loaded.objects]
    assert found == [*(("DaemonSet", name) for name in names), ("PodDisruptionBudget", "coredns")]
    assert loaded.notes == ()


def test_pods_of_a_kubelets_files_are_left_out_and_named() -> None:
    loaded = made(workloads=[workload("proxy", namespace="kube-system", controller=controller("Node", "v1"))])
    assert loaded.objects == ()
    assert "kubelets run these pods from files of their own: kube-system/proxy" in loaded.notes[0]


@pytest.mark.parametrize(
    ("own", "beside"),
    [
        ({"cpu": "500m", "memory": "1Gi"}, None),
        ({"cpu": "2", "memory": "4Gi"}, None),
        ({}, {"cpu": "500m", "memory": "1Gi"}),
        ({"cpu": "200m", "memory": "1Gi"}, {"cpu": "300m"}),
    ],
)
def test_a_daemon_set_that_the_cluster_has_is_made_up_to_the_snapshots_requests(
    own: dict[str, str], beside: dict[str, str] | None
) -> None:
    pod = {"requests": {"cpu": "500m", "memory": "1Gi"}, "labels": {"k8s-app": "cilium"}, "hostPorts": [{"port": 1}]}
    loaded = loaded_into(
        Existing({("DaemonSet", "kube-system", "cilium"): own}), workloads=[workload("cilium", **DAEMONS, pod=pod)]
    )
    found = {one["metadata"]["name"]: one["spec"]["template"] for one in loaded.objects}
    assert list(found) == (["cilium-snapshot"] if beside else [])
    assert "the cluster runs them itself: kube-system/cilium" in loaded.notes[0]
    for template in found.values():
        (container,) = template["spec"]["containers"]
        assert container["resources"]["requests"] == beside
        assert "ports" not in container
        assert "k8s-app" not in template["metadata"]["labels"]


@pytest.mark.parametrize(
    ("own", "requests"),
    [
        ({}, [{"cpu": "50m"}, {"cpu": "100m", "memory": "1Gi"}]),
        ({"cpu": "30m"}, [{"cpu": "20m"}, {"cpu": "100m", "memory": "1Gi"}]),
        ({"cpu": "80m", "memory": "1Gi"}, [{}, {"cpu": "70m"}]),
        ({"cpu": "2"}, [{}, {"memory": "1Gi"}]),
    ],
)
def test_daemon_sets_that_only_the_cluster_has_take_no_room_of_their_own(
    own: dict[str, str], requests: list[dict[str, str]]
) -> None:
    existing = Existing(
        {("DaemonSet", "kube-system", "cilium"): own, ("DaemonSet", "kube-system", "windows"): {"cpu": "1"}},
        on_pools=frozenset({("kube-system", "cilium")}),
    )
    asked = {
        "aws-node": {"cpu": "50m"},
        "kube-proxy": {"cpu": "100m", "memory": "1Gi"},
        "some": {"cpu": "1"},
    }
    loaded = loaded_into(
        existing,
        nodes=[{"name": "one", "nodePool": "general"}, {"name": "two", "nodePool": "general"}],
        workloads=[
            workload(
                name, **DAEMONS, pod={"requests": of}, nodes={"one": 1} if name == "some" else {"one": 1, "two": 1}
            )
            for name, of in asked.items()
        ],
    )
    found = [
        one["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        for one in loaded.objects
        if one["kind"] == "DaemonSet"
    ]
    assert found == [*requests, {"cpu": "1"}]  # the last one is not on every node
    assert bool(loaded.notes) == bool(own)


def test_pods_on_nodes_of_node_pools_are_made_beside_a_deployment_that_the_cluster_has() -> None:
    own = Existing({("Deployment", "kube-system", "coredns"): {}}, namespaces=frozenset({"karpenter"}))
    nodes = [{"name": "managed"}, {"name": "ours", "nodePool": "general"}]
    dns = {"namespace": "kube-system", "pod": {"labels": {"k8s-app": "kube-dns"}}}
    budgets = [
        {"namespace": "kube-system", "name": "dns", "selector": {"matchLabels": {"k8s-app": "kube-dns"}}},
        {"namespace": "kube-system", "name": "other", "selector": {"matchLabels": {"k8s-app": "other"}}},
    ]
    loaded = loaded_into(
        own,
        nodes=nodes,
        podDisruptionBudgets=budgets,
        workloads=[
            workload("coredns", **dns, nodes={"managed": 2, "ours": 1}),
            workload("web", namespace="karpenter"),  # the cluster has this namespace, and nothing of that name in it
        ],
    )
    found = [
        (one["kind"], one["metadata"]["name"], one["spec"].get("replicas")) for one in loaded.objects if "spec" in one
    ]
    assert found == [
        ("Deployment", "coredns-snapshot", 1),
        ("Deployment", "web", 3),
        ("PodDisruptionBudget", "other", None),
    ]
    assert "Namespace" not in kinds(loaded)


def test_workloads_without_pods_and_their_namespaces_are_not_made() -> None:
    loaded = made(
        workloads=[workload(replicas=0)],
        podDisruptionBudgets=[{"namespace": "shop", "name": "web", "selector": {}, "maxUnavailable": 1}],
    )
    assert loaded.objects == ()


def test_another_scheduler_is_told() -> None:
    loaded = made(workloads=[workload(pod={"schedulerName": "volcano"})])
    assert kinds(loaded) == ["Namespace", "Deployment"]
    assert "volcano schedules its pods, which is not there" in loaded.notes[0]


AZURE = Place("azure", "westeurope")


@pytest.mark.parametrize(
    ("pod", "place", "words"),
    [
        ({"nodeSelector": {"kubernetes.io/hostname": "ip-10-0-0-1"}}, Place(), "nodes get other names here"),
        (
            affine(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["ip-10-0-0-1"]}]),
            Place(),
            "a node that is called ip-10-0-0-1",
        ),
        (
            {"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}},
            AZURE,
            "node.kubernetes.io/instance-type m5.large, which is aws's and not azure's",
        ),
        ({"nodeSelector": {"beta.kubernetes.io/instance-type": "m5.large"}}, AZURE, "which is aws's and not azure's"),
        (
            {"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}},
            AZURE,
            "topology.kubernetes.io/zone us-east-1a, and the nodes here are in azure westeurope",
        ),
        (
            {"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}},
            Place("aws", "eu-west-1"),
            "the nodes here are in aws eu-west-1",
        ),
        (
            affine(matchExpressions=[{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["4"]}]),
            AZURE,
            "which nodes of aws have and those of azure have not",
        ),
    ],
)
def test_pods_that_no_node_here_can_hold_are_left_out_in_a_sentence_each(pod: Any, place: Place, words: str) -> None:
    loaded = made(place, workloads=[workload("never", pod=pod), workload("web")])
    assert [one["metadata"]["name"] for one in loaded.objects] == ["shop", "web"]
    (note,) = loaded.notes
    assert note.startswith("shop/never (Deployment, 3 pods) is not loaded: its pods need ")
    assert words in note


@pytest.mark.parametrize(
    ("pod", "place"),
    [
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}}, Place()),
        ({"nodeSelector": {"node.kubernetes.io/instance-type": "m5.large"}}, Place("aws", "eu-west-1")),
        ({"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}}, Place("aws", "us-east-1")),
        ({"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}}, Place("aws")),
        ({"nodeSelector": {"karpenter.sh/capacity-type": "spot"}}, AZURE),
        (affine(matchExpressions=[{"key": "karpenter.k8s.aws/instance-cpu", "operator": "DoesNotExist"}]), AZURE),
        (
            affine(
                matchExpressions=[{"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["x"]}]
            ),
            AZURE,
        ),
        (affine(matchExpressions=[{"key": "topology.kubernetes.io/zone", "operator": "Exists"}]), AZURE),
    ],
)
def test_pods_that_a_node_here_may_hold_are_loaded(pod: Any, place: Place) -> None:
    assert kinds(made(place, workloads=[workload(pod=pod)])) == ["Namespace", "Deployment"]


def test_one_term_that_can_hold_is_enough() -> None:
    terms = [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]},
        {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {"affinity": {"nodeAffinity": required}}
    assert kinds(made(workloads=[workload(pod=pod)])) == ["Namespace", "Deployment"]


def test_volumes_of_another_region_hold_no_pods() -> None:
    volumes = [{"size": "8Gi", "places": [{"zones": ["us-east-1a"], "pods": 3}]}]
    loaded = made(AZURE, workloads=[workload(controller=controller("StatefulSet"), volumes=volumes)])
    assert kinds(loaded) == ["Namespace", "StatefulSet"]
    assert "its volumes are not made, for their zones are not of this region" in loaded.notes[0]


def test_long_names_are_cut_and_stay_apart() -> None:
    long = "a" * 80
    loaded = made(workloads=[workload(long), workload(f"{long}b")])
    names = [one["metadata"]["name"] for one in loaded.objects if one["kind"] == "Deployment"]
    assert len(set(names)) == 2
    assert all(len(name) <= 52 for name in names)
    assert all(len(value) <= 63 for value in loaded.workloads)
    assert len(loaded.workloads) == 2
