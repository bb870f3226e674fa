"""Network: who can reach the cluster and its nodes, and which dataplane runs on them.

Does not judge address ranges (address_ranges.py) or the traffic between nodes (wiring.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from karpstack.karpenter import addresses

from . import graph
from .iam_documents import listed
from .rule import Judgement, NotKnownError, Properties, ResourceRule, section
from .tokens import (
    ADDON,
    AKS_CLUSTER,
    AZURE_SECURITY_GROUP,
    AZURE_SECURITY_RULE,
    CLUSTER,
    DEFAULT_SECURITY_GROUP,
    HELM_RELEASE,
    MANAGED_PREFIX_LIST,
    MANAGED_PREFIX_LIST_ENTRY,
    NODE_GROUP,
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
    networks: list[addresses.Network] = []
    for index in range(len(allowed)):
        with judgement.part():
            try:
                networks.append(addresses.parse(allowed[index]))
            except ValueError as error:
                judgement.violation(f"{path}[{index}] is not a CIDR: {error}.")
                continue
            if shortest := _too_short(networks[-1], judgement):
                judgement.violation(
                    f"{path}[{index}] is {allowed[index]}, and anything wider than /{shortest} counts as the world."
                )
                networks.pop()
    _together(path, networks, judgement)


def _too_short(network: addresses.Network, judgement: Judgement) -> int | None:
    """Return the shortest prefix that is no world, if a network is wider."""
    # Configured numbers arrive as floats.
    shortest = int(judgement.settings[f"shortestIPv{network.version}Prefix"])
    return shortest if network.prefixlen < shortest else None


def _together(path: str, networks: Sequence[addresses.Network], judgement: Judgement) -> None:
    """Find many narrow networks that are the world together."""
    if addresses.are_nearly_the_world(networks):
        judgement.violation(f"{path}: its ranges together are more than an eighth of the internet.")


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
    values = graph.chart_values(release)
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


def _ranges(path: str, values: Any, judgement: Judgement) -> list[addresses.Network]:
    """Judge ranges, alone and together; return those that are no world alone."""
    found = listed(values)
    tags = [tag.casefold() for tag in judgement.settings["serviceTags"]]
    networks: list[addresses.Network] = []
    for index in range(len(found)):
        with judgement.part():
            try:
                network = addresses.parse(found[index].strip())
            except ValueError:
                if found[index].strip().casefold() not in ("", *tags):
                    judgement.violation(f"{path} lets {found[index]} in.")
                continue
            if _too_short(network, judgement) and not addresses.is_private(network):
                judgement.violation(f"{path} lets {found[index]} in.")
            else:
                networks.append(network)
    _together(path, networks, judgement)
    return networks


def _of_all(path: str, of_each: Sequence[Sequence[addresses.Network]], judgement: Judgement) -> None:
    """Find rules that together admit the whole internet, although no single one does."""
    if not any(map(addresses.are_nearly_the_world, of_each)):
        _together(path, [network for networks in of_each for network in networks], judgement)


def _security_group(group: Properties, judgement: Judgement) -> None:
    rules = group.get("ingress") or []
    admitted: list[list[addresses.Network]] = []
    for index in range(len(rules)):
        with judgement.part():
            admitted += _admitted(rules[index], ("cidrBlocks", "ipv6CidrBlocks"), judgement, f"ingress[{index}].")
            _prefix_lists(rules[index], "prefixListIds", judgement, f"ingress[{index}].")
    _of_all("ingress", admitted, judgement)


def _admitted(
    rule: Properties, keys: Sequence[str], judgement: Judgement, path: str = ""
) -> Iterator[list[addresses.Network]]:
    """Judge the ranges of a rule, and give them, key by key."""
    for key in keys:
        with judgement.part():
            yield _ranges(path + key, rule.get(key), judgement)


def _prefix_lists(rule: Properties, key: str, judgement: Judgement, path: str = "") -> None:
    """Name the prefix lists that cannot be judged. One that is yet to be made is of this stack, and judged itself."""
    names: list[str] = []
    with suppress(UnknownValueError):
        found = listed(rule.get(key))
        for index in range(len(found)):
            with suppress(UnknownValueError):
                names.append(found[index])
    with judgement.part():
        if names := [name for name in names if name]:
            what = f"{path}{key} has {', '.join(names)}, and only prefix lists of this stack are judged"
            raise NotKnownError(what, f"{path}{key}", *names)


def _prefix_list(prefix_list: Properties, judgement: Judgement) -> None:
    entries = prefix_list.get("entries") or []
    admitted: list[list[addresses.Network]] = []
    for index in range(len(entries)):
        with judgement.part():
            admitted += _admitted(entries[index], ("cidr",), judgement, f"entries[{index}].")
    _of_all("entries", admitted, judgement)


def _prefix_list_entry(entry: Properties, judgement: Judgement) -> None:
    list(_admitted(entry, ("cidr",), judgement))


def _security_group_rule(rule: Properties, judgement: Judgement) -> None:
    if rule.get("type") == "ingress":
        list(_admitted(rule, ("cidrBlocks", "ipv6CidrBlocks"), judgement))
        _prefix_lists(rule, "prefixListIds", judgement)


def _ingress_rule(rule: Properties, judgement: Judgement) -> None:
    list(_admitted(rule, ("cidrIpv4", "cidrIpv6"), judgement))
    _prefix_lists(rule, "prefixListId", judgement)


def _azure_rule(rule: Properties, judgement: Judgement, path: str = "") -> list[list[addresses.Network]]:
    if (rule.get("direction") or "").casefold() == "inbound" and (rule.get("access") or "").casefold() == "allow":
        return list(_admitted(rule, ("sourceAddressPrefix", "sourceAddressPrefixes"), judgement, path))
    return []


def _azure_security_rule(rule: Properties, judgement: Judgement) -> None:
    _azure_rule(rule, judgement)


def _azure_group(group: Properties, judgement: Judgement) -> None:
    rules = group.get("securityRules") or []
    admitted: list[list[addresses.Network]] = []
    for index in range(len(rules)):
        with judgement.part():
            admitted += _azure_rule(rules[index], judgement, f"securityRules[{index}].")
    _of_all("securityRules", admitted, judgement)


def _node_group(node_group: Properties, judgement: Judgement) -> None:
    access = section(node_group, "remoteAccess")
    if access.get("ec2SshKey") and not access.get("sourceSecurityGroupIds"):
        judgement.violation("remoteAccess has no sourceSecurityGroupIds: EKS then opens port 22 to 0.0.0.0/0.")


AKS_OVERLAY_CILIUM = ResourceRule(name="aks-overlay-cilium", checks={AKS_CLUSTER: _aks_network})

CILIUM_OVERLAY = ResourceRule(name="cilium-overlay", checks={HELM_RELEASE: _cilium})

EKS_NO_SECOND_DATAPLANE = ResourceRule(name="eks-no-second-dataplane", checks={CLUSTER: _own_addons, ADDON: _addon})

# More than a test for /0, because the world also fits into 0.0.0.0/1 and 128.0.0.0/1.
_WIDEST = {
    "shortestIPv4Prefix": {"type": "integer", "minimum": 1, "maximum": 32, "default": 8},
    "shortestIPv6Prefix": {"type": "integer", "minimum": 1, "maximum": 128, "default": 16},
}

NO_OPEN_INGRESS = ResourceRule(
    name="no-open-ingress",
    settings={
        **_WIDEST,
        # Sources on Azure that are neither the internet nor the machines of other customers, as AzureCloud is.
        "serviceTags": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [
                *("VirtualNetwork", "AzureLoadBalancer", "GatewayManager"),
                *("AzureFrontDoor.Backend", "AzureTrafficManager"),
            ],
        },
    },
    checks={
        MANAGED_PREFIX_LIST: _prefix_list,
        MANAGED_PREFIX_LIST_ENTRY: _prefix_list_entry,
        DEFAULT_SECURITY_GROUP: _security_group,
        NODE_GROUP: _node_group,
        SECURITY_GROUP: _security_group,
        SECURITY_GROUP_RULE: _security_group_rule,
        SECURITY_GROUP_INGRESS_RULE: _ingress_rule,
        AZURE_SECURITY_GROUP: _azure_group,
        AZURE_SECURITY_RULE: _azure_security_rule,
    },
)

CLUSTER_ENDPOINT_ALLOW_LIST = ResourceRule(
    name="cluster-endpoint-allow-list",
    settings=_WIDEST,
    checks={CLUSTER: _allow_list, AKS_CLUSTER: _aks_allow_list},
)
