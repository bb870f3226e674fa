"""The data sources with which a program looks at a network that is there: VPCs, subnets, routes, security groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rehearsal.attachment.resource import Properties, RefusedError
from rehearsal.aws.arguments import filters, given, takes
from rehearsal.aws.tags import unpaired

if TYPE_CHECKING:
    from rehearsal.aws.account import Account

#: What a route leads to: EC2's name and the provider's.
_TARGETS: Final = {
    "CarrierGatewayId": "carrierGatewayId",
    "CoreNetworkArn": "coreNetworkArn",
    "DestinationPrefixListId": "destinationPrefixListId",
    "EgressOnlyInternetGatewayId": "egressOnlyGatewayId",
    "GatewayId": "gatewayId",
    "InstanceId": "instanceId",
    "LocalGatewayId": "localGatewayId",
    "NatGatewayId": "natGatewayId",
    "NetworkInterfaceId": "networkInterfaceId",
    "TransitGatewayId": "transitGatewayId",
    "VpcPeeringConnectionId": "vpcPeeringConnectionId",
}


def of_networks(account: Account) -> dict[str, Callable[[Mapping[str, Any]], Properties]]:
    """The data sources by token."""

    def all_of(operation: str, result: str, arguments: Mapping[str, Any], **more: list[str]) -> list[dict[str, Any]]:
        """What EC2 describes, by the filters of the arguments and `more` of them."""
        wanted = filters(arguments) + [{"Name": name.replace("_", "-"), "Values": one} for name, one in more.items()]
        wanted += [{"Name": f"tag:{key}", "Values": [value]} for key, value in (arguments.get("tags") or {}).items()]
        pages = account.client("ec2").get_paginator(operation).paginate(Filters=wanted)
        return [found for page in pages for found in page[result]]

    def ids(name: str, operation: str, result: str, key: str) -> Callable[[Mapping[str, Any]], Properties]:
        by_vpc = {"vpcId"} if name in ("getNatGateways", "getRouteTables") else set()

        def call(arguments: Mapping[str, Any]) -> Properties:
            takes(name, arguments, {"filters", "tags"} | by_vpc)
            more = {"vpc_id": [arguments["vpcId"]]} if arguments.get("vpcId") else {}
            found = [one[key] for one in all_of(operation, result, arguments, **more)]
            return {**given(arguments), "ids": found, "id": account.region, "region": account.region}

        return call

    def vpc(arguments: Mapping[str, Any]) -> Properties:
        takes("getVpc", arguments, {"id", "filters", "tags"})
        more = {"vpc_id": [arguments["id"]]} if arguments.get("id") else {}
        found = _only("VPC", all_of("describe_vpcs", "Vpcs", arguments, **more))
        ec2 = account.client("ec2")

        def attribute(name: str) -> bool:
            said = ec2.describe_vpc_attribute(VpcId=found["VpcId"], Attribute=name)
            return bool(said[name[0].upper() + name[1:]]["Value"])

        tables = all_of(
            "describe_route_tables", "RouteTables", {}, vpc_id=[found["VpcId"]], **{"association.main": ["true"]}
        )
        return {
            "id": found["VpcId"],
            "arn": _arn(account, f"vpc/{found['VpcId']}"),
            "cidrBlock": found["CidrBlock"],
            "cidrBlockAssociations": [
                {
                    "associationId": one["AssociationId"],
                    "cidrBlock": one["CidrBlock"],
                    "state": one["CidrBlockState"]["State"],
                }
                for one in found["CidrBlockAssociationSet"]
            ],
            "default": found["IsDefault"],
            "enableDnsHostnames": attribute("enableDnsHostnames"),
            "enableDnsSupport": attribute("enableDnsSupport"),
            "instanceTenancy": found["InstanceTenancy"],
            "mainRouteTableId": tables[0]["RouteTableId"],
            "ownerId": account.account_id,
            "region": account.region,
            "state": found["State"],
            "tags": unpaired(found.get("Tags", [])),
        }

    def subnet(arguments: Mapping[str, Any]) -> Properties:
        takes("getSubnet", arguments, {"id", "filters", "tags", "vpcId"})
        more = {"subnet_id": [arguments["id"]]} if arguments.get("id") else {}
        more |= {"vpc_id": [arguments["vpcId"]]} if arguments.get("vpcId") else {}
        found = _only("EC2 Subnet", all_of("describe_subnets", "Subnets", arguments, **more))
        return {
            "id": found["SubnetId"],
            "arn": _arn(account, f"subnet/{found['SubnetId']}"),
            "availabilityZone": found["AvailabilityZone"],
            "availabilityZoneId": found["AvailabilityZoneId"],
            "availableIpAddressCount": found["AvailableIpAddressCount"],
            "cidrBlock": found["CidrBlock"],
            "defaultForAz": found["DefaultForAz"],
            "mapPublicIpOnLaunch": found["MapPublicIpOnLaunch"],
            "ownerId": account.account_id,
            "region": account.region,
            "state": found["State"],
            "tags": unpaired(found.get("Tags", [])),
            "vpcId": found["VpcId"],
        }

    def route_table(arguments: Mapping[str, Any]) -> Properties:
        takes("getRouteTable", arguments, {"routeTableId", "subnetId", "filters", "tags", "vpcId"})
        more = {
            name: [arguments[given_as]]
            for name, given_as in (
                ("route_table_id", "routeTableId"),
                ("association.subnet_id", "subnetId"),
                ("vpc_id", "vpcId"),
            )
            if arguments.get(given_as)
        }
        found = _only("Route Table", all_of("describe_route_tables", "RouteTables", arguments, **more))
        return {
            "id": found["RouteTableId"],
            "routeTableId": found["RouteTableId"],
            "arn": _arn(account, f"route-table/{found['RouteTableId']}"),
            "associations": [
                {
                    "gatewayId": one.get("GatewayId", ""),
                    "main": one.get("Main", False),
                    "routeTableAssociationId": one["RouteTableAssociationId"],
                    "routeTableId": one["RouteTableId"],
                    "subnetId": one.get("SubnetId", ""),
                }
                for one in found["Associations"]
            ],
            "ownerId": account.account_id,
            "region": account.region,
            # The provider leaves out what EC2 has in each table: the VPC's own ranges.
            "routes": [
                {
                    "cidrBlock": one.get("DestinationCidrBlock", ""),
                    **{name: one.get(key, "") for key, name in _TARGETS.items()},
                }
                for one in found["Routes"]
                if one.get("GatewayId") != "local"
            ],
            "tags": unpaired(found.get("Tags", [])),
            "vpcId": found["VpcId"],
        }

    def security_groups(arguments: Mapping[str, Any]) -> Properties:
        takes("getSecurityGroups", arguments, {"filters", "tags"})
        found = all_of("describe_security_groups", "SecurityGroups", arguments)
        return {
            **given(arguments),
            "ids": [one["GroupId"] for one in found],
            "arns": [_arn(account, f"security-group/{one['GroupId']}") for one in found],
            "vpcIds": [one["VpcId"] for one in found],
            "id": account.region,
            "region": account.region,
        }

    def endpoint(arguments: Mapping[str, Any]) -> Properties:
        takes("getVpcEndpoint", arguments, {"id", "vpcId", "serviceName", "state"})
        found = _only(
            "EC2 VPC Endpoint",
            [
                one
                for one in account.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
                if arguments.get("id") in (None, one["VpcEndpointId"])
                and arguments.get("vpcId") in (None, one["VpcId"])
                and arguments.get("serviceName") in (None, one["ServiceName"])
                and arguments.get("state") in (None, one["State"])
            ],
        )
        return {
            "id": found["VpcEndpointId"],
            "arn": _arn(account, f"vpc-endpoint/{found['VpcEndpointId']}"),
            "region": account.region,
            "serviceName": found["ServiceName"],
            "state": found["State"],
            "vpcEndpointType": found.get("VpcEndpointType", "Gateway"),
            "vpcId": found["VpcId"],
        }

    return {
        "aws:ec2/getVpcs:getVpcs": ids("getVpcs", "describe_vpcs", "Vpcs", "VpcId"),
        "aws:ec2/getSubnets:getSubnets": ids("getSubnets", "describe_subnets", "Subnets", "SubnetId"),
        "aws:ec2/getRouteTables:getRouteTables": ids(
            "getRouteTables", "describe_route_tables", "RouteTables", "RouteTableId"
        ),
        "aws:ec2/getNatGateways:getNatGateways": ids(
            "getNatGateways", "describe_nat_gateways", "NatGateways", "NatGatewayId"
        ),
        "aws:ec2/getSecurityGroups:getSecurityGroups": security_groups,
        "aws:ec2/getVpc:getVpc": vpc,
        "aws:ec2/getSubnet:getSubnet": subnet,
        "aws:ec2/getRouteTable:getRouteTable": route_table,
        "aws:ec2/getVpcEndpoint:getVpcEndpoint": endpoint,
    }


def _only(title: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    if not found:
        raise RefusedError(f"no matching {title} found")
    if len(found) > 1:
        raise RefusedError(
            f"multiple {title}s matched; use additional constraints to reduce matches to a single {title}"
        )
    return found[0]


def _arn(account: Account, resource: str) -> str:
    return f"arn:aws:ec2:{account.region}:{account.account_id}:{resource}"
