"""rules/node_pool_types.py: each rule one good input, one mutation per clause, unknown values, missing facts."""

from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.node_pool_types import NODE_POOL_COST_CEILING as COST
from rules.node_pool_types import NODE_POOL_MATCHES_TYPES as MATCHES
from rules.node_pool_types import NODE_POOL_MIN_VALUES as MIN_VALUES
from rules.node_pool_types import NODE_POOL_SPOT_DIVERSITY as SPOT
from rules.node_pool_types import NODE_POOLS_EXCLUSIVE as EXCLUSIVE
from rules.node_pool_types import STACK_COST_CEILING as STACK_COST

CATEGORY = "karpenter.k8s.aws/instance-category"
GENERATION = "karpenter.k8s.aws/instance-generation"
FAMILY = "karpenter.k8s.aws/instance-family"
TYPE = "node.kubernetes.io/instance-type"
CAPACITY = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
REQUIREMENTS = ("spec", "template", "spec", "requirements")


def required(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


M5_LARGE = required(TYPE, "In", "m5.large")


def pool(*requirements: dict[str, Any], name: str = "pool", **spec: Any) -> Resource:
    template = {"spec": {"requirements": list(requirements), "nodeClassRef": {"group": "karpenter.k8s.aws"}}}
    return Resource(tokens.NODE_POOL, {"spec": {"limits": {"cpu": 100.0}, "template": template, **spec}}, name)


def on_azure(*requirements: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> Resource:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"requirements": list(requirements), "nodeClassRef": {"group": "karpenter.azure.com"}},
    }
    return Resource(tokens.NODE_POOL, {"spec": {"limits": {"cpu": 100.0}, "template": template, **spec}}, "azure")


def limited(**limits: Any) -> Resource:
    return pool(M5_LARGE).change("spec", "limits", to=limits)


BANDWIDTH = required("karpenter.k8s.aws/instance-ebs-bandwidth", "Gt", "1000")
BANDWIDTH_UNKNOWN = "facts.karpenter.k8s.aws/instance-ebs-bandwidth"

