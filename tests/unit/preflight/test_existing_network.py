"""What the look before `up` makes of a VPC that is there, as EC2 describes it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from karpstack.preflight.aws import existing_network
from karpstack.preflight.aws.asking import Aws

NETWORK = SimpleNamespace(
    vpc_id="vpc-1", subnet_ids=["subnet-a"], subnet_tags={}, control_plane_subnet_ids=[], node_security_group_ids=[]
)
SUBNET = {
    "SubnetId": "subnet-a",
    "VpcId": "vpc-1",
    "AvailabilityZone": "us-east-1a",
    "AvailabilityZoneId": "use1-az1",
    "AvailableIpAddressCount": 100,
}


class Account:
    """An account with one subnet, whose route table has one route beside the local one."""

    region = "us-east-1"

    def __init__(self, route: dict[str, str]) -> None:
        local = {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "Origin": "CreateRouteTable"}
        routes = [local, {"DestinationCidrBlock": "0.0.0.0/0", "State": "active", "Origin": "CreateRoute", **route}]
        self.described: dict[str, list[Any]] = {
            "Vpcs": [],
            "Subnets": [SUBNET],
            "RouteTables": [{"Associations": [{"SubnetId": "subnet-a"}], "Routes": routes}],
        }

    def all(self, service: str, operation: str, result: str, **asked: Any) -> list[Any]:
        return self.described.get(result, [])


@pytest.mark.parametrize(
    ("route", "way_out"),
    [
        ({"NatGatewayId": "nat-1"}, "private"),
        ({"GatewayId": "igw-1"}, "public"),
        ({"GatewayId": "vgw-1"}, "private"),
        ({"NatGatewayId": "nat-1", "State": "blackhole"}, "blackhole"),
        ({"GatewayId": "vgw-1", "Origin": "EnableVgwRoutePropagation"}, "none"),
    ],
)
def test_a_route_leads_where_the_provider_says_too(route: dict[str, str], way_out: str) -> None:
    found = existing_network.find(cast(Aws, Account(route)), NETWORK, "shop")
    assert found.subnets["subnet-a"].way_out == way_out
