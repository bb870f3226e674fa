"""Division of a VPC into subnets.

The plan is fixed: a VPC is cut into eighths; the first six are private subnets, one a zone, and the last one
is cut again into the public subnets. It wastes addresses and never moves: a further zone leaves every
existing subnet where it is, and pods take no addresses from the VPC (they live in the overlay).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

MAX_ZONES: Final = 6
#: Zones in which EKS cannot place a control plane, by ID, because names differ from account to account
#: (EKS user guide, "VPC and subnet requirements").
ZONES_WITHOUT_EKS: Final = ("use1-az3", "usw1-az2", "cac1-az3")
#: What AWS allows for a VPC, less the six bits that the smallest subnet (/28) lies below it.
LARGEST_VPC_PREFIX: Final = 16
SMALLEST_VPC_PREFIX: Final = 22


@dataclass(frozen=True)
class ZoneSubnets:
    """CIDRs of one zone: nodes go into the private one, NAT gateways and load balancers into the public one."""

    private: str
    public: str


def plan(vpc_cidr: str, zones: int) -> list[ZoneSubnets]:
    """Subnets for the first `zones` zones of a VPC.

    Raises:
        ValueError: More than `MAX_ZONES` zones, or a VPC whose subnets AWS would refuse.
    """
    vpc = IPv4Network(vpc_cidr)
    if not 1 <= zones <= MAX_ZONES:
        raise ValueError(f"{zones} zones: the plan holds 1 to {MAX_ZONES}")
    if not LARGEST_VPC_PREFIX <= vpc.prefixlen <= SMALLEST_VPC_PREFIX:
        raise ValueError(f"{vpc_cidr}: the plan needs a VPC from /{LARGEST_VPC_PREFIX} to /{SMALLEST_VPC_PREFIX}")
    *private, last = vpc.subnets(prefixlen_diff=3)
    public = last.subnets(prefixlen_diff=3)
    return [
        ZoneSubnets(private=str(inside), public=str(outside))
        for inside, outside in zip(private[:zones], public, strict=False)
    ]
