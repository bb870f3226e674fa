"""Network: who can reach the cluster and its nodes, and which dataplane runs on them.

Does not judge address ranges (address_ranges.py) or the traffic between nodes (wiring.py).
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from karpstack.karpenter import addresses

from . import graph
from .iam_documents import listed
from .rule import Judgement, Properties, ResourceRule, section
from .tokens import (
    ADDON,
    AKS_CLUSTER,
    AZURE_SECURITY_GROUP,
    AZURE_SECURITY_RULE,
    CLUSTER,
    DEFAULT_SECURITY_GROUP,
    HELM_RELEASE,
    SECURITY_GROUP,
    SECURITY_GROUP_INGRESS_RULE,
    SECURITY_GROUP_RULE,
)


def _allow_list(cluster: Properties, judgement: Judgement) -> None:
    vpc = section(cluster, "vpcConfig")
    if vpc.get("endpointPublicAccess") is False:
        return
    allowed = vpc.get("publicAccessCidrs")
    if not allowed:
        judgement.violation("vpcConfig.publicAccessCidrs is not set; a public endpoint then takes 0.0.0.0/0.")
        return
    _all_narrow("vpcConfig.publicAccessCidrs", allowed, judgement)


def _aks_allow_list(cluster: Properties, judgement: Judgement) -> None:
    access = section(cluster, "apiServerAccessProfile")
    if access.get("enablePrivateCluster") is True:
        return
    allowed = access.get("authorizedIPRanges")
    if not allowed:
        judgement.violation("apiServerAccessProfile.authorizedIPRanges is not set; AKS then takes 0.0.0.0/0.")
        return
    _all_narrow("apiServerAccessProfile.authorizedIPRanges", allowed, judgement)


def _all_narrow(path: str, allowed: Any, judgement: Judgement) -> None:
    for index in range(len(allowed)):
        with judgement.part():
            _narrow(f"{path}[{index}]", allowed[index], judgement)


def _narrow(path: str, cidr: str, judgement: Judgement) -> None:
    try:
        network = addresses.parse(cidr)
    except ValueError as error:
        judgement.violation(f"{path} is not a CIDR: {error}.")
        return
    # Configured numbers arrive as floats.
    shortest = int(judgement.settings[f"shortestIPv{network.version}Prefix"])
    if network.prefixlen < shortest:
        judgement.violation(f"{path} is {cidr}, and anything wider than /{shortest} counts as the world.")


def _aks_network(cluster: Properties, judgement: Judgement) -> None:
    profile = section(cluster, "networkProfile")
    for key, wanted in (
        ("networkPlugin", "azure"),
        ("networkPluginMode", "overlay"),
        ("networkDataplane", "cilium"),
        ("networkPolicy", "cilium"),
    ):
        with judgement.part():
            found = profile.get(key)
            if found != wanted:
                judgement.violation(f"networkProfile.{key} is {found or 'not set'}, not {wanted}.")


def _cilium(release: Properties, judgement: Judgement) -> None:
    if not graph.is_chart(release.get("chart") or "", "cilium"):
        return
    values = section(release, "values")
    with judgement.part():
        if values.get("kubeProxyReplacement") not in (True, "true"):
            judgement.violation("values.kubeProxyReplacement is not true: nothing answers on service addresses.")
    with judgement.part():
        mode = values.get("routingMode") or "tunnel"
        if mode != "tunnel":
            judgement.violation(f"values.routingMode is {mode}: pod addresses would have to be routed by the network.")
    with judgement.part():
        ipam = section(values, "ipam")
        mode = ipam.get("mode") or "cluster-pool"
        if mode != "cluster-pool":
            judgement.violation(f"values.ipam.mode is {mode}, not cluster-pool.")
        elif not section(ipam, "operator").get("clusterPoolIPv4PodCIDRList"):
            judgement.violation(
                "values.ipam.operator.clusterPoolIPv4PodCIDRList is not set: the chart takes 10.0.0.0/8."
            )
    with judgement.part():
        chaining = section(values, "cni").get("chainingMode") or "none"
        if chaining != "none":
            judgement.violation(f"values.cni.chainingMode is {chaining}: another plugin gives pods their addresses.")


def _own_addons(cluster: Properties, judgement: Judgement) -> None:
    if cluster.get("bootstrapSelfManagedAddons") is not False:
        judgement.violation("bootstrapSelfManagedAddons is not false: EKS installs aws-node and kube-proxy.")


def _addon(addon: Properties, judgement: Judgement) -> None:
    name = addon.get("addonName")
    if name in ("vpc-cni", "kube-proxy"):
        judgement.violation(f"addonName is {name}.")


_WORLD = frozenset({"*", "internet", "any"})
# Shorter prefixes count as the world, which also fits into 0.0.0.0/1 and 128.0.0.0/1.
_SHORTEST = {4: 8, 6: 16}


def _ranges(path: str, values: Any, judgement: Judgement) -> None:
    found = listed(values)
    for index in range(len(found)):
        with judgement.part():
            if _is_world(found[index]):
                judgement.violation(f"{path} lets {found[index]} in.")


def _is_world(source: str) -> bool:
    try:
        network = ip_network(source, strict=False)
    except ValueError:
        return source.lower() in _WORLD
    return network.prefixlen < _SHORTEST[network.version]


def _security_group(group: Properties, judgement: Judgement) -> None:
    rules = group.get("ingress") or []
    for index in range(len(rules)):
        with judgement.part():
            for key in ("cidrBlocks", "ipv6CidrBlocks"):
                with judgement.part():
                    _ranges(f"ingress[{index}].{key}", rules[index].get(key), judgement)


def _security_group_rule(rule: Properties, judgement: Judgement) -> None:
    if rule.get("type") == "ingress":
        for key in ("cidrBlocks", "ipv6CidrBlocks"):
            with judgement.part():
                _ranges(key, rule.get(key), judgement)


def _ingress_rule(rule: Properties, judgement: Judgement) -> None:
    for key in ("cidrIpv4", "cidrIpv6"):
        with judgement.part():
            _ranges(key, rule.get(key), judgement)


def _azure_rule(rule: Properties, judgement: Judgement, path: str = "") -> None:
    # Azure does not tell upper from lower case.
    if str(rule.get("direction")).lower() == "inbound" and str(rule.get("access")).lower() == "allow":
        for key in ("sourceAddressPrefix", "sourceAddressPrefixes"):
            with judgement.part():
                _ranges(path + key, rule.get(key), judgement)


def _azure_group(group: Properties, judgement: Judgement) -> None:
    rules = group.get("securityRules") or []
    for index in range(len(rules)):
        with judgement.part():
            _azure_rule(rules[index], judgement, f"securityRules[{index}].")


AKS_OVERLAY_CILIUM = ResourceRule(name="aks-overlay-cilium", checks={AKS_CLUSTER: _aks_network})

CILIUM_OVERLAY = ResourceRule(name="cilium-overlay", checks={HELM_RELEASE: _cilium})

EKS_NO_SECOND_DATAPLANE = ResourceRule(name="eks-no-second-dataplane", checks={CLUSTER: _own_addons, ADDON: _addon})

NO_OPEN_INGRESS = ResourceRule(
    name="no-open-ingress",
    checks={
        SECURITY_GROUP: _security_group,
        DEFAULT_SECURITY_GROUP: _security_group,
        SECURITY_GROUP_RULE: _security_group_rule,
        SECURITY_GROUP_INGRESS_RULE: _ingress_rule,
        AZURE_SECURITY_GROUP: _azure_group,
        AZURE_SECURITY_RULE: _azure_rule,
    },
)

CLUSTER_ENDPOINT_ALLOW_LIST = ResourceRule(
    name="cluster-endpoint-allow-list",
    settings={
        # More than a test for /0, because the world also fits into 0.0.0.0/1 and 128.0.0.0/1.
        "shortestIPv4Prefix": {"type": "integer", "minimum": 1, "maximum": 32, "default": 8},
        "shortestIPv6Prefix": {"type": "integer", "minimum": 1, "maximum": 128, "default": 16},
    },
    checks={CLUSTER: _allow_list, AKS_CLUSTER: _aks_allow_list},
)
