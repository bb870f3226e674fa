"""Pods that need a label which only nodes of the clouds' own node groups have."""

from __future__ import annotations

from typing import Any

import pytest

from karpstack.snapshot.unschedulable import unschedulable
from tests.unit.snapshot.made import snapshot, workload

GROUP = {"eks.amazonaws.com/nodegroup": "blue"}
AGENT_POOL = {"kubernetes.azure.com/agentpool": "aksmanagedap"}
AZURE = {"cloud": "azure", "region": "westeurope"}


def said(pod: dict[str, Any], **more: Any) -> list[str]:
    return unschedulable(snapshot(workloads=[workload(pod=pod)], **more))


def affinity(*terms: dict[str, str], operator: str = "In") -> dict[str, Any]:
    found = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": [value]} for key, value in labels.items()]}
        for labels in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize("pod", [{"nodeSelector": GROUP}, affinity(GROUP), affinity(GROUP, GROUP)])
def test_a_label_of_managed_node_groups_is_said(pod: dict[str, Any]) -> None:
    (sentence,) = said(pod)
    assert sentence == (
        "shop/web: only nodes of a managed node group or agent pool have eks.amazonaws.com/nodegroup In [blue], and "
        "none that Karpenter makes; its pods (3) will wait for ever, unless the stack's own system nodes have it"
    )


@pytest.mark.parametrize(
    "pod",
    [
        affinity(GROUP, {"kubernetes.io/arch": "arm64"}),  # one of the terms is enough
        affinity(GROUP, operator="NotIn"),
        {"nodeSelector": {"agentpool": "blue"}},  # on AWS that is one's own
    ],
)
def test_what_needs_no_such_label_is_not(pod: dict[str, Any]) -> None:
    assert said(pod) == []


def test_one_that_a_node_pool_gives_may_be_needed() -> None:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"metadata": {"labels": GROUP}, "spec": {"nodeClassRef": reference}}
    pools = [{"name": "default", "spec": {"template": template}}]
    assert said({"nodeSelector": GROUP}, nodePools=pools) == []


def test_where_aks_makes_karpenters_machines_they_are_of_an_agent_pool() -> None:
    assert len(said({"nodeSelector": AGENT_POOL}, cluster=AZURE)) == 1
    assert len(said({"nodeSelector": {"agentpool": "blue"}}, cluster=AZURE)) == 1
    nodes = [{"name": "a", "nodePool": "default", "labels": AGENT_POOL}]
    assert said({"nodeSelector": AGENT_POOL}, cluster=AZURE, nodes=nodes) == []
    # A node of an agent pool of one's own says nothing of Karpenter's.
    assert len(said({"nodeSelector": AGENT_POOL}, cluster=AZURE, nodes=[{"name": "a", "labels": AGENT_POOL}])) == 1
