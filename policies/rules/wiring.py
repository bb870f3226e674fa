"""Wiring: what resources of a stack expect of each other, over the whole graph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pulumi_policy import PolicyResource

from karpstack.karpenter.addresses import PRIVATE, Network, contains, parse

from . import graph
from .clouds import CLOUDS
from .iam_documents import listed
from .rule import STRICTER_IN_PRODUCTION, Judgement, NotKnownError, Properties, StackRule, all_tags, section
from .shapes import EVENT_PATTERN
from .tokens import (
    AKS_CLUSTER,
    AKS_NODE_CLASS,
    CLUSTER,
    EC2_NODE_CLASS,
    EVENT_RULE,
    EVENT_TARGET,
    NODE_POOL,
    QUEUE,
    SECURITY_GROUP,
    SECURITY_GROUP_INGRESS_RULE,
    SECURITY_GROUP_RULE,
    SUBNET,
    TAG,
    VPC,
)
from .values import parsed

# Cilium's vxlan; 6081 is geneve's.
_TUNNEL_PORTS = {"vxlan": 8472, "geneve": 6081}
_WIREGUARD_PORT = 51871

#: What Karpenter's interruption controller listens for: source and detail-type of events, and the values in `detail` on
#: which it acts, where it ignores events with others.
_EVENTS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): {},
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): {},
    ("aws.ec2", "EC2 Instance State-change Notification"): {
        "state": ("stopping", "stopped", "shutting-down", "terminated")
    },
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): {},
    ("aws.health", "AWS Health Event"): {"service": ("EC2",), "eventTypeCategory": ("scheduledChange",)},
}
# Tags that EKS puts on the security group of a cluster.
_OF_EKS = re.compile(r"aws:eks:cluster-name$|kubernetes\.io/cluster/")
# An event bus has the events of its own account and region.
_WITHOUT_LOSS = frozenset({"source", "detail-type", "detail", "account", "region"})


def _node_class_resolves(resources: list[PolicyResource], judgement: Judgement) -> None:
    known: set[tuple[str, str]] = set()
    groups = {traits.node_class.rpartition(":")[2]: traits.group for traits in CLOUDS.values()}
    for api, token in (("EC2NodeClass", EC2_NODE_CLASS), ("AKSNodeClass", AKS_NODE_CLASS)):
        for resource in graph.of(resources, token):
            with judgement.part():
                known.add((api, graph.object_name(resource)))
    for cluster in graph.of(resources, AKS_CLUSTER):
        with judgement.part():
            profile = section(cluster.props, "nodeProvisioningProfile")
            if profile.get("mode") == "Auto" and profile.get("defaultNodePools") != "None":
                known |= {("AKSNodeClass", "default"), ("AKSNodeClass", "system-surge")}
    # Where a stack makes no node class at all, they are somebody else's.
    if not known and judgement.complete:
        return
    for pool in graph.of(resources, NODE_POOL):
        with judgement.part():
            reference = section(graph.output(pool, "spec"), "template", "spec").get("nodeClassRef") or {}
            kind, name, group = (reference.get(key) for key in ("kind", "name", "group"))
            if group and groups.get(str(kind), group) != group:
                judgement.violation(f"nodeClassRef.group of {pool.name} is {group}, not {groups[str(kind)]}.", pool.urn)
            if (kind, name) not in known and judgement.complete:
                names = ", ".join(sorted(" ".join(pair) for pair in known))
                judgement.violation(
                    f"nodeClassRef of {pool.name} is {kind} {name}, and the stack has {names}.", pool.urn
                )


def _discovery_resolves(resources: list[PolicyResource], judgement: Judgement) -> None:
    if not any(True for _ in graph.of(resources, SUBNET)):
        return  # the network is somebody else's
    known = list(graph.of(resources, SUBNET, SECURITY_GROUP, CLUSTER))
    # It is not known what these are on.
    unplaced = _single_tags(resources, judgement, lambda tag: not any(_is_on(tag, one) for one in known))
    subnets, groups = (
        [_Carrier(None, unplaced), *(_Carrier(one.resource, [*one.tags, *unplaced]) for one in found)]
        for found in (_carriers(resources, judgement, SUBNET), _carriers(resources, judgement, SECURITY_GROUP, CLUSTER))
    )
    for node_class in graph.of(resources, EC2_NODE_CLASS):
        for name, carriers in (("subnetSelectorTerms", subnets), ("securityGroupSelectorTerms", groups)):
            with judgement.part():
                terms = graph.output(node_class, "spec").get(name) or []
                resolved = False
                wanted = []
                for index in range(len(terms)):
                    with judgement.part():
                        if "tags" not in set(terms[index]):
                            resolved = True  # by id or name, which is no tag's matter
                            continue
                        term = dict(terms[index]["tags"])
                        wanted.append(term)
                        resolved = resolved or any(_matches(term, carrier) for carrier in carriers)
                if not resolved and judgement.complete:
                    judgement.violation(
                        f"spec.{name} of {node_class.name} looks for {json.dumps(wanted)}, and nothing in the stack "
                        "carries that.",
                        node_class.urn,
                    )


def _discovery_by_tag(resources: list[PolicyResource], judgement: Judgement) -> None:
    if not any(True for _ in graph.of(resources, SUBNET)):
        return  # the network is somebody else's, and may not be ours to tag
    for node_class in graph.of(resources, EC2_NODE_CLASS):
        for name in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
            with judgement.part():
                terms = graph.output(node_class, "spec").get(name) or []
                for index in range(len(terms)):
                    with judgement.part():
                        # The value may be unknown and is of no interest: that there is an id is.
                        if "id" in set(terms[index]):
                            judgement.violation(
                                f"spec.{name}[{index}] of {node_class.name} selects by id.", node_class.urn
                            )


class _Carrier(NamedTuple):
    """What carries tags, and these, as keys and values. A cluster stands for the security group that EKS makes."""

    resource: PolicyResource | None
    tags: Sequence[tuple[str, str]]


def _carriers(resources: list[PolicyResource], judgement: Judgement, *tokens: str) -> Iterator[_Carrier]:
    for resource in graph.of(resources, *tokens):
        tags: list[tuple[str, str]] = []
        with judgement.part():
            if resource.resource_type != CLUSTER:
                tags.extend(all_tags(resource.props).items())
        yield _Carrier(resource, tags + _single_tags(resources, judgement, partial(_is_on, carrier=resource)))


def _single_tags(
    resources: list[PolicyResource], judgement: Judgement, wanted: Callable[[PolicyResource], bool]
) -> list[tuple[str, str]]:
    """Those tags by ec2.Tag that are wanted."""
    found = []
    for tag in filter(wanted, graph.of(resources, TAG)):
        with judgement.part():
            found.append((graph.output(tag, "key"), graph.output(tag, "value")))
    return found


def _is_on(tag: PolicyResource, carrier: PolicyResource) -> bool:
    if sources := graph.sources(tag, "resourceId"):
        return carrier in sources
    on = graph.known(tag, "resourceId")
    return on is not None and graph.known(carrier, "id") == on


def _matches(term: dict[str, Any], carrier: _Carrier) -> bool:
    carried = list(carrier.tags)
    if carrier.resource and carrier.resource.resource_type == CLUSTER and any(map(_OF_EKS.match, term)):
        name = graph.output(carrier.resource, "name")
        carried += [("aws:eks:cluster-name", name), (f"kubernetes.io/cluster/{name}", "owned")]
    return all(any(key == has and value in ("*", found) for has, found in carried) for key, value in term.items())


def _events(resources: list[PolicyResource], judgement: Judgement) -> None:
    listening = []
    for release in graph.releases(resources, "karpenter", judgement):
        with judgement.part():
            if graph.has_queue(release):
                listening.append(release)
    if queues := list(graph.of(resources, QUEUE)):
        for release in listening:
            with judgement.part():
                _events_of(release, queues, resources, judgement)


def _events_of(
    release: PolicyResource, queues: list[PolicyResource], resources: list[PolicyResource], judgement: Judgement
) -> None:
    """Judge the events that reach the queue of one release of Karpenter."""
    given = graph.queues_of(release, queues)
    if not given:
        name = section(graph.values(release), "settings").get("interruptionQueue")
        names = ", ".join(str(queue.props.get("name")) for queue in queues)
        if judgement.complete:
            judgement.violation(
                f"values.settings.interruptionQueue of {release.name} is {name}, and the stack has {names}.",
                release.urn,
            )
        return
    targets = set(_rules_to(given, resources, judgement))
    seen: set[str] = set()
    lost: list[tuple[str, str, PolicyResource]] = []
    for rule in graph.of(resources, EVENT_RULE):
        with judgement.part():
            for kind, why in _kinds(rule, targets, given).items():
                if why:
                    lost.append((kind, why, rule))
                else:
                    seen.add(kind)
    missing = [kind for _, kind in _EVENTS if kind not in seen]
    if missing and judgement.complete:
        for why, urn in dict.fromkeys((why, rule.urn) for kind, why, rule in lost if kind in missing):
            judgement.violation(why, urn)
        judgement.violation(f"no event rule sends these to the queue: {', '.join(missing)}.", given[0].urn)


def _kinds(rule: PolicyResource, targets: set[str], queues: list[PolicyResource]) -> dict[str, str]:
    """Return which of Karpenter's events a rule is about, and why not all of them reach the queue; empty if they do."""
    if rule.props.get("scheduleExpression") and not rule.props.get("eventPattern"):
        return {}
    text = graph.output(rule, "eventPattern")
    pattern = parsed(text, EVENT_PATTERN, "an event pattern", "eventPattern", rule.urn)
    why = ""
    if rule.props.get("state") == "DISABLED" or rule.props.get("isEnabled") is False:
        why = f"{rule.name} is disabled, so it sends no events."
    elif not re.fullmatch("(.*/)?default|", bus := rule.props.get("eventBusName") or ""):
        why = f"{rule.name} is on the event bus {bus}, and the events of AWS come on the default bus only."
    elif rule.urn not in targets and (rule.props.get("name") or rule.name) not in targets:
        names = " or ".join(queue.name for queue in queues)
        why = f"the events of {rule.name} do not reach {names}, the queue of Karpenter."
    return {
        kind: why or _narrowed(rule, pattern, acted_on)
        for (source, kind), acted_on in _EVENTS.items()
        if _takes(rule, pattern, "source", source) and _takes(rule, pattern, "detail-type", kind)
    }


