"""rules/network.py: each rule one good input, one mutation per clause, unknown values."""

from typing import Any

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.network import AKS_OVERLAY_CILIUM as AKS_NETWORK
from rules.network import CILIUM_OVERLAY as CILIUM
from rules.network import CLUSTER_ENDPOINT_ALLOW_LIST as ALLOW_LIST
from rules.network import EKS_NO_SECOND_DATAPLANE as ONE_DATAPLANE
from rules.network import NO_OPEN_INGRESS as INGRESS

VPC = "vpcConfig"
CIDRS = "publicAccessCidrs"


def cluster() -> Resource:
    return Resource(
        tokens.CLUSTER,
        {
            "name": "example",
            VPC: {
                "endpointPublicAccess": True,
                CIDRS: ["192.0.2.0/24", "2001:db8::/32"],
                "subnetIds": ["a", "b"],
            },
            "bootstrapSelfManagedAddons": False,
        },
    )


ACCESS = "apiServerAccessProfile"
PROFILE = {
    "networkPlugin": "azure",
    "networkPluginMode": "overlay",
    "networkDataplane": "cilium",
    "networkPolicy": "cilium",
}


def aks() -> Resource:
    return Resource(
        tokens.AKS_CLUSTER,
        {ACCESS: {"enablePrivateCluster": False, "authorizedIPRanges": ["192.0.2.0/24"]}, "networkProfile": PROFILE},
    )


def cilium() -> Resource:
    return Resource(
        tokens.HELM_RELEASE,
        {
            "chart": "oci://quay.io/cilium/charts/cilium",
            "values": {
                "kubeProxyReplacement": True,
                "routingMode": "tunnel",
                "ipam": {"mode": "cluster-pool", "operator": {"clusterPoolIPv4PodCIDRList": ["10.244.0.0/16"]}},
            },
        },
    )


def addon(name: str) -> Resource:
    return Resource(tokens.ADDON, {"addonName": name})


def group(**rule: Any) -> Resource:
    return Resource(tokens.SECURITY_GROUP, {"ingress": [{"cidrBlocks": ["10.0.0.0/16"]}, rule]})


AZURE_RULE = {"direction": "Inbound", "access": "Allow", "sourceAddressPrefix": "10.0.0.0/16"}


CASES = [
    Case(name="a list of networks", rule=ALLOW_LIST, given=cluster()),
    Case(
        name="private",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, "endpointPublicAccess", to=False).without(VPC, CIDRS),
    ),
    Case(name="no list", rule=ALLOW_LIST, given=cluster().without(VPC, CIDRS), violations=("is not set",)),
    Case(name="as wide as allowed", rule=ALLOW_LIST, given=cluster().change(VPC, CIDRS, to=["10.0.0.0/8"])),
    Case(
        name="no list, and public by default",
        rule=ALLOW_LIST,
        given=cluster().without(VPC, CIDRS).without(VPC, "endpointPublicAccess"),
        violations=("is not set",),
    ),
    Case(
        name="empty list",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, to=[]),
        violations=("is not set",),
    ),
    Case(
        name="the IPv4 world",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, 0, to="0.0.0.0/0"),
        violations=("publicAccessCidrs[0] is 0.0.0.0/0",),
    ),
    Case(
        name="the IPv6 world",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, 1, to="::/0"),
        violations=("publicAccessCidrs[1] is ::/0",),
    ),
    Case(
        name="the world in two halves",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, to=["0.0.0.0/1", "128.0.0.0/1"]),
        violations=("0.0.0.0/1", "128.0.0.0/1"),
    ),
    Case(
        name="not a network",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, 0, to="office"),
        violations=("is not a CIDR: 'office'",),
    ),
    Case(
        name="a stricter IPv4 setting",
        rule=ALLOW_LIST,
        given=cluster(),
        settings={"shortestIPv4Prefix": 32.0},
        violations=("192.0.2.0/24, and anything wider than /32",),
    ),
    Case(
        name="a stricter IPv6 setting",
        rule=ALLOW_LIST,
        given=cluster(),
        settings={"shortestIPv6Prefix": 64.0},
        violations=("2001:db8::/32, and anything wider than /64",),
    ),
    Case(
        name="the list is unknown",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, to=UNKNOWN),
        unknown="vpcConfig.publicAccessCidrs",
    ),
    Case(
        name="whether it is public is unknown",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, "endpointPublicAccess", to=UNKNOWN).without(VPC, CIDRS),
        unknown="vpcConfig.endpointPublicAccess",
    ),
    Case(
        name="one network is unknown, another is the world",
        rule=ALLOW_LIST,
        given=cluster().change(VPC, CIDRS, to=[UNKNOWN, "0.0.0.0/0"]),
        violations=("publicAccessCidrs[1] is 0.0.0.0/0",),
        unknown="vpcConfig.publicAccessCidrs.0",
    ),
]

