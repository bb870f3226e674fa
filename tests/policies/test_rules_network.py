"""rules/network.py: each rule one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.network import CLUSTER_ENDPOINT_ALLOW_LIST as ALLOW_LIST

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
        },
    )


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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
