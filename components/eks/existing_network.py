"""What the account says of a VPC that is there, asked before anything is made; nothing of it is changed.

The questions are invokes that wait for their answers: everything about an existing network is known before the first
resource, so that what is wrong with it is refused while nothing has been created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import pulumi
from pulumi_aws import ec2, eks

from ..documents.endpoints import EndpointService
from ..documents.partitions import endpoint_services
from ..settings.existing_network import ANYWHERE, FoundNetwork, FoundSubnet, Selection, WayOut, way_out
from .lookups import exists

#: What a route can lead to, as the provider calls it.
_TARGETS = (
    "gateway_id",
    "nat_gateway_id",
    "transit_gateway_id",
    "network_interface_id",
    "instance_id",
    "vpc_peering_connection_id",
    "vpc_endpoint_id",
    "carrier_gateway_id",
    "local_gateway_id",
    "core_network_arn",
)


def find(vpc_id: str, network: Selection, cluster: str, ask: pulumi.InvokeOptions) -> FoundNetwork:
    """What the account says of the network that the settings name.

    Args:
        vpc_id: ID of the VPC.
        network: Which subnets and security groups.
        cluster: Name of the cluster, which may be there already.
        ask: Whose provider is asked.
    """
    vpc = (
        ec2.get_vpc(id=vpc_id, opts=ask) if ec2.get_vpcs(filters=_filters({"vpc-id": [vpc_id]}), opts=ask).ids else None
    )
    selected: list[str] = []
    if network.subnet_tags:
        # In all VPCs, as Karpenter does it.
        tags = {f"tag:{key}": [value] for key, value in network.subnet_tags.items()}
        selected = sorted(ec2.get_subnets(filters=_filters(tags), opts=ask).ids)
    named = {*network.subnet_ids, *network.control_plane_subnet_ids}
    there = {
        *selected,
        *(ec2.get_subnets(filters=_filters({"subnet-id": sorted(named)}), opts=ask).ids if named else ()),
    }
    ways = _ways_out(vpc, sorted(there), ask) if vpc else {}
    subnets = {one: _subnet(one, ways, ask) for one in sorted(there)}
    return FoundNetwork(
        cidrs=[one.cidr_block for one in vpc.cidr_block_associations if one.state == "associated"] if vpc else [],
        dns_support=vpc is not None and vpc.enable_dns_support,
        dns_hostnames=vpc is not None and vpc.enable_dns_hostnames,
        subnets=subnets,
        selected=selected,
        groups=_groups(network.node_security_group_ids, ask),
        endpoints=_endpoints(vpc, ask)
        if vpc is not None
        and any(not subnets[one].leads_out for one in network.subnet_ids or selected if one in subnets)
        else frozenset(),
        has_cluster=cluster in eks.get_clusters(opts=ask).names,
    )


def _subnet(subnet_id: str, ways: Mapping[str, WayOut], ask: pulumi.InvokeOptions) -> FoundSubnet:
    found = ec2.get_subnet(id=subnet_id, opts=ask)
    return FoundSubnet(
        id=subnet_id,
        vpc_id=found.vpc_id,
        zone=found.availability_zone,
        zone_id=found.availability_zone_id,
        free=found.available_ip_address_count,
        way_out=ways.get(subnet_id, "none"),
        tags=found.tags,
        gives_public_addresses=found.map_public_ip_on_launch,
    )


def _ways_out(vpc: ec2.GetVpcResult, subnets: Sequence[str], ask: pulumi.InvokeOptions) -> dict[str, WayOut]:
    """Where the default routes of subnets lead; one without a route table of its own has the VPC's main one."""
    if not subnets:
        return {}
    own = ec2.get_route_tables(filters=_filters({"association.subnet-id": subnets}), opts=ask).ids
    main = vpc.main_route_table_id
    # The provider leaves out of routes in which state they are; whether one of a table's leads nowhere, EC2 says.
    holed = ec2.get_route_tables(
        filters=_filters({"route-table-id": sorted({main, *own}), "route.state": ["blackhole"]}), opts=ask
    ).ids
    ways = dict.fromkeys(subnets, _way_out(main, holed, ask)[1])
    for table, way in (_way_out(one, holed, ask) for one in own):
        ways |= {one.subnet_id: way for one in table.associations if one.subnet_id in ways}
    return ways


def _way_out(table_id: str, holed: Sequence[str], ask: pulumi.InvokeOptions) -> tuple[ec2.GetRouteTableResult, WayOut]:
    table = ec2.get_route_table(route_table_id=table_id, opts=ask)
    routes = {
        route.cidr_block: next(filter(None, (getattr(route, target) for target in _TARGETS)), "")
        for route in table.routes
    }
    is_gone = table_id in holed and _is_gone(routes.get(ANYWHERE, ""), len(table.routes), ask)
    return table, way_out(routes, [ANYWHERE] if is_gone else ())


def _is_gone(target: str, routes: int, ask: pulumi.InvokeOptions) -> bool:
    """Whether it is the default route of a table that leads nowhere, where one of its routes does.

    The only one of a table is it. Of several, a NAT gateway can be asked for; where the default route leads to
    something else, nobody tells which of them it is, and the look before `up` does (`preflight`).
    """
    if not target:
        return False
    if target.startswith("nat-"):
        alive = _filters({"nat-gateway-id": [target], "state": ["available", "pending"]})
        return not ec2.get_nat_gateways(filters=alive, opts=ask).ids
    return routes == 1


def _groups(ids: Sequence[str], ask: pulumi.InvokeOptions) -> dict[str, str]:
    """The VPC of each security group that is there."""
    if not ids:
        return {}
    found = ec2.get_security_groups(filters=_filters({"group-id": ids}), opts=ask)
    return dict(zip(found.ids, found.vpc_ids, strict=True))


def _endpoints(vpc: ec2.GetVpcResult, ask: pulumi.InvokeOptions) -> frozenset[str]:
    """Services that nodes without a way out reach."""
    return frozenset(service for service in get_args(EndpointService) if _has_endpoint(vpc, service, ask))


def _has_endpoint(vpc: ec2.GetVpcResult, service: str, ask: pulumi.InvokeOptions) -> bool:
    """Whether there is an endpoint of a service; the provider has no list of endpoints."""
    return any(
        exists(
            partial(ec2.get_vpc_endpoint, vpc_id=vpc.id, service_name=name, state="available", opts=ask),
            f"whether {vpc.id} has an endpoint of {service}, on which nodes without a way out depend",
        )
        for name in endpoint_services(service, vpc.region)
    )


def _filters(values: Mapping[str, Iterable[str]]) -> list[Any]:
    """EC2's filters; the SDK has a type of its own for those of each function."""
    return [{"name": name, "values": list(wanted)} for name, wanted in values.items()]
