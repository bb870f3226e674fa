"""rules/address_ranges.py: one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.address_ranges import CIDRS_NO_OVERLAP as OVERLAP

VPC = Resource(tokens.VPC, {"cidrBlock": "10.0.0.0/16"}, "vpc")
CLUSTER = Resource(tokens.CLUSTER, {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"}}, "cluster")
POOL = ("values", "ipam", "operator", "clusterPoolIPv4PodCIDRList")
CILIUM = Resource(
    tokens.HELM_RELEASE,
    {"chart": "cilium", "values": {"ipam": {"operator": {"clusterPoolIPv4PodCIDRList": ["10.244.0.0/16"]}}}},
    "cilium",
)
VNET = Resource(tokens.AZURE_NETWORK, {"addressSpace": {"addressPrefixes": ["10.224.0.0/16"]}}, "vnet")
AKS = Resource(
    tokens.AKS_CLUSTER, {"networkProfile": {"podCidr": "10.244.0.0/16", "serviceCidr": "10.0.0.0/16"}}, "aks"
)

CASES = [
    Case(name="apart on AWS", rule=OVERLAP, given=[VPC, CLUSTER, CILIUM]),
    Case(name="apart on Azure", rule=OVERLAP, given=[VNET, AKS]),
    Case(
        name="pods in the VPC",
        rule=OVERLAP,
        given=[VPC, CLUSTER, CILIUM.change(*POOL, to=["10.0.64.0/18"])],
        violations=("cidrBlock of vpc 10.0.0.0/16 overlaps values.ipam.operator.clusterPoolIPv4PodCIDRList of cilium",),
    ),
    Case(
        name="services in the VPC",
        rule=OVERLAP,
        given=[VPC, CLUSTER.change("kubernetesNetworkConfig", "serviceIpv4Cidr", to="10.0.0.0/20"), CILIUM],
        violations=("overlaps kubernetesNetworkConfig.serviceIpv4Cidr of cluster",),
    ),
    Case(
        name="pods in the virtual network",
        rule=OVERLAP,
        given=[VNET, AKS.change("networkProfile", "podCidr", to="10.224.0.0/24")],
        violations=("overlaps networkProfile.podCidr of aks",),
    ),
    Case(
        name="services among pods",
        rule=OVERLAP,
        given=[VNET, AKS.change("networkProfile", "serviceCidr", to="10.244.128.0/20")],
        violations=("overlaps networkProfile.serviceCidr of aks",),
    ),
    Case(name="no range", rule=OVERLAP, given=[VPC.change("cidrBlock", to="ten")], violations=("is not a CIDR",)),
    Case(
        name="one is unknown, two others overlap",
        rule=OVERLAP,
        given=[VPC.change("cidrBlock", to=UNKNOWN), CLUSTER, CILIUM.change(*POOL, to=["172.20.0.0/24"])],
        violations=("overlaps",),
        unknown="vpc.cidrBlock",
    ),
    Case(
        name="one of AKS's is unknown, the other overlaps",
        rule=OVERLAP,
        given=[VNET, AKS.change("networkProfile", to={"podCidr": UNKNOWN, "serviceCidr": "10.224.0.0/24"})],
        violations=("overlaps networkProfile.serviceCidr",),
        unknown="aks.networkProfile.podCidr",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