AKS_CASES = [
    Case(name="a list of networks on AKS", rule=ALLOW_LIST, given=aks()),
    Case(
        name="a private AKS cluster",
        rule=ALLOW_LIST,
        given=aks().change(ACCESS, to={"enablePrivateCluster": True}),
    ),
    Case(name="no list on AKS", rule=ALLOW_LIST, given=aks().without(ACCESS), violations=("AKS then takes 0.0.0.0/0",)),
    Case(
        name="the world on AKS",
        rule=ALLOW_LIST,
        given=aks().change(ACCESS, "authorizedIPRanges", 0, to="0.0.0.0/0"),
        violations=("authorizedIPRanges[0] is 0.0.0.0/0",),
    ),
    Case(
        name="the list on AKS is unknown",
        rule=ALLOW_LIST,
        given=aks().change(ACCESS, "authorizedIPRanges", to=UNKNOWN),
        unknown=f"{ACCESS}.authorizedIPRanges",
    ),
    Case(name="overlay and Cilium", rule=AKS_NETWORK, given=aks()),
    *[
        Case(
            name=f"{key} {value}",
            rule=AKS_NETWORK,
            given=aks().change("networkProfile", key, to=value),
            violations=(f"networkProfile.{key} is {value or 'not set'}",),
        )
        for key, value in (
            ("networkPlugin", "kubenet"),
            ("networkPluginMode", None),
            ("networkDataplane", "azure"),
            ("networkPolicy", "calico"),
        )
    ],
    Case(
        name="one is unknown, another is wrong",
        rule=AKS_NETWORK,
        given=aks().change("networkProfile", to=PROFILE | {"networkPlugin": UNKNOWN, "networkPolicy": "azure"}),
        violations=("networkPolicy is azure",),
        unknown="networkProfile.networkPlugin",
    ),
    Case(name="overlay in place of kube-proxy", rule=CILIUM, given=cilium()),
    Case(name="another chart", rule=CILIUM, given=Resource(tokens.HELM_RELEASE, {"chart": "karpenter"})),
    Case(
        name="kube-proxy stays",
        rule=CILIUM,
        given=cilium().without("values", "kubeProxyReplacement"),
        violations=("kubeProxyReplacement is not true",),
    ),
    Case(
        name="native routing",
        rule=CILIUM,
        given=cilium().change("values", "routingMode", to="native"),
        violations=("routingMode is native",),
    ),
    Case(
        name="addresses of the VPC",
        rule=CILIUM,
        given=cilium().change("values", "ipam", to={"mode": "eni"}),
        violations=("ipam.mode is eni",),
    ),
    Case(
        name="the chart's own range",
        rule=CILIUM,
        given=cilium().without("values", "ipam"),
        violations=("clusterPoolIPv4PodCIDRList is not set",),
    ),
    Case(
        name="chained behind another plugin",
        rule=CILIUM,
        given=cilium().change("values", "cni", to={"chainingMode": "aws-cni"}),
        violations=("cni.chainingMode is aws-cni",),
    ),
    Case(
        name="the range is unknown, kube-proxy stays",
        rule=CILIUM,
        given=cilium()
        .change("values", "ipam", "operator", "clusterPoolIPv4PodCIDRList", to=UNKNOWN)
        .change("values", "kubeProxyReplacement", to=False),
        violations=("kubeProxyReplacement",),
        unknown="values.ipam.operator.clusterPoolIPv4PodCIDRList",
    ),
    Case(name="none of EKS's own", rule=ONE_DATAPLANE, given=cluster()),
    Case(name="another add-on", rule=ONE_DATAPLANE, given=addon("coredns")),
    Case(
        name="EKS's own by default",
        rule=ONE_DATAPLANE,
        given=cluster().without("bootstrapSelfManagedAddons"),
        violations=("EKS installs aws-node",),
    ),
    *[
        Case(name=name, rule=ONE_DATAPLANE, given=addon(name), violations=(f"addonName is {name}",))
        for name in ("vpc-cni", "kube-proxy")
    ],
    Case(name="the add-on is unknown", rule=ONE_DATAPLANE, given=addon(UNKNOWN), unknown="addonName"),
    Case(name="from the network", rule=INGRESS, given=group()),
    Case(
        name="from the world",
        rule=INGRESS,
        given=group(cidrBlocks=["0.0.0.0/0"]),
        violations=("ingress[1].cidrBlocks lets 0.0.0.0/0 in",),
    ),
    Case(
        name="from the IPv6 world",
        rule=INGRESS,
        given=group(ipv6CidrBlocks=["::/0"]),
        violations=("ingress[1].ipv6CidrBlocks lets ::/0 in",),
    ),
    Case(
        name="a rule to the world",
        rule=INGRESS,
        given=Resource(tokens.SECURITY_GROUP_RULE, {"type": "egress", "cidrBlocks": ["0.0.0.0/0"]}),
    ),
    Case(
        name="a rule from the world",
        rule=INGRESS,
        given=Resource(tokens.SECURITY_GROUP_RULE, {"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]}),
        violations=("cidrBlocks lets 0.0.0.0/0 in",),
    ),
    *[
        Case(
            name=f"an ingress rule by {key}",
            rule=INGRESS,
            given=Resource(tokens.SECURITY_GROUP_INGRESS_RULE, {key: world}),
            violations=(f"{key} lets {world} in",),
        )
        for key, world in (("cidrIpv4", "0.0.0.0/0"), ("cidrIpv6", "::/0"))
    ],
    Case(
        name="a rule of Azure",
        rule=INGRESS,
        given=Resource(tokens.AZURE_SECURITY_RULE, AZURE_RULE),
    ),
    Case(
        name="a denial of Azure",
        rule=INGRESS,
        given=Resource(tokens.AZURE_SECURITY_RULE, AZURE_RULE | {"access": "Deny", "sourceAddressPrefix": "*"}),
    ),
    *[
        Case(
            name=f"from {world} on Azure",
            rule=INGRESS,
            given=Resource(tokens.AZURE_SECURITY_RULE, AZURE_RULE | {"sourceAddressPrefix": world}),
            violations=(f"sourceAddressPrefix lets {world} in",),
        )
        for world in ("*", "Internet", "0.0.0.0/0")
    ],
    Case(
        name="in a group of Azure",
        rule=INGRESS,
        given=Resource(
            tokens.AZURE_SECURITY_GROUP,
            {"securityRules": [AZURE_RULE, AZURE_RULE | {"sourceAddressPrefixes": ["0.0.0.0/0"]}]},
        ),
        violations=("securityRules[1].sourceAddressPrefixes lets 0.0.0.0/0 in",),
    ),
    Case(
        name="one range is unknown, another is the world",
        rule=INGRESS,
        given=group(cidrBlocks=[UNKNOWN, "0.0.0.0/0"]),
        violations=("ingress[1].cidrBlocks lets 0.0.0.0/0 in",),
        unknown="ingress.1.cidrBlocks.0",
    ),
]
CASES += AKS_CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
