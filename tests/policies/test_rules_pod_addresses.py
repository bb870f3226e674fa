"""rules/pod_addresses.py: one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.pod_addresses import NODE_MAX_PODS as MAX_PODS

MAX = ("spec", "kubelet", "maxPods")
NODE_CLASS = Resource(tokens.EC2_NODE_CLASS, {"spec": {"kubelet": {"maxPods": 110.0}}}, "class")
AKS_CLASS = Resource(tokens.AKS_NODE_CLASS, {"spec": {"maxPods": 110.0}}, "class")


def cilium(mask: object = 24.0, mode: str = "cluster-pool") -> Resource:
    ipam = {"mode": mode, "operator": {"clusterPoolIPv4MaskSize": mask}}
    return Resource(tokens.HELM_RELEASE, {"chart": "cilium", "values": {"ipam": ipam}}, "cilium")


CASES = [
    Case(name="fewer", rule=MAX_PODS, given=[cilium(), NODE_CLASS]),
    Case(name="as many", rule=MAX_PODS, given=[cilium(), NODE_CLASS.change(*MAX, to=252.0)]),
    Case(name="addresses of the VPC", rule=MAX_PODS, given=[cilium(mode="eni"), NODE_CLASS.without("spec", "kubelet")]),
    Case(name="no Cilium here", rule=MAX_PODS, given=[NODE_CLASS.change(*MAX, to=700.0)]),
    Case(
        name="one more",
        rule=MAX_PODS,
        given=[cilium(), NODE_CLASS.change(*MAX, to=253.0)],
        violations=("maxPods of class is 253; cilium gives each node a /24, which is 252 addresses",),
    ),
    Case(
        name="one more than the chart's own share",
        rule=MAX_PODS,
        given=[cilium(None), NODE_CLASS.change(*MAX, to=253.0)],
        violations=("cilium gives each node a /24",),
    ),
    Case(
        name="a smaller share",
        rule=MAX_PODS,
        given=[cilium(26.0), NODE_CLASS],
        violations=("maxPods of class is 110; cilium gives each node a /26, which is 60 addresses",),
    ),
    Case(
        name="Karpenter's own count",
        rule=MAX_PODS,
        given=[cilium(), NODE_CLASS.without("spec", "kubelet")],
        violations=("maxPods of class is not set",),
    ),
    Case(name="on AKS", rule=MAX_PODS, given=[AKS_CLASS]),
    Case(
        name="more than AKS takes",
        rule=MAX_PODS,
        given=[AKS_CLASS.change("spec", "maxPods", to=251.0)],
        violations=("spec.maxPods of class is 251",),
    ),
    Case(
        name="more than AKS takes, of its own pools",
        rule=MAX_PODS,
        given=[Resource(tokens.AKS_CLUSTER, {"agentPoolProfiles": [{"maxPods": 300.0}]}, "aks")],
        violations=("agentPoolProfiles[0].maxPods of aks is 300",),
    ),
    Case(
        name="the share is unknown, AKS's is not",
        rule=MAX_PODS,
        given=[cilium(UNKNOWN), NODE_CLASS, AKS_CLASS.change("spec", "maxPods", to=251.0)],
        violations=("spec.maxPods",),
        unknown="cilium.values.ipam.operator.clusterPoolIPv4MaskSize",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
