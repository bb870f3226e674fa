"""Rules between sections of an EKS environment's configuration; those within one section are in `eks`.

Each rule takes the sections that it needs and yields what is wrong, so that all of it can be shown at once. A
section that is not valid by itself is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from karpenter.instance_types import ARCHITECTURE, CAPACITY_TYPE
from karpenter.requirements import RequirementError, allows, requirements

from ..documents import manifests
from ..problems import Problem, key_of, shown
from .node_pool_checks import node_class_reference

if TYPE_CHECKING:
    from .eks import EksSettings, KarpenterSettings, NetworkSettings, SystemNodesSettings


def cross_checks(valid: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems between sections, looked for wherever the sections are valid.

    Args:
        valid: Valid sections by the names of `EksSettings`' fields.
    """
    region: str | None = valid.get("region")
    network: NetworkSettings | None = valid.get("network")
    system_nodes: SystemNodesSettings | None = valid.get("system_nodes")
    karpenter: KarpenterSettings | None = valid.get("karpenter")
    node_classes: dict[str, dict[str, Any]] | None = valid.get("node_classes")
    node_pools: dict[str, dict[str, Any]] | None = valid.get("node_pools")
    if network is not None and region is not None:
        yield from _foreign_zones(network, region)
    if network is not None and system_nodes is not None:
        yield from _too_few_pod_ranges(network, system_nodes)
    if karpenter is not None and system_nodes is not None:
        yield from _too_many_replicas(karpenter, system_nodes)
    for name, spec in (node_classes or {}).items():
        yield from _node_class(name, spec, network)
    for name, spec in (node_pools or {}).items():
        yield from _node_pool(name, spec, node_classes, karpenter)


def cautions(settings: EksSettings) -> Iterator[str]:
    """What may go wrong with valid settings and need not: sentences for whoever deploys."""
    for name, spec in settings.node_pools.items():
        reference = manifests.node_template(spec).get("nodeClassRef") or {}
        node_class = settings.node_classes.get(reference.get("name", manifests.DEFAULT_NODE_CLASS), {})
        if _is_bottlerocket(node_class) and _may(spec, ARCHITECTURE, "arm64"):
            yield (
                f"{key_of('nodePools', name)} allows arm64 nodes with Bottlerocket, where Cilium's agent was seen not "
                "to start (cilium/cilium#22973): such a node keeps its startup taint, and no pod ever runs there. Try "
                f"one first, or require {ARCHITECTURE} In [amd64]"
            )


def _is_bottlerocket(node_class: Mapping[str, Any]) -> bool:
    aliases = (str(term.get("alias", "")) for term in node_class.get("amiSelectorTerms") or [])
    return node_class.get("amiFamily") == "Bottlerocket" or any(map(re.compile("bottlerocket@").match, aliases))


def _foreign_zones(network: NetworkSettings, region: str) -> Iterator[Problem]:
    if isinstance(network.zones, int):
        return
    for index, zone in enumerate(network.zones):
        if not re.fullmatch(re.escape(region) + "[a-z]", zone):
            yield Problem(
                key_of("network", "zones", index),
                shown(zone),
                f"is no zone of the region {region}: its subnet cannot be made",
                f"name zones like {region}a, or give their number",
            )


def _too_few_pod_ranges(network: NetworkSettings, system_nodes: SystemNodesSettings) -> Iterator[Problem]:
    nodes = 2 ** (network.pod_cidr_mask_size - network.pod_cidr.prefixlen)
    if nodes <= system_nodes.max_size:
        yield Problem(
            key_of("network", "podCidr"),
            shown(network.pod_cidr),
            f"has room for {nodes} nodes of /{network.pod_cidr_mask_size} each, and the system nodes alone may be "
            f"{system_nodes.max_size}: later nodes would never become ready",
            "choose a larger podCidr or a larger podCidrMaskSize",
        )


def _too_many_replicas(karpenter: KarpenterSettings, system_nodes: SystemNodesSettings) -> Iterator[Problem]:
    if karpenter.replicas > system_nodes.desired_size:
        yield Problem(
            key_of("karpenter", "replicas"),
            shown(karpenter.replicas),
            f"is more than systemNodes.desiredSize {system_nodes.desired_size}: two controllers never share a node, "
            "so the last one stays pending and `pulumi up` times out",
            "lower replicas or raise desiredSize",
        )


def _node_class(name: str, spec: Mapping[str, Any], network: NetworkSettings | None) -> Iterator[Problem]:
    for owned in sorted({"role", "instanceProfile"} & spec.keys()):
        yield Problem(
            key_of("nodeClasses", name, owned),
            shown(spec[owned]),
            "is set by the environment: the controller may pass no other role, and nodes of another role may not "
            "enter the cluster",
            "remove it",
        )
    if not spec.get("amiSelectorTerms"):
        yield Problem(
            key_of("nodeClasses", name, "amiSelectorTerms"),
            "(not set)",
            "without it the API server refuses the node class, after all the rest was created",
            "set it, for example to [{alias: al2023@v20251108}]; @latest replaces nodes when AWS publishes images",
        )
    pods = manifests.max_pods(spec)
    if isinstance(pods, bool) or not isinstance(pods, int):
        yield Problem(
            key_of("nodeClasses", name, "kubelet", "maxPods"),
            shown(pods),
            "is not a number: the API server refuses the node class",
            "give a number, for example 110",
        )
    elif network is not None:
        # Cilium keeps the first and the last address, the router's and the health endpoint's.
        room = 2 ** (32 - network.pod_cidr_mask_size) - 4
        if pods > room:
            yield Problem(
                key_of("nodeClasses", name, "kubelet", "maxPods"),
                shown(pods),
                f"is more than the {room} pod addresses of a node (network.podCidrMaskSize is "
                f"{network.pod_cidr_mask_size}): pods beyond them are bound to the node and never start",
                f"set it to at most {room}, or lower podCidrMaskSize",
            )


def _node_pool(
    name: str, spec: Mapping[str, Any], node_classes: Mapping[str, Any] | None, karpenter: KarpenterSettings | None
) -> Iterator[Problem]:
    yield from node_class_reference(name, spec, manifests.EC2_NODE_CLASS, node_classes)
    if karpenter is not None and not karpenter.interruption_queue and _may(spec, CAPACITY_TYPE, "spot"):
        yield Problem(
            key_of("nodePools", name, "template", "spec", "requirements"),
            shown(manifests.node_template(spec).get("requirements", [])),
            "allows spot instances while karpenter.interruptionQueue is false: AWS takes them back with two minutes' "
            "notice and nobody reads it, so pods die instead of moving",
            f"set karpstack:karpenter.interruptionQueue to true, or require {CAPACITY_TYPE} In [on-demand]",
        )


def _may(spec: Mapping[str, Any], label: str, value: str) -> bool:
    """Whether a NodePool may launch nodes with a label's value; without a requirement on the label it may."""
    try:
        return allows(requirements(spec), label, value)
    except RequirementError:
        return False  # the schema's checks say what is wrong with it