def _narrowed(rule: PolicyResource, pattern: Properties, acted_on: dict[str, tuple[str, ...]]) -> str:
    """Say by which keys a pattern leaves out events on which Karpenter acts; empty if it has none."""
    detail = section(pattern, "detail")
    keys = sorted(set(pattern) - _WITHOUT_LOSS)
    for key in detail:
        if key not in acted_on or not all(_takes(rule, detail, key, value) for value in acted_on[key]):
            keys.append(f"detail.{key}")
    return f"the pattern of {rule.name} takes only some of these events, by {', '.join(keys)}." if keys else ""


def _takes(rule: PolicyResource, pattern: Properties, key: str, value: str) -> bool:
    """Return whether a pattern takes events with a value; NotKnownError if a filter decides it."""
    if key not in set(pattern):
        return True
    entries = list(listed(pattern[key]))
    if value not in entries and any(isinstance(entry, Mapping) for entry in entries):
        what = f"{key} in the pattern of {rule.name} has a filter, and only exact values are judged"
        raise NotKnownError(what, rule.name, "eventPattern")
    return value in entries


def _rules_to(queues: list[PolicyResource], resources: list[PolicyResource], judgement: Judgement) -> Iterator[str]:
    """URNs, or names where they are written as text, of the rules that have one of the queues as a target."""
    for target in graph.of(resources, EVENT_TARGET):
        with judgement.part():
            if not any(queue in graph.sources(target, "arn") for queue in queues):
                arn = graph.output(target, "arn")
                if not any(arn == graph.output(queue, "arn") for queue in queues):
                    continue
            if rules := graph.sources(target, "rule"):
                yield from (rule.urn for rule in rules)
            else:
                yield graph.output(target, "rule")


