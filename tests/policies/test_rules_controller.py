"""rules/controller.py: each rule one good input, one mutation per clause, unknown values."""

from dataclasses import replace
from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource, judge
from rules import tokens
from rules.controller import CHARTS_PINNED as PINNED
from rules.controller import KARPENTER_AVAILABILITY as AVAILABILITY
from rules.controller import KARPENTER_CRD_VERSION as CRDS
from rules.controller import KARPENTER_FEATURE_GATES as GATES
from rules.controller import KARPENTER_OFF_ITS_NODES as OFF
from rules.controller import SPOT_INTERRUPTION_QUEUE as QUEUE

REFERENCE = ("spec", "template", "spec", "nodeClassRef")
ON_AWS = {"group": "karpenter.k8s.aws"}
SETTING = ("values", "settings", "interruptionQueue")


def release(chart: str = "oci://public.ecr.aws/karpenter/karpenter") -> Resource:
    properties = {"chart": chart, "values": {"settings": {"interruptionQueue": "example"}}}
    return Resource(tokens.HELM_RELEASE, properties, "controller")


def node_pool(*requirements: dict[str, Any]) -> Resource:
    properties = {"spec": {"template": {"spec": {"requirements": list(requirements), "nodeClassRef": ON_AWS}}}}
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
        name="the queue's name comes later",
        rule=QUEUE,
        given=[
            node_pool(),
            replace(release().change(*SETTING, to=UNKNOWN), comes_from={"values": ("queue",)}),
            Resource(tokens.QUEUE, {}, "queue"),
        ],
    ),
    Case(
        name="the queue is unknown",
        rule=QUEUE,
        given=[node_pool(), release().change(*SETTING, to=UNKNOWN)],
        unknown=".".join(("controller", *SETTING)),
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
        unknown="other.spec",
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
    Case(
        name="of which cloud is not said",
        rule=QUEUE,
        given=[node_pool(capacity("In", "spot")).without(*REFERENCE), WITHOUT],
        unknown="spec.template.spec.nodeClassRef.group",
    ),
    Case(
        name="on a third cloud",
        rule=QUEUE,
        given=[node_pool(capacity("In", "spot")).change(*REFERENCE, to={"group": "karpenter.example.com"}), WITHOUT],
        unknown="spec.template.spec.nodeClassRef.group",
    ),
]

RESOURCES = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
CRD_CHART = "oci://public.ecr.aws/karpenter/karpenter-crd"


def chart(name: str = "oci://public.ecr.aws/karpenter/karpenter", version: str | None = "1.14.1") -> Resource:
    return Resource(tokens.HELM_RELEASE, {"chart": name, "version": version}, name.rsplit("/", 1)[-1])


def with_values(**values: Any) -> Resource:
    return chart().change("values", to={"controller": {"resources": RESOURCES}, **values})


def kept_off(*terms: dict[str, Any]) -> Resource:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return with_values(affinity={"nodeAffinity": required})


def gated(**gates: Any) -> Resource:
    return release().change("values", "settings", "featureGates", to=gates)


NOT_THERE = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
ANYWHERE = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}
STATIC = Resource(
    tokens.NODE_POOL, {"spec": {"replicas": 3.0, "template": {"spec": {"nodeClassRef": ON_AWS}}}}, "static"
)
RESERVED = node_pool(capacity("In", "reserved", "spot"))
RESERVING = Resource(tokens.EC2_NODE_CLASS, {"spec": {"capacityReservationSelectorTerms": [{"id": "cr-1"}]}}, "class")
OVERLAY = Resource(tokens.NODE_OVERLAY, {"spec": {"weight": 1}}, "overlay")

