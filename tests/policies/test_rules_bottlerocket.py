"""rules/bottlerocket.py: one good input, one mutation per clause, unknown values."""

from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.bottlerocket import BOTTLEROCKET_STARTS_CILIUM as STARTS

SYSCTLFIX = ("values", "sysctlfix")
REQUIREMENTS = ("spec", "template", "spec", "requirements")
CILIUM = Resource(tokens.HELM_RELEASE, {"chart": "cilium", "values": {}}, "cilium")


def node_class(**spec: Any) -> Resource:
    return Resource(tokens.EC2_NODE_CLASS, {"metadata": {"name": "default"}, "spec": spec}, "class")


def node_pool(*architectures: str, name: str = "default") -> Resource:
    requirements = [{"key": "kubernetes.io/arch", "operator": "In", "values": list(architectures)}]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}
    return Resource(tokens.NODE_POOL, {"spec": {"template": template}}, "pool")


BOTTLEROCKET = node_class(amiSelectorTerms=[{"alias": "bottlerocket@v1.50.0"}])
FOUND = ("pool admits arm64, its nodes have Bottlerocket by the node class default, and values.sysctlfix.enabled",)

CASES = [
    Case(name="amd64", rule=STARTS, given=[CILIUM, BOTTLEROCKET, node_pool("amd64")]),
    Case(
        name="another system",
        rule=STARTS,
        given=[CILIUM, node_class(amiSelectorTerms=[{"alias": "al2023@latest"}]), node_pool("arm64")],
    ),
    Case(
        name="a family beside a custom image",
        rule=STARTS,
        given=[CILIUM, node_class(amiFamily="AL2023", amiSelectorTerms=[{"id": "ami-1"}]), node_pool("arm64")],
    ),
    Case(name="another node class", rule=STARTS, given=[CILIUM, BOTTLEROCKET, node_pool("arm64", name="other")]),
    Case(name="no Cilium here", rule=STARTS, given=[BOTTLEROCKET, node_pool("arm64")]),
    Case(
        name="without the init container",
        rule=STARTS,
        given=[CILIUM.change(*SYSCTLFIX, to={"enabled": False}), BOTTLEROCKET, node_pool("arm64")],
    ),
    Case(
        name="arm64 too",
        rule=STARTS,
        given=[CILIUM, BOTTLEROCKET, node_pool("amd64", "arm64")],
        violations=FOUND,
    ),
    Case(
        name="any architecture",
        rule=STARTS,
        given=[CILIUM, BOTTLEROCKET, node_pool().change(*REQUIREMENTS, to=[])],
        violations=FOUND,
    ),
    Case(
        name="a custom image of the family",
        rule=STARTS,
        given=[
            CILIUM,
            node_class(amiFamily="Bottlerocket", amiSelectorTerms=[{"id": "ami-1"}]),
            node_pool("arm64"),
        ],
        violations=FOUND,
    ),
    Case(
        name="the image is unknown",
        rule=STARTS,
        given=[CILIUM, node_class(amiSelectorTerms=UNKNOWN), node_pool("arm64")],
        unknown="class.spec.amiSelectorTerms",
    ),
    Case(
        name="Cilium's values are unknown",
        rule=STARTS,
        given=[CILIUM.change(*SYSCTLFIX, to=UNKNOWN), BOTTLEROCKET, node_pool("arm64")],
        unknown="cilium.values.sysctlfix",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