def _tunnel(resources: list[PolicyResource], judgement: Judgement) -> None:
    port = None
    for release in graph.releases(resources, "cilium", judgement):
        with judgement.part():
            values = graph.values(release)
            if (values.get("routingMode") or "tunnel") == "tunnel":
                port = int(values.get("tunnelPort") or _TUNNEL_PORTS.get(values.get("tunnelProtocol") or "vxlan", 8472))
            encryption = section(values, "encryption")
            if encryption.get("enabled") is True and encryption.get("type") == "wireguard":
                port = _WIREGUARD_PORT  # inside which the tunnel's packets go
    if port is None:
        return
    for node_class in graph.of(resources, EC2_NODE_CLASS):
        with judgement.part():
            terms = graph.output(node_class, "spec").get("securityGroupSelectorTerms") or []
            wanted = [dict(terms[index]["tags"]) for index in range(len(terms)) if "tags" in set(terms[index])]
            clusters = _carriers(resources, judgement, CLUSTER)
            if not wanted or any(_matches(term, cluster) for cluster in clusters for term in wanted):
                # EKS's own group admits everything between its members.
                continue
            groups = [
                group.resource
                for group in _carriers(resources, judgement, SECURITY_GROUP)
                if group.resource and any(_matches(term, group) for term in wanted)
            ]
            admitted = any(_admits(resources, group, port, judgement) for group in groups)
            if groups and not admitted and judgement.complete:
                judgement.violation(
                    f"{node_class.name} puts nodes into {', '.join(group.name for group in groups)}, where UDP {port} "
                    "between members is not admitted.",
                    node_class.urn,
                )