CASES += [
    Case(name="one version", rule=PINNED, given=chart()),
    Case(name="in the archive's name", rule=PINNED, given=chart("./karpenter-1.14.1.tgz", None)),
    Case(name="in a folder", rule=PINNED, given=chart("./charts/karpenter", None)),
    Case(name="another chart", rule=PINNED, given=chart("coredns", None)),
    *[
        Case(name=f"no version of {name}", rule=PINNED, given=chart(name, None), violations=("is not set",))
        for name in ("karpenter", "oci://example.com/cilium", CRD_CHART)
    ],
    *[
        Case(name=f"the version {version}", rule=PINNED, given=chart(version=version), violations=("is not one",))
        for version in ("^1.14.0", "1.14.x", "1.14", ">1", "latest", "*")
    ],
    Case(name="unknown", rule=PINNED, given=chart().change("version", to=UNKNOWN), unknown="version"),
    Case(name="the same", rule=CRDS, given=[chart(), chart(CRD_CHART)]),
    Case(name="no controller here", rule=CRDS, given=[chart(CRD_CHART)]),
    Case(
        name="another",
        rule=CRDS,
        given=[chart(), chart(CRD_CHART, "1.13.0")],
        violations=("karpenter-crd has the version 1.13.0, and karpenter the version 1.14.1",),
    ),
    Case(name="none", rule=CRDS, given=[chart()], violations=("no release of karpenter-crd beside it",)),
    Case(
        name="one of them is unknown",
        rule=CRDS,
        given=[chart(), chart(CRD_CHART).change("version", to=UNKNOWN)],
        unknown="karpenter-crd.version",
    ),
    Case(
        name="a release that may be it",
        rule=CRDS,
        given=[chart(), Resource(tokens.HELM_RELEASE, {}, "other")],
        unknown="other.chart",
    ),
    Case(name="two by default", rule=AVAILABILITY, given=with_values()),
    Case(name="another chart", rule=AVAILABILITY, given=chart("cilium")),
    Case(
        name="one",
        rule=AVAILABILITY,
        given=with_values(replicas=1.0),
        violations=("values.replicas is 1, fewer than 2",),
    ),
    Case(
        name="fewer than wanted",
        rule=AVAILABILITY,
        given=with_values(replicas=2.0),
        settings={"replicas": 3.0},
        violations=("fewer than 3",),
    ),
    *[
        Case(
            name=f"without {kind} of {name}",
            rule=AVAILABILITY,
            given=with_values().without("values", "controller", "resources", kind, name),
            violations=(f"values.controller.resources.{kind}.{name} is not set",),
        )
        for kind, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory"))
    ],
    Case(
        name="the number is unknown, there are no resources",
        rule=AVAILABILITY,
        given=with_values(replicas=UNKNOWN, controller={}),
        violations=("requests.cpu", "requests.memory", "limits.memory"),
        unknown="values.replicas",
    ),
    Case(name="the chart's own", rule=OFF, given=with_values()),
    Case(name="another chart", rule=OFF, given=chart("cilium").change("values", to={"affinity": {}})),
    Case(name="in each term", rule=OFF, given=kept_off(NOT_THERE, NOT_THERE)),
    Case(name="in one of two terms", rule=OFF, given=kept_off(NOT_THERE, ANYWHERE), violations=("does not require",)),
    Case(name="no affinity", rule=OFF, given=with_values(affinity={}), violations=("does not require",)),
    Case(name="no terms", rule=OFF, given=kept_off(), violations=("does not require",)),
    Case(name="unknown", rule=OFF, given=with_values(affinity=UNKNOWN), unknown="values.affinity"),
    Case(name="none needed", rule=GATES, given=[release(), node_pool()]),
    Case(name="spot to spot", rule=GATES, given=[gated(spotToSpotConsolidation=True), node_pool()]),
    Case(name="a static pool", rule=GATES, given=[gated(staticCapacity=True), STATIC]),
    Case(name="reservations, on by themselves", rule=GATES, given=[release(), RESERVED, RESERVING]),
    Case(name="an overlay", rule=GATES, given=[gated(nodeOverlay=True), OVERLAY]),
    Case(
        name="a static pool, off",
        rule=GATES,
        given=[release(), STATIC],
        violations=("featureGates.staticCapacity of controller is off, and needed by static (replicas)",),
    ),
    Case(
        name="reservations, switched off",
        rule=GATES,
        given=[gated(reservedCapacity=False), RESERVED, RESERVING],
        violations=("needed by pool (capacity type reserved), class (capacityReservationSelectorTerms)",),
    ),
    Case(
        name="reservations on Azure, off by themselves",
        rule=GATES,
        given=[release(), RESERVED.change(*REFERENCE, to={"group": "karpenter.azure.com"})],
        violations=("featureGates.reservedCapacity",),
    ),
    Case(
        name="an overlay, off",
        rule=GATES,
        given=[gated(nodeOverlay=False), OVERLAY],
        violations=("featureGates.nodeOverlay",),
    ),
    Case(
        name="spot to spot without spot",
        rule=GATES,
        given=[gated(spotToSpotConsolidation=True), node_pool(capacity("In", "on-demand"))],
        violations=("spotToSpotConsolidation of controller is on, and no NodePool allows spot",),
    ),
    Case(
        name="spot to spot, and a pool that may allow spot",
        rule=GATES,
        given=[
            gated(spotToSpotConsolidation=True),
            node_pool(capacity("In", "on-demand")),
            Resource(tokens.NODE_POOL, {}, "other"),
        ],
        unknown="other.spec",
    ),
    Case(
        name="the gates are unknown",
        rule=GATES,
        given=[release().change("values", "settings", "featureGates", to=UNKNOWN), STATIC],
        unknown="controller.values.settings.featureGates",
    ),
    Case(
        name="one gate is unknown, another is off",
        rule=GATES,
        given=[gated(staticCapacity=UNKNOWN), STATIC, OVERLAY],
        violations=("featureGates.nodeOverlay",),
        unknown="controller.values.settings.featureGates.staticCapacity",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_the_release_is_named() -> None:
    (violation,) = judge(QUEUE, [node_pool(), WITHOUT]).violations
    assert violation[1] == WITHOUT.urn