CASES = [
    Case(name="some", rule=MATCHES, given=pool(required(CATEGORY, "In", "c", "m"), required(GENERATION, "Gt", "2"))),
    Case(name="all", rule=MATCHES, given=pool()),
    Case(
        name="on a third cloud",
        rule=MATCHES,
        given=pool(M5_LARGE).change("spec", "template", "spec", "nodeClassRef", "group", to="karpenter.example.com"),
        unknown="spec.template.spec.nodeClassRef.group",
    ),
    Case(
        name="a label of one's own narrows nothing", rule=MATCHES, given=pool(required("example.com/team", "In", "a"))
    ),
    Case(
        name="on Azure",
        rule=MATCHES,
        given=on_azure(
            required("karpenter.azure.com/sku-family", "In", "D"),
            labels={"kubernetes.azure.com/ebpf-dataplane": "cilium"},
        ),
    ),
    Case(
        name="reserved capacity is nobody's table's",
        rule=MATCHES,
        given=pool(required(CAPACITY, "In", "reserved")),
    ),
    Case(
        name="a category that does not exist",
        rule=MATCHES,
        given=pool(required(CATEGORY, "In", "q")),
        violations=("admit none of the",),
    ),
    Case(
        name="a generation that does not exist",
        rule=MATCHES,
        given=pool(required(GENERATION, "Gt", "90")),
        violations=("instance-generation Gt [90]",),
    ),
    Case(
        name="an architecture that the family does not have",
        rule=MATCHES,
        given=pool(required(FAMILY, "In", "m5"), required("kubernetes.io/arch", "In", "arm64")),
        violations=("admit none of the",),
    ),
    Case(
        name="Windows on ARM",
        rule=MATCHES,
        given=pool(required("kubernetes.io/arch", "In", "arm64"), required("kubernetes.io/os", "In", "windows")),
        violations=("admit none of the",),
    ),
    Case(
        name="a zone of another region",
        rule=MATCHES,
        given=pool(required(ZONE, "In", "eu-west-1a")),
        violations=("admit none of the",),
    ),
    Case(
        name="another region",
        rule=MATCHES,
        given=pool(required("topology.kubernetes.io/region", "In", "eu-west-1")),
        violations=("admit none of the",),
    ),
    Case(
        name="two that exclude each other",
        rule=MATCHES,
        given=pool(required(CATEGORY, "In", "c"), required(CATEGORY, "NotIn", "c")),
        violations=("can't all hold: karpenter.k8s.aws/instance-category In [c]; ",),
    ),
    Case(
        name="bounds with nothing between",
        rule=MATCHES,
        given=pool(required(GENERATION, "Gt", "4"), required(GENERATION, "Lt", "5")),
        violations=("can't all hold",),
    ),
    Case(
        name="a label of which nothing is known",
        rule=MATCHES,
        given=pool(BANDWIDTH),
        unknown=BANDWIDTH_UNKNOWN,
    ),
    Case(
        name="a contradiction beside a label of which nothing is known",
        rule=MATCHES,
        given=pool(BANDWIDTH, required(CATEGORY, "In", "c"), required(CATEGORY, "In", "m")),
        violations=("can't all hold",),
    ),
    Case(
        name="the requirements are unknown",
        rule=MATCHES,
        given=pool().change(*REQUIREMENTS, to=UNKNOWN),
        unknown=".".join(REQUIREMENTS),
    ),
    Case(name="none demanded", rule=MIN_VALUES, given=pool()),
    Case(
        name="enough",
        rule=MIN_VALUES,
        given=pool(required(FAMILY, "In", "m5", "m6i", "c5", minValues=3), required(TYPE, "Exists", minValues=15)),
    ),
    Case(
        name="fewer families than demanded, since some have no such generation",
        rule=MIN_VALUES,
        given=pool(required(FAMILY, "In", "m5", "m6i", "c5", minValues=3.0), required(GENERATION, "In", "5")),
        violations=("has minValues 3, and the instance types that the pool admits have 2 values of it: c5, m5",),
    ),
    Case(
        name="fewer capacity types",
        rule=MIN_VALUES,
        given=pool(required(CAPACITY, "In", "spot", minValues=2)),
        violations=("have 1 values of it: spot",),
    ),
    Case(
        name="fewer zones",
        rule=MIN_VALUES,
        given=pool(required(ZONE, "In", "us-east-1a", "eu-west-1a", minValues=2)),
        violations=("have 1 values of it: us-east-1a",),
    ),
    Case(
        name="minValues is unknown",
        rule=MIN_VALUES,
        given=pool(required(FAMILY, "In", "m5", minValues=UNKNOWN)),
        unknown=".".join([*REQUIREMENTS, "0", "minValues"]),
    ),
    Case(name="many", rule=SPOT, given=pool(required(CATEGORY, "In", "c", "m", "r"))),
    Case(name="no spot", rule=SPOT, given=pool(M5_LARGE, required(CAPACITY, "In", "on-demand"))),
    Case(
        name="one instance type",
        rule=SPOT,
        given=pool(M5_LARGE),
        violations=("1 instance types are admitted as spot, fewer than 15: m5.large",),
    ),
    Case(name="none at all", rule=SPOT, given=pool(required(CATEGORY, "In", "q"))),
    Case(
        name="one zone",
        rule=SPOT,
        given=pool(required(CATEGORY, "In", "c", "m"), required(ZONE, "In", "us-east-1a")),
        violations=("spot is admitted in 1 zones, fewer than 2: us-east-1a",),
    ),
    Case(
        name="more are wanted",
        rule=SPOT,
        given=pool(required(FAMILY, "In", "m5")),
        settings={"instanceTypes": 100.0, "zones": 7.0},
        violations=("fewer than 100", "fewer than 7"),
    ),
    Case(name="a label of which nothing is known", rule=SPOT, given=pool(BANDWIDTH), unknown=BANDWIDTH_UNKNOWN),
    Case(name="below", rule=COST, given=limited(cpu="100")),
    Case(name="on Azure", rule=COST, given=on_azure(required("karpenter.azure.com/sku-family", "In", "D"))),
    # An m5.large has 2 vCPUs and 8 GiB, and costs 0.096 USD/h.
    Case(
        name="above, by cores",
        rule=COST,
        given=limited(cpu="100"),
        settings={"usdPerHour": 4.0},
        violations=("up to 4.80 USD/h",),
    ),
    Case(
        name="above, by memory, which is scarcer",
        rule=COST,
        given=limited(cpu="100", memory="80Gi"),
        settings={"usdPerHour": 0.9},
        violations=("up to 0.96 USD/h",),
    ),
    Case(
        name="above, by nodes",
        rule=COST,
        given=limited(nodes=3.0),
        settings={"usdPerHour": 0.2},
        violations=("up to 0.29 USD/h",),
    ),
    Case(
        name="a static pool",
        rule=COST,
        given=pool(M5_LARGE, replicas=2.0).without("spec", "limits"),
        settings={"usdPerHour": 0.1},
        violations=("up to 0.19 USD/h",),
    ),
    Case(
        name="the dearest mix of two",
        rule=COST,
        # c5.large: 2 vCPUs, 4 GiB, 0.085 USD/h; r5.large: 2, 16, 0.126. 10 cores and 40 GiB are used up by 10/3 of the
        # one and 5/3 of the other. By cores alone it would be 0.63, by memory alone 0.85.
        given=pool(required(TYPE, "In", "c5.large", "r5.large")).change(
            "spec", "limits", to={"cpu": "10", "memory": "40Gi"}
        ),
        settings={"usdPerHour": 0.4},
        violations=("up to 0.49 USD/h",),
    ),
    Case(
        name="types that exceed the limit by themselves are not launched",
        rule=COST,
        given=pool(required(TYPE, "In", "m5.large", "u-6tb1.112xlarge")),
        settings={"usdPerHour": 5.0},
    ),
    Case(
        name="no limit",
        rule=COST,
        given=pool().without("spec", "limits"),
        violations=("nothing bounds the cost",),
    ),
    Case(name="the limit is unknown", rule=COST, given=limited(cpu=UNKNOWN), unknown="spec.limits.cpu"),
    Case(name="below", rule=STACK_COST, given=[pool(M5_LARGE)]),
    Case(
        name="above together, and one is unknown",
        rule=STACK_COST,
        given=[
            pool(M5_LARGE, name="a"),
            pool(M5_LARGE, name="b"),
            Resource(tokens.NODE_POOL, {}, "c"),
        ],
        settings={"usdPerHour": 9.0},
        violations=("up to 9.60 USD/h (a 4.80, b 4.80), more than 9",),
        unknown="c.spec",
    ),
    Case(
        name="exclusive by a requirement",
        rule=EXCLUSIVE,
        given=[pool(required(CATEGORY, "In", "c"), name="a"), pool(required(CATEGORY, "In", "m"), name="b")],
    ),
    Case(
        name="exclusive by different requirements",
        rule=EXCLUSIVE,
        given=[pool(required(CATEGORY, "In", "c"), name="a"), pool(required(FAMILY, "In", "m5"), name="b")],
    ),
    Case(
        name="exclusive by a label of one's own",
        rule=EXCLUSIVE,
        given=[pool(required("team", "In", "x"), name="a"), pool(required("team", "In", "y"), name="b")],
    ),
    Case(name="weighted", rule=EXCLUSIVE, given=[pool(name="a", weight=10.0), pool(name="b")]),
    Case(
        name="tainted",
        rule=EXCLUSIVE,
        given=[
            pool(name="a"),
            pool(name="b").change("spec", "template", "spec", "taints", to=[{"key": "batch", "effect": "NoSchedule"}]),
        ],
    ),
    Case(
        name="tainted with two values",
        rule=EXCLUSIVE,
        given=[
            pool(name=value).change(
                "spec", "template", "spec", "taints", to=[{"key": "team", "value": value, "effect": "NoSchedule"}]
            )
            for value in ("a", "b")
        ],
    ),
    Case(name="a static one", rule=EXCLUSIVE, given=[pool(name="a"), pool(name="b", replicas=3.0)]),
    Case(name="on two clouds", rule=EXCLUSIVE, given=[pool(name="a"), on_azure()]),
    Case(
        name="overlapping",
        rule=EXCLUSIVE,
        given=[pool(required(CATEGORY, "In", "c", "m"), name="a"), pool(required(FAMILY, "In", "m5"), name="b")],
        violations=("a and b both admit ",),
    ),
    Case(
        name="overlapping with one weight",
        rule=EXCLUSIVE,
        given=[pool(name="a", weight=5.0), pool(name="b", weight=5.0)],
        violations=("with the same taints and the weight 5",),
    ),
    Case(
        name="a label of which nothing is known",
        rule=EXCLUSIVE,
        given=[pool(BANDWIDTH, name="a"), pool(name="b")],
        unknown=BANDWIDTH_UNKNOWN,
    ),
    Case(
        name="one is unknown, two others overlap",
        rule=EXCLUSIVE,
        given=[pool(name="a"), pool(name="b"), Resource(tokens.NODE_POOL, {}, "c")],
        violations=("a and b both admit",),
        unknown="c.spec",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