def _admits(resources: list[PolicyResource], group: PolicyResource, port: int, judgement: Judgement) -> bool:
    for rule, from_members in _rules_of(resources, group):
        with judgement.part():
            if rule.get("type") not in (None, "ingress") or not _is_tunnel(rule, port):
                continue
            if from_members or rule.get("self") is True or _from_network(rule, group, resources):
                return True
    return False


def _rules_of(resources: list[PolicyResource], group: PolicyResource) -> Iterator[tuple[Properties, bool]]:
    """The rules of a security group, and whether each is about traffic from the group's members."""
    inline = group.props.get("ingress") or []
    yield from ((inline[index], False) for index in range(len(inline)))
    for rule in graph.of(resources, SECURITY_GROUP_RULE, SECURITY_GROUP_INGRESS_RULE):
        if group in graph.sources(rule, "securityGroupId"):
            keys = ("sourceSecurityGroupId", "referencedSecurityGroupId")
            yield rule.props, any(group in graph.sources(rule, key) for key in keys)


def _from_network(rule: Properties, group: PolicyResource, resources: list[PolicyResource]) -> bool:
    """Return whether a rule admits the VPC's whole range; a private range, where the VPC is not of the stack."""
    sources = [network for key in ("cidrBlocks", "cidrIpv4") for network in _networks(rule.get(key))]
    vpcs = list(graph.of(graph.sources(group, "vpcId"), VPC))
    if not vpcs and (named := graph.known(group, "vpcId")):
        vpcs = [vpc for vpc in graph.of(resources, VPC) if graph.known(vpc, "id") == named]
    wanted = [network for vpc in vpcs for network in _networks(graph.output(vpc, "cidrBlock"))]
    inside = [any(contains(source, network) for source in sources) for network in wanted or PRIVATE]
    return all(inside) if wanted else any(inside)


def _networks(cidrs: Any) -> Iterator[Network]:
    for cidr in listed(cidrs):
        with suppress(ValueError):  # other rules say that it is none
            yield parse(cidr)


def _is_tunnel(rule: Properties, port: int) -> bool:
    protocol = str(rule.get("protocol") or rule.get("ipProtocol")).lower()
    if protocol in ("-1", "all"):
        return True
    return protocol in ("udp", "17") and int(rule.get("fromPort") or 0) <= port <= int(rule.get("toPort") or 0)


NODE_CLASS_RESOLVES = StackRule(name="node-class-resolves", check=_node_class_resolves)

DISCOVERY_RESOLVES = StackRule(name="discovery-resolves", check=_discovery_resolves)

NODE_CLASS_DISCOVERY = StackRule(
    name="node-class-discovery",
    enforcement=STRICTER_IN_PRODUCTION,
    check=_discovery_by_tag,
)

EVENT_RULES_COMPLETE = StackRule(name="event-rules-complete", check=_events)

TUNNEL_ADMITTED = StackRule(name="tunnel-admitted", check=_tunnel)
