"""Address ranges of a stack: networks, pods and services. Does not judge who is let in (network.py)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from pulumi_policy import PolicyResource

from karpstack.karpenter.addresses import Range, overlaps, parse

from . import graph
from .iam_documents import listed
from .rule import Judgement, StackRule, section
from .tokens import AKS_CLUSTER, AZURE_NETWORK, CLUSTER, VPC

# What AKS takes if the cluster does not say it.
_AKS_DEFAULTS = {"serviceCidr": "10.0.0.0/16"}


def _no_overlap(resources: list[PolicyResource], judgement: Judgement) -> None:
    networks: list[Range] = []
    pods: list[Range] = []
    services: list[Range] = []
    for resource in graph.of(resources, VPC):
        with judgement.part():
            networks.extend(_read(resource, "cidrBlock", graph.output(resource, "cidrBlock"), judgement))
    for resource in graph.of(resources, AZURE_NETWORK):
        with judgement.part():
            prefixes = section(resource.props, "addressSpace").get("addressPrefixes")
            networks.extend(_read(resource, "addressSpace.addressPrefixes", prefixes, judgement))
    for resource in graph.of(resources, CLUSTER):
        with judgement.part():
            service = section(resource.props, "kubernetesNetworkConfig").get("serviceIpv4Cidr")
            services.extend(_read(resource, "kubernetesNetworkConfig.serviceIpv4Cidr", service, judgement))
    for resource in graph.of(resources, AKS_CLUSTER):
        profile = None
        with judgement.part():
            profile = section(resource.props, "networkProfile")
        for key, ranges in (("podCidr", pods), ("serviceCidr", services)) if profile is not None else ():
            with judgement.part():
                several, one = ((profile or {}).get(name) for name in (f"{key}s", key))
                found = listed(several) or one or _AKS_DEFAULTS.get(key)
                ranges.extend(_read(resource, f"networkProfile.{key}", found, judgement))
    for release in graph.releases(resources, "cilium", judgement):
        with judgement.part():
            cidrs = section(graph.values(release), "ipam", "operator").get("clusterPoolIPv4PodCIDRList")
            where = "values.ipam.operator.clusterPoolIPv4PodCIDRList"
            pods.extend(_read(release, where, cidrs, judgement))
    # Networks that are not connected may have the same range, and so may their clusters.
    for one, other in combinations((networks, pods, services), 2):
        for pair in product(one, other):
            for first, second in overlaps(pair):
                judgement.violation(
                    f"{first.what} {first.network} overlaps {second.what} {second.network}.",
                    second.urn,
                )


def _read(resource: PolicyResource, path: str, values: Any, judgement: Judgement) -> Iterator[Range]:
    cidrs = listed(values)
    for index in range(len(cidrs)):
        with judgement.part():
            try:
                yield Range(parse(cidrs[index]), f"{path} of {resource.name}", resource.urn)
            except ValueError as error:
                judgement.violation(f"{path} of {resource.name} is not a CIDR: {error}.", resource.urn)


CIDRS_NO_OVERLAP = StackRule(name="cidrs-no-overlap", check=_no_overlap)
