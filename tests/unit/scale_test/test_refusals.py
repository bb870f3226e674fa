"""NodePools, node classes and patches of them are judged by Karpenter's CRDs before anything is created."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scale_test.scenarios.scenario import ScenarioError, parse
from tests.unit.scale_test.full_scenario import FULL

POOL = "nodePools.full"
PATCH = {"patchNodePool": {"name": "full", "spec": {"weight": 5}}, "expect": {"within": 60}}
CLASS = {"patchNodeClass": {"name": "full", "spec": {"tags": {"a": "b"}}}, "expect": {"within": 60}}


def changed(path: str, value: object) -> dict[str, Any]:
    """FULL with a step that patches its NodePool, one that patches its node class, and one value set."""
    data = copy.deepcopy(FULL) | {"steps": [copy.deepcopy(step) for step in (PATCH, CLASS, PATCH)]}
    *parents, last = path.split(".")
    at: Any = data
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    at[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{POOL}.disuption", {"consolidateAfter": "10s"}, f"{POOL}.disuption: {{'consol.*: is no field .*disruption?"),
        (f"{POOL}.template.spec.expireAftr", "1h", f"{POOL}.template.spec.expireAftr: '1h': .*mean expireAfter?"),
        (f"{POOL}.weight", 101, f"{POOL}.weight: 101: 101 is greater than the maximum of 100, so .*/nodepools/ says"),
        (
            f"{POOL}.disruption.consolidationPolicy",
            "WhenEmtpy",
            f"{POOL}.*Policy: 'WhenEmtpy': is none of .*WhenEmpty?",
        ),
        (f"{POOL}.template.metadata.labels", {"a": 1}, f"{POOL}.template.metadata.labels.a: 1: .*put it in quotes"),
        (f"{POOL}.template.spec.requirements", None, f"{POOL}.template.spec.requirements: nothing: is required"),
        ("environments.eks.nodePools.full", {"wieght": 2}, "environments.eks.nodePools.full.wieght: 2: .* weight?"),
        ("steps.0.patchNodePool.spec", {"wieght": 30}, r"steps.0.patchNodePool.spec.wieght: 30: .*\(this is step 1\)"),
        ("steps.2.patchNodePool.spec", {"lmits": None}, "steps.2.patchNodePool.spec.lmits: nothing: .* limits?"),
        ("steps.2.patchNodePool.spec", {"replicas": 2}, "steps.2.patchNodePool.spec: .*'replicas': 2.* 'weight'"),
        ("steps.2.patchNodePool.spec", {"template": None}, "steps.2.patchNodePool.spec.template: nothing: is required"),
        ("nodeClasses.full.spec.amiSelectorTerm", [], "nodeClasses.full.spec.amiSelectorTerm: .* amiSelectorTerms?"),
        (
            "environments.aks-self-hosted.nodeClasses.full.spec",
            {"a": 1},
            "environments.aks-self.*spec.a: 1: .*AKSNodeC",
        ),
        ("steps.1.patchNodeClass.spec", {"usrData": None}, "steps.1.patchNodeClass.spec.usrData: nothing: .*userData?"),
        (
            "steps.1.patchNodeClass.spec",
            {"blockDeviceMappings": [{"ebs": {"volumeSiz": "1Gi"}}]},
            "steps.1.patchNodeClass.spec.blockDeviceMappings.0.ebs.volumeSiz: '1Gi': .*volumeSize?",
        ),
        ("steps.1.patchNodeClass.spec", {"userData": 1}, "steps.1.patchNodeClass.spec.userData: 1: .*put it in quotes"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused_before(path: str, value: object, said: str) -> None:
    data = changed(path, value)
    if "nodeClass" in path.lower():
        data["stacks"] = ["eks"] if "aks" not in path else ["eks", "aks-self-hosted"]
    with pytest.raises(ScenarioError, match=said.replace("?", r"\?")):
        parse(data, "full.yml")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("steps.0.patchNodePool.spec", {"limits": None, "disruption": {"budgets": [{"nodes": "1"}]}}),
        # Of a node class only the cluster knows what a patch is merged with.
        ("nodeClasses.full.spec", {"metadataOptions": {"httpTokens": "required"}, "amiFamily": "AL2023"}),
        ("nodeClasses.full.spec", {"userData": None}),
    ],
)
def test_what_may_be_right_is_taken(path: str, value: object) -> None:
    data = changed(path, value) | {"stacks": ["eks"], "environments": {}}
    parse(data, "full.yml")


def test_what_a_patch_is_not_to_blame_for_is_told_of_the_node_pool_alone() -> None:
    with pytest.raises(ScenarioError) as refused:
        parse(changed(f"{POOL}.disuption", {}), "full.yml")
    (line,) = str(refused.value).splitlines()
    assert line.startswith("full.yml: nodePools.full.disuption: {}: ")


def test_it_is_told_with_all_else_that_is_wrong() -> None:
    data = changed("steps.0.patchNodePool.spec", {"wieght": 1})
    data["steps"][2]["patchNodePool"]["name"] = "fool"
    data["nodePools"]["other"] = {"wieght": 2}
    with pytest.raises(ScenarioError) as refused:
        parse(data, "full.yml")
    told = [line.split(": ")[1] for line in str(refused.value).splitlines()]
    assert set(told) == {
        "environments.eks.nodePools.other",
        "environments.aks-self-hosted.nodePools.other",
        "steps.2.patchNodePool.name",
        "steps.0.patchNodePool.spec.wieght",
    }
