"""What the account says of a VPC that is there; `network` judges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from karpstack.components.documents.endpoints import EndpointService
from karpstack.components.documents.partitions import endpoint_services
from karpstack.components.settings.existing_network import FoundNetwork, FoundSubnet, Selection, WayOut, way_out

from .asking import Aws

#: What a route can lead to, as EC2 calls it.
_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "NetworkInterfaceId",
    "InstanceId",
    "VpcPeeringConnectionId",
    "CarrierGatewayId",
    "LocalGatewayId",
    "CoreNetworkArn",
)


def find(aws: Aws, network: Selection, cluster: str) -> FoundNetwork:
    """What the account says of the network that the settings name.

    Args:
        aws: The account.
        network: With a `vpc_id`.
        cluster: Name of the cluster, which may be there already.

    Raises:
        NotAskedError: The account does not tell.
    """
    vpc_id = str(network.vpc_id)
    vpcs = _described(aws, "DescribeVpcs", "Vpcs", {"vpc-id": [vpc_id]})
    # Tags are looked for in all VPCs, as Karpenter does it.
    tags = {f"tag:{key}": [value] for key, value in network.subnet_tags.items()}
    selected = _described(aws, "DescribeSubnets", "Subnets", tags) if tags else []
    named = sorted({*network.subnet_ids, *network.control_plane_subnet_ids})
    subnets = selected + (_described(aws, "DescribeSubnets", "Subnets", {"subnet-id": named}) if named else [])
    tables = _described(aws, "DescribeRouteTables", "RouteTables", {"vpc-id": [vpc_id]})
    groups = network.node_security_group_ids
    found = {one["SubnetId"]: _subnet(one, tables) for one in subnets}
    of_nodes = network.subnet_ids or [one["SubnetId"] for one in selected]
    return FoundNetwork(
        cidrs=[
            one["CidrBlock"]
            for vpc in vpcs
            for one in vpc["CidrBlockAssociationSet"]
            if one["CidrBlockState"]["State"] == "associated"
        ],
        dns_support=bool(vpcs) and _attribute(aws, vpc_id, "enableDnsSupport"),
        dns_hostnames=bool(vpcs) and _attribute(aws, vpc_id, "enableDnsHostnames"),
        subnets=found,
        selected=sorted(one["SubnetId"] for one in selected),
        groups={
            one["GroupId"]: one["VpcId"]
            for one in (
                _described(aws, "DescribeSecurityGroups", "SecurityGroups", {"group-id": groups}) if groups else ()
            )
        },
        endpoints=_endpoints(aws, vpc_id)
        if any(not found[one].leads_out for one in of_nodes if one in found)
        else frozenset(),
        has_cluster=cluster in aws.all("eks", "ListClusters", "clusters"),
    )


def _described(aws: Aws, operation: str, result: str, filters: Mapping[str, Iterable[str]]) -> list[Any]:
    wanted = [{"Name": name, "Values": list(values)} for name, values in filters.items()]
    return aws.all("ec2", operation, result, Filters=wanted)


def _endpoints(aws: Aws, vpc_id: str) -> frozenset[str]:
    """Services that nodes without a way out reach."""
    there = {
        one["ServiceName"]
        for one in _described(aws, "DescribeVpcEndpoints", "VpcEndpoints", {"vpc-id": [vpc_id]})
        if one["State"].lower() == "available"
    }
    return frozenset(one for one in get_args(EndpointService) if there & {*endpoint_services(one, aws.region)})


def _attribute(aws: Aws, vpc_id: str, name: str) -> bool:
    answer = aws.ask("ec2", "DescribeVpcAttribute", VpcId=vpc_id, Attribute=name)
    return bool(answer[name[0].upper() + name[1:]]["Value"])


def _subnet(subnet: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> FoundSubnet:
    return FoundSubnet(
        id=subnet["SubnetId"],
        vpc_id=subnet["VpcId"],
        zone=subnet["AvailabilityZone"],
        zone_id=subnet["AvailabilityZoneId"],
        free=subnet["AvailableIpAddressCount"],
        way_out=_way_out(subnet["SubnetId"], tables),
        tags={tag["Key"]: tag["Value"] for tag in subnet.get("Tags", ())},
        gives_public_addresses=bool(subnet.get("MapPublicIpOnLaunch")),
    )


def _way_out(subnet_id: str, tables: Sequence[Mapping[str, Any]]) -> WayOut:
    """By the subnet's route table, or the VPC's main one.

    Without the routes that a virtual private gateway propagates: the provider leaves them out (terraform-provider-aws,
    vpc_route_table_data_source.go), so that `up` would refuse what was found right here.
    """
    own = [table for table in tables if any(one.get("SubnetId") == subnet_id for one in table["Associations"])]
    main = [table for table in tables if any(one.get("Main") for one in table["Associations"])]
    routes = [
        route
        for table in (own or main)[:1]
        for route in table["Routes"]
        if "DestinationCidrBlock" in route and route.get("Origin") != "EnableVgwRoutePropagation"
    ]
    return way_out(
        {
            route["DestinationCidrBlock"]: next((route[target] for target in _TARGETS if route.get(target)), "")
            for route in routes
        },
        [route["DestinationCidrBlock"] for route in routes if route.get("State") == "blackhole"],
    )
