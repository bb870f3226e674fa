"""rules/controller.py: each rule one good input, one mutation per clause, unknown values."""

from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource, judge
from rules import tokens
from rules.controller import SPOT_INTERRUPTION_QUEUE as QUEUE

REFERENCE = ("spec", "template", "spec", "nodeClassRef")
SETTING = ("values", "settings", "interruptionQueue")


def release(chart: str = "oci://public.ecr.aws/karpenter/karpenter") -> Resource:
    properties = {"chart": chart, "values": {"settings": {"interruptionQueue": "example"}}}
    return Resource(tokens.HELM_RELEASE, properties, "controller")


def node_pool(*requirements: dict[str, Any]) -> Resource:
    properties = {"spec": {"template": {"spec": {"requirements": list(requirements)}}}}
    return Resource(tokens.NODE_POOL, properties, "pool")


def capacity(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "karpenter.sh/capacity-type", "operator": operator, "values": list(values)}


ARM = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
WITHOUT = release().without(*SETTING)
FOUND = ("interruptionQueue of controller is not set, and spot instances are allowed by pool",)

CASES = [
    Case(name="spot with a queue", rule=QUEUE, given=[node_pool(capacity("In", "spot")), release()]),
    Case(name="on-demand only", rule=QUEUE, given=[node_pool(capacity("In", "on-demand")), WITHOUT]),
    Case(name="anything but spot", rule=QUEUE, given=[node_pool(capacity("NotIn", "spot")), WITHOUT]),
    Case(
        name="two requirements that leave no spot",
        rule=QUEUE,
        given=[node_pool(capacity("In", "spot", "on-demand"), capacity("NotIn", "spot")), WITHOUT],
    ),
    Case(name="no controller here", rule=QUEUE, given=[node_pool(capacity("In", "spot"))]),
    Case(
        name="other charts",
        rule=QUEUE,
        given=[
            node_pool(),
            release("oci://public.ecr.aws/karpenter/karpenter-crd").without(*SETTING),
            release("cilium").without("values"),
        ],
    ),
    Case(
        name="spot on Azure, which has no queue",
        rule=QUEUE,
        given=[
            node_pool(capacity("In", "spot")).change(*REFERENCE, to={"group": "karpenter.azure.com"}),
            WITHOUT,
        ],
    ),
    Case(
        name="spot without a queue",
        rule=QUEUE,
        given=[node_pool(ARM, capacity("In", "spot", "on-demand")), WITHOUT],
        violations=FOUND,
    ),
    Case(name="any capacity type", rule=QUEUE, given=[node_pool(ARM), WITHOUT], violations=FOUND),
    Case(
        name="all but on-demand",
        rule=QUEUE,
        given=[node_pool(capacity("NotIn", "on-demand")), WITHOUT],
        violations=FOUND,
    ),
    Case(
        name="an empty queue",
        rule=QUEUE,
        given=[node_pool(), release().change(*SETTING, to="")],
        violations=FOUND,
    ),
    Case(name="no values", rule=QUEUE, given=[node_pool(), release().without("values")], violations=FOUND),
    Case(
        name="a chart in an archive",
        rule=QUEUE,
        given=[node_pool(), release("./charts/karpenter-1.14.1.tgz").without(*SETTING)],
        violations=FOUND,
    ),
    Case(
        name="the queue is unknown",
        rule=QUEUE,
        given=[node_pool(), release().change(*SETTING, to=UNKNOWN)],
        unknown=".".join(SETTING),
    ),
    Case(
        name="one release is unknown, another has no queue",
        rule=QUEUE,
        given=[node_pool(), Resource(tokens.HELM_RELEASE, {}, "other"), WITHOUT],
        violations=FOUND,
        unknown="other.chart",
    ),
    Case(
        name="one pool is unknown, another allows spot",
        rule=QUEUE,
        given=[Resource(tokens.NODE_POOL, {"spec": UNKNOWN}, "other"), node_pool(), WITHOUT],
        violations=FOUND,
        unknown="spec",
    ),
    Case(
        name="a pool's provider could not be asked",
        rule=QUEUE,
        given=[Resource(tokens.NODE_POOL, {}, "pool"), WITHOUT],
        unknown="pool.spec",
    ),
    Case(
        name="a release's provider could not be asked",
        rule=QUEUE,
        given=[node_pool(), Resource(tokens.HELM_RELEASE, {}, "controller")],
        unknown="controller.chart",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_the_release_is_named() -> None:
    (violation,) = judge(QUEUE, [node_pool(), WITHOUT]).violations
    assert violation[1] == WITHOUT.urn
