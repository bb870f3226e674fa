"""What a story makes on a cluster: a Namespace, what is deployed, its NodePools, whatever its file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy, one_of

from karpstack.scale_test.scenarios.environments import ENVIRONMENTS, Environment
from karpstack.scale_test.scenarios.manifests import IN_NO_NAMESPACE, KINDS
from karpstack.scale_test.scenarios.objects import objects
from karpstack.scale_test.scenarios.scenario import Scenario, ScenarioError, parse
from tests.mutations import mutations, taken
from tests.unit.scale_test.full_scenario import FULL

SCENARIOS = Path(__file__).resolve().parents[3] / "playbooks" / "scenarios"
LABELS = {"app.kubernetes.io/part-of": "karpstack-scale-test", "app.kubernetes.io/instance": "eks-cheapest-fit"}
KIND = "\n---\nkind: ClusterRoleBinding"
JINJA = "{{ lookup('pipe', 'touch evaluated') }}"


def shipped(name: str) -> Any:
    return yaml.safe_load((SCENARIOS / f"{name}.yml").read_text())


def environment(kind: str) -> Environment:
    return next(known for known in ENVIRONMENTS if known.kind == kind)


def made(scenario: Scenario) -> list[tuple[str, str, str, str]]:
    return [
        (one["apiVersion"], one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
        for one in objects(scenario)
    ]


def test_a_volume_is_for_a_claim_of_the_story() -> None:
    shown = shipped("zonal-volumes")
    for manifest in shown["manifests"]:
        manifest["spec"]["claimRef"]["namespace"] = "production"
    volumes = [one for one in objects(parse(shown, "zonal-volumes.yml")) if one["kind"] == "PersistentVolume"]
    assert {one["spec"]["claimRef"]["namespace"] for one in volumes} == {"zonal-volumes"}


def test_a_story_makes_what_its_scenario_says() -> None:
    namespace, deployment, pool = objects(parse(shipped("eks-cheapest-fit"), "eks-cheapest-fit.yml"))
    assert namespace == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": LABELS}}
    assert deployment["metadata"] == {"name": "inflate", "namespace": "other", "labels": LABELS}
    assert deployment["spec"]["template"] == {
        "metadata": {"labels": LABELS | {"karpstack.io/workload": "inflate"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"type": "karpenter"},
            "topologySpreadConstraints": [],
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"memory": "1Gi"}},
                }
            ],
        },
    }
    assert (pool["kind"], pool["metadata"]) == ("NodePool", {"name": "cheapest-fit", "labels": LABELS})
    assert pool["spec"] == shipped("eks-cheapest-fit")["nodePools"]["cheapest-fit"]


def test_pods_are_spread_by_the_storys_own_labels() -> None:
    scenario = parse(shipped("burst-1000"), "burst-1000.yml").in_environment("aks-nap")
    (spread,) = objects(scenario)[1]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread == {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 10,
        "minDomains": 100,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {
            "matchLabels": LABELS | {"app.kubernetes.io/instance": "burst-1000", "karpstack.io/workload": "inflate"}
        },
    }


@pytest.mark.parametrize("value", [f"x{KIND}", JINJA, "x y", "\x1b[31m"], ids=["kind", "jinja", "blank", "escape"])
@pytest.mark.parametrize(
    "key",
    [
        "name",
        "labels.0",
        "stacks.0",
        "workload.namespace",
        "workload.deployment.name",
        "workload.deployment.image",
        "workload.deployment.requests.memory",
        "workload.deployment.nodeSelector.type",
        "steps.0.expect.instanceTypes.0",
        "steps.0.expect.capacityType",
        "steps.0.expect.nodePool",
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused(key: str, value: str) -> None:
    data = shipped("eks-cheapest-fit")
    holder = data
    *path, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    for part in path:
        holder = holder[part]
    holder[last] = value
    with pytest.raises(ScenarioError) as refused:
        parse(data, "eks-cheapest-fit.yml")
    assert "cannot run until this is fixed" in str(refused.value)
    assert str(refused.value).startswith(f"eks-cheapest-fit.yml: {key.removesuffix('.0')}")
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    "image",
    [
        "pause",
        "registry.k8s.io/pause:3.10",
        "localhost:5000/a/b_c/d-e:v1.2_3",
        f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/pause@sha256:{'a' * 64}",
        f"registry.example.com:443/pause:1@sha256:{'0' * 64}",
    ],
)
def test_images_of_any_registry_are_taken(image: str) -> None:
    data = shipped("eks-cheapest-fit")
    data["workload"]["deployment"]["image"] = image
    parsed = parse(data, "eks-cheapest-fit.yml").workload.deployment
    assert parsed
    assert parsed.image == image


def seeds() -> SearchStrategy[Any]:
    told = (shipped(name) for name in ("drift", "capacity-shortage", "burst-1000", "churn"))
    return one_of(mutations(FULL), *map(mutations, told))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(seeds())
def test_a_scenario_is_refused_in_short_or_makes_its_own_alone(data: Any) -> None:
    scenario = taken(lambda: parse(data, "a.yml"), ScenarioError, names="a.yml: ")
    if scenario is None:
        return
    for kind in scenario.stacks:
        here = scenario.in_environment(kind)
        (first, *deployed), namespace = made(here), here.workload.namespace
        pools = [("karpenter.sh/v1", "NodePool", "", name) for name in here.node_pools]
        assert first == ("v1", "Namespace", "", namespace)
        assert deployed[len(deployed) - len(pools) :] == pools
        for api, made_kind, inside, _ in deployed[: len(deployed) - len(pools)]:
            node_class = environment(kind)
            known = {**KINDS, node_class.node_class_kind: node_class.node_class_api}
            assert known[made_kind] == api
            assert inside == ("" if made_kind in (*IN_NO_NAMESPACE, node_class.node_class_kind) else namespace)
        assert all(LABELS.keys() <= one["metadata"]["labels"].keys() for one in objects(here))
        json.dumps(objects(here))
        for index in range(-1, len(here.steps)):
            assert here.replicas_after(index) >= 0
            assert len(here.wanted_after(index)) >= 1
        assert all(step.title for step in here.steps)
