"""Several workloads in one story, in short form or as manifests: what is made, what is refused, what is wanted when."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scale_test.scenarios.manifests import COUNTED, Wanted
from scale_test.scenarios.objects import objects
from scale_test.scenarios.scenario import Scenario, ScenarioError, parse
from tests.unit.scale_test.full_scenario import FULL

PAUSE = "registry.k8s.io/pause"


def full(kind: str = "eks") -> Scenario:
    return parse(FULL, "full.yml").in_environment(kind)


def made(scenario: Scenario) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects(scenario)}


def changed(path: str, value: object) -> dict[str, Any]:
    """The full scenario with one value set."""
    data = copy.deepcopy(FULL)
    *parents, last = path.split(".")
    at: Any = data
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at[part]
    at[int(last) if isinstance(at, list) else last] = value
    return data


def test_what_others_need_is_made_first() -> None:
    assert list(made(full())) == [
        "Namespace full",
        "PriorityClass high",
        "PodDisruptionBudget web",
        "Deployment pasted",
        "Deployment web",
        "StatefulSet db",
        "DaemonSet agent",
        "Job batch",
        "EC2NodeClass full",
        "NodePool full",
    ]


def test_what_can_be_said_of_pods_is_said_in_kubernetes_words() -> None:
    web = made(full())["Deployment web"]["spec"]
    pod = web["template"]["spec"]
    assert web["template"]["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    assert pod["tolerations"] == [{"key": "team", "operator": "Exists"}]
    assert pod["affinity"] == {"podAntiAffinity": {}}
    assert pod["priorityClassName"] == "high"
    assert pod["topologySpreadConstraints"][0]["labelSelector"] == web["selector"]
    (volume,) = pod["volumes"]
    assert volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"] == {"requests": {"storage": "1Gi"}}


def test_each_kind_counts_its_pods_in_its_own_way() -> None:
    there = made(full())
    assert there["StatefulSet db"]["spec"]["replicas"] == 1
    assert there["StatefulSet db"]["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] == "zonal"
    assert "replicas" not in there["DaemonSet agent"]["spec"]
    assert there["Job batch"]["spec"]["parallelism"] == 3
    assert "selector" not in there["Job batch"]["spec"]
    assert full().wanted_after(-1) == {
        "pasted": Wanted(1, f"{PAUSE}:3.10"),
        "web": Wanted(2, f"{PAUSE}:3.9"),
        "db": Wanted(1, f"{PAUSE}:3.10"),
        "agent": Wanted(None, f"{PAUSE}:3.10"),
        "batch": Wanted(3, f"{PAUSE}:3.10"),
    }


def test_pasted_pods_are_the_storys_too() -> None:
    template = made(full())["Deployment pasted"]["spec"]["template"]
    assert template["metadata"]["labels"] == {
        "app": "pasted",
        "app.kubernetes.io/part-of": "karpstack-scale-test",
        "app.kubernetes.io/instance": "full",
        "karpstack.io/workload": "pasted",
    }
    assert FULL["manifests"][2]["spec"]["template"]["metadata"]["labels"] == {"app": "pasted"}


def test_steps_change_what_is_wanted() -> None:
    scenario = full()
    assert {name: want.pods for name, want in scenario.wanted_after(0).items()} == {
        "pasted": 2,
        "web": 3,
        "db": 1,
        "agent": None,
        "batch": 3,
    }
    assert scenario.replicas_after(0) == 9
    assert scenario.wanted_after(1)["web"].image == f"{PAUSE}:3.9"
    assert scenario.wanted_after(2)["web"] == Wanted(3, f"{PAUSE}:3.10")


def test_a_step_may_bring_a_workload_and_change_it() -> None:
    pasted = copy.deepcopy(FULL["manifests"][2])
    pasted["metadata"]["name"] = "later"
    more = copy.deepcopy(pasted)
    more["spec"]["replicas"] = 5
    data = copy.deepcopy(FULL)
    data["steps"] = [{"apply": [one], "expect": {"within": 60}} for one in (pasted, more)]
    scenario = parse(data, "full.yml")
    assert "later" not in scenario.wanted_after(-1)
    assert [scenario.wanted_after(index)["later"].pods for index in (0, 1)] == [1, 5]
    (applied,) = scenario.applied(scenario.steps[0])
    assert applied["metadata"]["namespace"] == "full"


def test_a_node_class_is_a_copy_that_is_different_in_each_environment() -> None:
    there = made(full())["EC2NodeClass full"]
    assert (there["copyOf"], there["spec"]) == ("default", {"tags": {"team": "a"}})
    there = made(full("aks-self-hosted"))["AKSNodeClass full"]
    assert (there["copyOf"], there["spec"]) == ("default", {})


def test_titles_say_what_is_done() -> None:
    assert [step.title for step in full().steps] == [
        "scale web to 3, pasted to 2",
        "apply ConfigMap settings",
        "roll out registry.k8s.io/pause:3.10 of web",
        "change node class full",
        "cordon 1 node in us-east-1a",
        "delete 1 node of spot of NodePool full",
        "everything out of capacity (us-east-1a)",
    ]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("manifests.1.kind", "ClusterRoleBinding", ["manifests.1", "makes no object of this kind", "PriorityClass"]),
        ("manifests.1.apiVersion", "policy/v1beta1", ["manifests.1", "write apiVersion: policy/v1"]),
        (
            "manifests.1.metadata",
            {"name": "a", "finalizers": ["b"]},
            ["manifests.1", "metadata has finalizers", "use of"],
        ),
        ("manifests.1.metadata.name", "A_b", ["manifests.1.metadata.name: 'A_b'", "Kubernetes would refuse"]),
        ("manifests.2.metadata.namespace", "kube-system", ["manifests.2.metadata.namespace", "which is full"]),
        ("manifests.2.metadata.name", "web", ["manifests.2.metadata.name: 'web'", "has a workload of this name"]),
        ("manifests.0.globalDefault", True, ["manifests.0", "other people's pods"]),
        ("manifests.2.spec.replicas", "many", ["manifests.2.spec.replicas: 'many'", "valid integer"]),
        ("manifests.2.spec.template.spec.containers", [], ["manifests.2.spec.template.spec.containers", "at least 1"]),
        (
            "manifests.2.spec.selector.matchLabels",
            {"app.kubernetes.io/instance": "mine"},
            [
                "manifests.2",
                "the story sets these labels itself",
                ": spec.selector.matchLabels app.kubernetes.io/instance",
            ],
        ),
        (
            "manifests.2.spec.template.metadata.labels",
            {"app.kubernetes.io/part-of": "shop"},
            [": spec.template.metadata.labels app.kubernetes.io/part-of; leave them out there"],
        ),
        (
            "manifests.2.metadata.labels",
            {"app.kubernetes.io/part-of": "shop", "karpstack.io/workload": "a"},
            [": metadata.labels app.kubernetes.io/part-of, metadata.labels karpstack.io/workload; leave"],
        ),
        (
            "manifests.1.spec.selector",
            {"matchLabels": {"app.kubernetes.io/part-of": "shop", "karpstack.io/workload": "web"}},
            ["manifests.1", "match no pod: spec.selector.matchLabels app.kubernetes.io/part-of; leave"],
        ),
        (
            "manifests.1.spec.selector",
            {"matchExpressions": [{"key": "app.kubernetes.io/part-of", "operator": "In", "values": ["shop"]}]},
            ["manifests.1", "match no pod: spec.selector.matchExpressions app.kubernetes.io/part-of; leave"],
        ),
        (
            "manifests.2.spec.template.spec.topologySpreadConstraints",
            [{"labelSelector": {"matchLabels": {"app.kubernetes.io/part-of": "shop"}}}],
            [
                "topologySpreadConstraints.0.labelSelector.matchLabels app.kubernetes.io/part-of; leave",
            ],
        ),
        (
            "steps.1.apply",
            [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "web"},
                    "spec": {"selector": {"app.kubernetes.io/part-of": "shop"}},
                }
            ],
            ["steps.1.apply.0", "match no pod: spec.selector app.kubernetes.io/part-of; leave"],
        ),
        ("workloads.agent.replicas", 2, ["workloads.agent", "one pod on each node", "leave it out"]),
        ("workloads.web.kind", "ReplicaSet", ["workloads.web.kind: 'ReplicaSet'", "'StatefulSet'"]),
        ("workloads.web.volumes.0.size", "big", ["workloads.web.volumes.0.size: 'big'", "as a quantity"]),
        ("steps.0.scale", 3, ["steps.0.scale: 3", "4 workloads that can be scaled", "use of", "(this is step 1)"]),
        ("steps.0.scale", {"wbe": 3}, ["steps.0.scale.wbe", "did you mean web?"]),
        ("steps.0.scale", {"agent": 3}, ["steps.0.scale.agent", "no workload of this name that can be scaled"]),
        ("steps.0.scale", {"web": -1}, ["steps.0.scale.web: -1", "greater than or equal to 0"]),
        ("steps.1.apply.0.kind", "Secret", ["steps.1.apply.0", "makes no object of this kind", "(this is step 2)"]),
        (
            "steps.1.apply",
            [{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "a"}}],
            ["steps.1.apply.0.kind: 'StorageClass'", "write it under manifests"],
        ),
        ("steps.2.rollOut.workload", "wbe", ["steps.2.rollOut.workload: 'wbe'", "did you mean web?"]),
        ("steps.3.patchNodeClass.name", "default", ["steps.3.patchNodeClass.name: 'default'", "make a copy"]),
        ("steps.4.cordon.nodes", 0, ["steps.4.cordon", "say 1 or more, or all"]),
        ("steps.6.outOfCapacity.zones", [], ["steps.6.outOfCapacity", "name capacityTypes or zones"]),
    ],
)
def test_what_cannot_be_made_is_refused(path: str, value: object, said: list[str]) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(changed(path, value), "full.yml")
    for part in said:
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("given", "annotation"), [(True, "true"), ("true", "true"), ("30m", "30m"), ("1h30m", "1h30m"), (False, None)]
)
def test_pods_are_not_to_be_disrupted_for_ever_or_for_a_while(given: object, annotation: str | None) -> None:
    web = made(parse(changed("workloads.web.doNotDisrupt", given), "full.yml").in_environment("eks"))["Deployment web"]
    annotations = web["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("karpenter.sh/do-not-disrupt") == annotation


@pytest.mark.parametrize("given", ["0s", "soon", "30", 30, "-5m", []])
def test_what_karpenter_would_take_no_notice_of_is_refused(given: object) -> None:
    with pytest.raises(ScenarioError, match=r"workloads.web.doNotDisrupt: .*take no notice.*such as 30m"):
        parse(changed("workloads.web.doNotDisrupt", given), "full.yml")


def test_a_story_without_pods_is_refused() -> None:
    data = changed("workloads", {}) | {"manifests": []}
    data["steps"] = [{"observe": "nothing", "expect": {"within": 60}}]
    with pytest.raises(ScenarioError, match=r"workload: .*without a workload there are no pods"):
        parse(data, "full.yml")


def test_every_kind_with_pods_is_known() -> None:
    assert set(COUNTED) == {"Deployment", "StatefulSet", "DaemonSet", "Job"}


def test_a_workload_that_is_applied_without_a_number_keeps_its_pods() -> None:
    data = copy.deepcopy(FULL)
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": "example.com/app:2"}]}}},
    }
    data["workloads"] = {"web": {"replicas": 5}}
    data["manifests"] = []
    data["steps"] = [{"apply": [web], "expect": {"within": 60}}]
    assert parse(data, "full.yml").wanted_after(0)["web"].pods == 5


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (
            {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "system-x"}},
            "names that begin with system- are Kubernetes' own",
        ),
        (
            {
                "kind": "StorageClass",
                "apiVersion": "storage.k8s.io/v1",
                "metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            },
            "would give other people's claims this class",
        ),
        (
            {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "x"}, "copyOf": "y"},
            "copyOf is of nodeClasses",
        ),
    ],
)
def test_what_would_be_others_too_is_refused(manifest: dict[str, Any], said: str) -> None:
    data = copy.deepcopy(FULL) | {"manifests": [manifest]}
    with pytest.raises(ScenarioError, match=said):
        parse(data, "full.yml")
