"""Several workloads in one story, in short form or as manifests: what is made, what is refused, what is wanted when."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from karpstack.scale_test.scenarios.manifests import ExpectedWorkload
from karpstack.scale_test.scenarios.objects import objects
from karpstack.scale_test.scenarios.scenario import Scenario, parse
from tests.unit.scale_test.full_scenario import FULL, with_value

PAUSE = "registry.k8s.io/pause"


def full(kind: str = "eks") -> Scenario:
    return parse(FULL, "full.yml").in_environment(kind)


def made(scenario: Scenario) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects(scenario)}


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
        "pasted": ExpectedWorkload(1, f"{PAUSE}:3.10"),
        "web": ExpectedWorkload(2, f"{PAUSE}:3.9"),
        "db": ExpectedWorkload(1, f"{PAUSE}:3.10"),
        "agent": ExpectedWorkload(None, f"{PAUSE}:3.10"),
        "batch": ExpectedWorkload(3, f"{PAUSE}:3.10"),
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
    assert scenario.wanted_after(2)["web"] == ExpectedWorkload(3, f"{PAUSE}:3.10")


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
    ("given", "annotation"), [(True, "true"), ("true", "true"), ("30m", "30m"), ("1h30m", "1h30m"), (False, None)]
)
def test_pods_are_not_to_be_disrupted_for_ever_or_for_a_while(given: object, annotation: str | None) -> None:
    web = made(parse(with_value(FULL, "workloads.web.doNotDisrupt", given), "full.yml").in_environment("eks"))[
        "Deployment web"
    ]
    annotations = web["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("karpenter.sh/do-not-disrupt") == annotation


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
