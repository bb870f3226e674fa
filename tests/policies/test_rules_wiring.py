"""rules/wiring.py: each rule one good input, one mutation per clause, unknown values."""

import json
from dataclasses import replace
from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.wiring import DISCOVERY_RESOLVES as DISCOVERY
from rules.wiring import EVENT_RULES_COMPLETE as EVENTS
from rules.wiring import NODE_CLASS_DISCOVERY as BY_TAG
from rules.wiring import NODE_CLASS_RESOLVES as NODE_CLASS
from rules.wiring import TUNNEL_ADMITTED as TUNNEL

TAG = {"karpenter.sh/discovery": "example"}


def node_class(name: str = "default", token: str = tokens.EC2_NODE_CLASS, **spec: Any) -> Resource:
    terms = [{"tags": TAG}]
    spec = {"subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms, **spec}
    return Resource(token, {"metadata": {"name": name}, "spec": spec}, f"class-{name}")


def node_pool(kind: str = "EC2NodeClass", name: str = "default") -> Resource:
    reference = {"kind": kind, "name": name}
    return Resource(tokens.NODE_POOL, {"spec": {"template": {"spec": {"nodeClassRef": reference}}}}, "pool")


def aks(mode: str, default_node_pools: str = "Auto") -> Resource:
    profile = {"mode": mode, "defaultNodePools": default_node_pools}
    return Resource(tokens.AKS_CLUSTER, {"nodeProvisioningProfile": profile}, "aks")


AKS_CLASS = node_class("batch", tokens.AKS_NODE_CLASS)

NODE_CLASS_CASES = [
    Case(name="there", rule=NODE_CLASS, given=[node_class(), node_pool()]),
    Case(name="somebody else's", rule=NODE_CLASS, given=[node_pool()]),
    Case(name="AKS's own", rule=NODE_CLASS, given=[aks("Auto"), AKS_CLASS, node_pool("AKSNodeClass")]),
    Case(
        name="another name",
        rule=NODE_CLASS,
        given=[node_class("other"), node_pool()],
        violations=("nodeClassRef of pool is EC2NodeClass default, and the stack has EC2NodeClass other",),
    ),
    Case(
        name="another kind",
        rule=NODE_CLASS,
        given=[node_class(), node_pool("AKSNodeClass")],
        violations=("nodeClassRef of pool is AKSNodeClass default",),
    ),
    Case(
        name="AKS makes none",
        rule=NODE_CLASS,
        given=[aks("Auto", "None"), AKS_CLASS, node_pool("AKSNodeClass")],
        violations=("and the stack has AKSNodeClass batch",),
    ),
    Case(
        name="self-hosted",
        rule=NODE_CLASS,
        given=[aks("Manual"), AKS_CLASS, node_pool("AKSNodeClass")],
        violations=("and the stack has AKSNodeClass batch",),
    ),
    Case(
        name="one that may be it",
        rule=NODE_CLASS,
        given=[node_class("other"), Resource(tokens.EC2_NODE_CLASS, {}, "unasked"), node_pool()],
        unknown="unasked.metadata",
    ),
    Case(
        name="the reference is unknown",
        rule=NODE_CLASS,
        given=[node_class(), node_pool(name=UNKNOWN)],
        unknown="pool.spec.template.spec.nodeClassRef.name",
    ),
]

SUBNET = Resource(tokens.SUBNET, {"tags": {**TAG, "Name": "a"}}, "subnet")
PLAIN = Resource(tokens.SUBNET, {"tags": {"Name": "a"}}, "subnet")
GROUP = Resource(tokens.SECURITY_GROUP, {"tags": TAG}, "group")
SINGLE = Resource(
    tokens.TAG, {"key": "karpenter.sh/discovery", "value": "example"}, "tag", {"resourceId": ("cluster",)}
)
CLUSTER = Resource(tokens.CLUSTER, {}, "cluster")

DISCOVERY_CASES = [
    Case(name="carried", rule=DISCOVERY, given=[SUBNET, GROUP, node_class()]),
    Case(name="carried by a tag of its own", rule=DISCOVERY, given=[SUBNET, CLUSTER, SINGLE, node_class()]),
    Case(
        name="any value",
        rule=DISCOVERY,
        given=[SUBNET, GROUP, node_class(subnetSelectorTerms=[{"tags": {"Name": "*"}}])],
    ),
    Case(name="by id", rule=DISCOVERY, given=[SUBNET, GROUP, node_class(subnetSelectorTerms=[{"id": UNKNOWN}])]),
    Case(name="somebody else's network", rule=DISCOVERY, given=[node_class()]),
    Case(
        name="no subnet",
        rule=DISCOVERY,
        given=[PLAIN, GROUP, node_class()],
        violations=('spec.subnetSelectorTerms of class-default looks for [{"karpenter.sh/discovery": "example"}]',),
    ),
    Case(
        name="no security group",
        rule=DISCOVERY,
        given=[SUBNET, node_class()],
        violations=("spec.securityGroupSelectorTerms of class-default",),
    ),
    Case(
        name="another value",
        rule=DISCOVERY,
        given=[SUBNET.change("tags", "karpenter.sh/discovery", to="other"), GROUP, node_class()],
        violations=("spec.subnetSelectorTerms",),
    ),
    Case(
        name="tags that may be it",
        rule=DISCOVERY,
        given=[PLAIN.change("tags", "karpenter.sh/discovery", to=UNKNOWN), GROUP, node_class()],
        unknown="subnet.tags.karpenter.sh/discovery",
    ),
]

BY_TAG_CASES = [
    Case(name="by tag", rule=BY_TAG, given=[SUBNET, GROUP, node_class()]),
    Case(
        name="a subnet's id",
        rule=BY_TAG,
        given=[SUBNET, node_class(subnetSelectorTerms=[{"tags": TAG}, {"id": "subnet-1"}])],
        violations=("spec.subnetSelectorTerms[1] of class-default selects by id",),
    ),
    Case(
        name="an id that is not known yet is an id",
        rule=BY_TAG,
        given=[SUBNET, node_class(subnetSelectorTerms=[{"id": UNKNOWN}])],
        violations=("spec.subnetSelectorTerms[0] of class-default selects by id",),
    ),
    Case(
        name="a security group's id, the subnets are unknown",
        rule=BY_TAG,
        given=[SUBNET, node_class(subnetSelectorTerms=UNKNOWN, securityGroupSelectorTerms=[{"id": "a"}])],
        violations=("spec.securityGroupSelectorTerms[0] of class-default selects by id",),
        unknown="class-default.spec.subnetSelectorTerms",
    ),
    Case(
        name="ids in somebody else's network",
        rule=BY_TAG,
        given=[node_class(subnetSelectorTerms=[{"id": "subnet-1"}], securityGroupSelectorTerms=[{"id": "a"}])],
    ),
]

KINDS = {
    "interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state": ("aws.ec2", "EC2 Instance State-change Notification"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
    "health": ("aws.health", "AWS Health Event"),
}
QUEUE = Resource(tokens.QUEUE, {"name": "q", "arn": "arn:aws:sqs:us-east-1:1:q"}, "queue")


def karpenter(queue: object = "q") -> Resource:
    values = {"settings": {"interruptionQueue": queue}}
    return Resource(tokens.HELM_RELEASE, {"chart": "karpenter", "values": values}, "karpenter")


def rule(name: str) -> Resource:
    source, kind = KINDS[name]
    return Resource(
        tokens.EVENT_RULE, {"eventPattern": json.dumps({"source": [source], "detail-type": [kind]})}, f"rule-{name}"
    )


def target(name: str, queue: str = "queue") -> Resource:
    arn = f"arn:aws:sqs:us-east-1:1:{queue}"
    return Resource(tokens.EVENT_TARGET, {"arn": arn}, f"target-{name}", {"rule": (f"rule-{name}",), "arn": (queue,)})


def wired(*names: str) -> list[Resource]:
    return [karpenter(), QUEUE, *[rule(name) for name in names], *[target(name) for name in names]]


EVENT_CASES = [
    Case(name="all", rule=EVENTS, given=wired(*KINDS)),
    Case(
        name="the queue's name comes later, and an event never reaches it",
        rule=EVENTS,
        given=[replace(karpenter(UNKNOWN), comes_from={"values": ("queue",)}), *wired(*list(KINDS)[1:])[1:]],
        violations=("EC2 Spot Instance Interruption Warning",),
    ),
    Case(
        name="whether there is a queue is not known",
        rule=EVENTS,
        given=[karpenter(UNKNOWN), *wired(*KINDS)[1:]],
        unknown="karpenter.values.settings.interruptionQueue",
    ),
    Case(name="nobody listens", rule=EVENTS, given=[karpenter(""), QUEUE]),
    Case(
        name="all of EC2's in one rule",
        rule=EVENTS,
        given=[
            *wired("health"),
            Resource(tokens.EVENT_RULE, {"eventPattern": '{"source": ["aws.ec2"]}'}, "rule-state"),
            target("state"),
        ],
    ),
    Case(
        name="a target by name and ARN",
        rule=EVENTS,
        given=[
            *wired(*[name for name in KINDS if name != "health"]),
            rule("health").change("name", to="on-health"),
            Resource(tokens.EVENT_TARGET, {"rule": "on-health", "arn": QUEUE.properties["arn"]}, "target-health"),
        ],
    ),
    *[
        Case(
            name=f"without {name}",
            rule=EVENTS,
            given=wired(*[other for other in KINDS if other != name]),
            violations=(f"no event rule sends these to the queue: {KINDS[name][1]}",),
        )
        for name in KINDS
    ],
    Case(
        name="a rule without a target",
        rule=EVENTS,
        given=wired(*KINDS)[:-1],
        violations=("the events of rule-health reach no queue", "AWS Health Event"),
    ),
    Case(
        name="a target that is something else",
        rule=EVENTS,
        given=[*wired(*KINDS)[:-1], target("health", "other"), Resource(tokens.QUEUE_POLICY, {}, "other")],
        violations=("the events of rule-health reach no queue", "AWS Health Event"),
    ),
    Case(
        name="a pattern is unknown",
        rule=EVENTS,
        given=[
            resource.change("eventPattern", to=UNKNOWN) if resource.name == "rule-health" else resource
            for resource in wired(*KINDS)
        ],
        unknown="rule-health.eventPattern",
    ),
]

CILIUM = Resource(tokens.HELM_RELEASE, {"chart": "cilium", "values": {"tunnelProtocol": "vxlan"}}, "cilium")
MEMBERS = {"protocol": "udp", "fromPort": 8472.0, "toPort": 8472.0, "self": True}


def admitting(token: str, comes_from: dict[str, tuple[str, ...]], **properties: Any) -> Resource:
    ports = {"fromPort": 8472.0, "toPort": 8472.0}
    return Resource(token, {**ports, **properties}, "rule", {"securityGroupId": ("group",), **comes_from})


TUNNEL_CASES = [
    Case(name="the cluster's own group", rule=TUNNEL, given=[CILIUM, CLUSTER, SINGLE, node_class()]),
    Case(
        name="the cluster's own group, beside one that admits nothing",
        rule=TUNNEL,
        given=[CILIUM, CLUSTER, SINGLE, GROUP, node_class()],
    ),
    Case(
        name="the tag is on something else",
        rule=TUNNEL,
        given=[
            CILIUM,
            CLUSTER,
            Resource(tokens.TAG, SINGLE.properties, "tag", {"resourceId": ("group",)}),
            GROUP,
            node_class(),
        ],
        violations=("UDP 8472",),
    ),
    Case(
        name="another tag is on the cluster's own group",
        rule=TUNNEL,
        given=[CILIUM, CLUSTER, SINGLE.change("value", to="other"), GROUP, node_class()],
        violations=("UDP 8472",),
    ),
    Case(
        name="by a rule for another group",
        rule=TUNNEL,
        given=[
            CILIUM,
            GROUP,
            CLUSTER,
            admitting(
                tokens.SECURITY_GROUP_RULE, {"sourceSecurityGroupId": ("cluster",)}, type="ingress", protocol="udp"
            ),
            node_class(),
        ],
        violations=("UDP 8472",),
    ),
    Case(
        name="by a rule about itself",
        rule=TUNNEL,
        given=[
            CILIUM,
            GROUP,
            admitting(tokens.SECURITY_GROUP_RULE, {}, type="ingress", protocol="-1", self=True),
            node_class(),
        ],
    ),
    Case(name="between members", rule=TUNNEL, given=[CILIUM, GROUP.change("ingress", to=[MEMBERS]), node_class()]),
    Case(
        name="everything between members",
        rule=TUNNEL,
        given=[CILIUM, GROUP.change("ingress", to=[{"protocol": "-1", "self": True}]), node_class()],
    ),
    Case(
        name="by a rule of its own",
        rule=TUNNEL,
        given=[
            CILIUM,
            GROUP,
            admitting(
                tokens.SECURITY_GROUP_RULE, {"sourceSecurityGroupId": ("group",)}, type="ingress", protocol="udp"
            ),
            node_class(),
        ],
    ),
    Case(
        name="by an ingress rule of its own",
        rule=TUNNEL,
        given=[
            CILIUM,
            GROUP,
            admitting(tokens.SECURITY_GROUP_INGRESS_RULE, {"referencedSecurityGroupId": ("group",)}, ipProtocol="udp"),
            node_class(),
        ],
    ),
    Case(name="no Cilium here", rule=TUNNEL, given=[GROUP, node_class()]),
    Case(
        name="no tunnel", rule=TUNNEL, given=[CILIUM.change("values", "routingMode", to="native"), GROUP, node_class()]
    ),
    Case(name="nothing", rule=TUNNEL, given=[CILIUM, GROUP, node_class()], violations=("UDP 8472 between members",)),
    Case(
        name="WireGuard, inside which the tunnel goes",
        rule=TUNNEL,
        given=[
            CILIUM.change("values", "encryption", to={"enabled": True, "type": "wireguard"}),
            GROUP.change("ingress", to=[MEMBERS]),
            node_class(),
        ],
        violations=("UDP 51871 between members",),
    ),
    Case(
        name="no encryption",
        rule=TUNNEL,
        given=[
            CILIUM.change("values", "encryption", to={"enabled": False, "type": "wireguard"}),
            GROUP.change("ingress", to=[MEMBERS]),
            node_class(),
        ],
    ),
    *[
        Case(
            name=f"another {key}",
            rule=TUNNEL,
            given=[CILIUM, GROUP.change("ingress", to=[MEMBERS | {key: value}]), node_class()],
            violations=("class-default puts nodes into group",),
        )
        for key, value in (("protocol", "tcp"), ("toPort", 8000.0), ("self", False))
    ],
    Case(
        name="geneve",
        rule=TUNNEL,
        given=[
            CILIUM.change("values", "tunnelProtocol", to="geneve"),
            GROUP.change("ingress", to=[MEMBERS]),
            node_class(),
        ],
        violations=("UDP 6081",),
    ),
    Case(
        name="out only",
        rule=TUNNEL,
        given=[
            CILIUM,
            GROUP,
            admitting(tokens.SECURITY_GROUP_RULE, {"sourceSecurityGroupId": ("group",)}, type="egress", protocol="udp"),
            node_class(),
        ],
        violations=("UDP 8472",),
    ),
    Case(
        name="a rule is unknown",
        rule=TUNNEL,
        given=[CILIUM, GROUP.change("ingress", to=[MEMBERS | {"protocol": UNKNOWN}]), node_class()],
        unknown="group.ingress.0.protocol",
    ),
]

CASES = NODE_CLASS_CASES + DISCOVERY_CASES + BY_TAG_CASES + EVENT_CASES + TUNNEL_CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
