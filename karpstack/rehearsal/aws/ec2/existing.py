"""Networks that the account has before anything is rehearsed in it, as a file says: those of somebody else.

The file is what `aws ec2 describe-vpcs`, `describe-subnets`, `describe-route-tables`, `describe-internet-gateways`,
`describe-nat-gateways`, `describe-security-groups` and `describe-vpc-endpoints` answer, in one JSON object; further
keys are not looked at. IDs, zones, tags and free addresses are kept. Of a VPC, `EnableDnsSupport` and
`EnableDnsHostnames` may be said beside what EC2 tells; both are on otherwise.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.aws.tags import unpaired
from karpstack.rehearsal.host import description_files
from karpstack.rehearsal.host.description_files import DescriptionError

_DEFAULT_ROUTE = "0.0.0.0/0"


class NetworkFileError(DescriptionError):
    """The file is not what EC2 would answer, or the rehearsal cannot play it; the text names file, place and fix."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_pascal, extra="ignore", frozen=True)


class _Tagged(_Part):
    tags: list[dict[str, str]] = []

    @property
    def by_key(self) -> dict[str, str]:
        return unpaired(self.tags)


class _Range(_Part):
    cidr_block: str


class _Vpc(_Tagged):
    vpc_id: str
    cidr_block: str
    cidr_block_association_set: list[_Range] = []
    enable_dns_support: bool = True
    enable_dns_hostnames: bool = True


class _Subnet(_Tagged):
    subnet_id: str
    vpc_id: str
    cidr_block: str
    availability_zone: str
    map_public_ip_on_launch: bool = False
    available_ip_address_count: int | None = None


class _Attachment(_Part):
    vpc_id: str


class _InternetGateway(_Tagged):
    internet_gateway_id: str
    attachments: list[_Attachment] = []


class _NatGateway(_Tagged):
    nat_gateway_id: str
    subnet_id: str
    state: str = "available"


class _Route(_Part):
    destination_cidr_block: str = ""
    gateway_id: str = ""
    nat_gateway_id: str = ""
    transit_gateway_id: str = ""
    state: str = "active"


class _Association(_Part):
    main: bool = False
    subnet_id: str = ""


class _RouteTable(_Tagged):
    route_table_id: str
    vpc_id: str
    associations: list[_Association] = []
    routes: list[_Route] = []


class _SecurityGroup(_Tagged):
    group_id: str
    group_name: str
    vpc_id: str


class _Endpoint(_Tagged):
    vpc_endpoint_id: str
    vpc_id: str
    service_name: str
    vpc_endpoint_type: str = "Interface"


class Networks(_Part):
    """What the file has, by EC2's names."""

    vpcs: list[_Vpc] = Field(min_length=1)
    subnets: list[_Subnet] = []
    internet_gateways: list[_InternetGateway] = []
    nat_gateways: list[_NatGateway] = []
    route_tables: list[_RouteTable] = []
    security_groups: list[_SecurityGroup] = []
    vpc_endpoints: list[_Endpoint] = []

    @classmethod
    def load(cls, path: Path) -> Networks:
        """Read a file.

        Raises:
            NetworkFileError: It is not what EC2 would answer.
        """
        return description_files.read(
            path,
            cls.model_validate,
            NetworkFileError,
            what="network",
            command="aws ec2 describe-...",
            page="docs/how-to/eks/existing-vpc.md",
        )


def make(networks: Networks, backend: Any) -> None:
    """Make them in moto's EC2 of an account and region.

    Raises:
        NetworkFileError: The parts do not fit each other.
    """
    from moto.core.exceptions import JsonRESTError, ServiceException

    try:
        _make(networks, backend)
    except (JsonRESTError, ServiceException) as error:
        raise NetworkFileError(
            f"the network that it describes cannot be: {error}; so none was made; write it as EC2 answers it"
        ) from error


def _make(networks: Networks, backend: Any) -> None:
    for vpc in networks.vpcs:
        with named("vpcs", "random_vpc_id", vpc.vpc_id):
            made = backend.create_vpc(vpc.cidr_block, tags=vpc.tags)
        for more in vpc.cidr_block_association_set:
            if more.cidr_block != vpc.cidr_block:
                backend.associate_vpc_cidr_block(vpc.vpc_id, more.cidr_block, False)
        made.enable_dns_support, made.enable_dns_hostnames = vpc.enable_dns_support, vpc.enable_dns_hostnames
    for subnet in networks.subnets:
        with named("subnets", "random_subnet_id", subnet.subnet_id):
            made = backend.create_subnet(
                subnet.vpc_id,
                subnet.cidr_block,
                availability_zone=subnet.availability_zone,
                tags={"subnet": subnet.by_key},
            )
        made.map_public_ip_on_launch = subnet.map_public_ip_on_launch
        if subnet.available_ip_address_count is not None:
            made._available_ip_addresses = subnet.available_ip_address_count
    for gateway in networks.internet_gateways:
        with named("internet_gateways", "random_internet_gateway_id", gateway.internet_gateway_id):
            backend.create_internet_gateway(tags=gateway.tags)
        for attachment in gateway.attachments:
            backend.attach_internet_gateway(gateway.internet_gateway_id, attachment.vpc_id)
    for nat in networks.nat_gateways:
        with named("nat_gateways", "random_nat_gateway_id", nat.nat_gateway_id):
            backend.create_nat_gateway(nat.subnet_id, "", tags=nat.by_key, connectivity_type="private")
        backend.nat_gateways[nat.nat_gateway_id].state = nat.state
    for group in networks.security_groups:
        if group.group_name != "default":  # each VPC comes with its own
            with named("security_groups", "random_security_group_id", group.group_id):
                backend.create_security_group(group.group_name, group.group_name, group.vpc_id, tags=group.by_key)
    for endpoint in networks.vpc_endpoints:
        with named("vpcs", "random_vpc_ep_id", endpoint.vpc_endpoint_id):
            backend.create_vpc_endpoint(
                endpoint.vpc_id, endpoint.service_name, endpoint.vpc_endpoint_type, None, [], tags=endpoint.by_key
            )
    for table in networks.route_tables:
        _bury(table, networks, backend)
        _make_route_table(table, backend)


def _bury(table: _RouteTable, networks: Networks, backend: Any) -> None:
    """Make gateways that are gone, to which routes of a table still lead: EC2 lists them an hour at the most."""
    for route in table.routes:
        if route.state != "blackhole":
            continue
        if (nat := route.nat_gateway_id) and nat not in backend.nat_gateways:
            subnet = next(one.subnet_id for one in networks.subnets if one.vpc_id == table.vpc_id)
            with named("nat_gateways", "random_nat_gateway_id", nat):
                backend.create_nat_gateway(subnet, "", connectivity_type="private")
            backend.delete_nat_gateway(nat)
        elif (gateway := route.gateway_id).startswith("igw-") and gateway not in backend.internet_gateways:
            with named("internet_gateways", "random_internet_gateway_id", gateway):
                backend.create_internet_gateway()
        elif (transit := route.transit_gateway_id) and transit not in backend.transit_gateways:
            with named("transit_gateway", "random_transit_gateway_id", transit):
                backend.create_transit_gateway("somebody else's")
            backend.transit_gateways[transit].state = "deleted"


def _make_route_table(table: _RouteTable, backend: Any) -> None:
    with named("route_tables", "random_route_table_id", table.route_table_id):
        made = backend.create_route_table(table.vpc_id, tags=table.tags)
    for association in table.associations:
        if association.subnet_id:
            backend.associate_route_table(table.route_table_id, subnet_id=association.subnet_id)
        elif association.main:
            for other in backend.route_tables.values():
                if other.vpc_id == table.vpc_id and other.main_association_id and other is not made:
                    made.main_association_id, other.main_association_id = other.main_association_id, None
    for route in table.routes:
        if route.gateway_id == "local":
            continue
        if route.nat_gateway_id in backend.nat_gateways:
            target = {"nat_gateway_id": route.nat_gateway_id}
        elif route.gateway_id in backend.internet_gateways:
            target = {"gateway_id": route.gateway_id}
        elif route.transit_gateway_id:
            if route.transit_gateway_id not in backend.transit_gateways:
                with named("transit_gateway", "random_transit_gateway_id", route.transit_gateway_id):
                    backend.create_transit_gateway("somebody else's")
            target = {"transit_gateway_id": route.transit_gateway_id}
        elif route.destination_cidr_block == _DEFAULT_ROUTE:
            raise NetworkFileError(
                f"the default route of {table.route_table_id} leads to nothing that the rehearsal plays: it has NAT "
                "gateways and internet gateways, which must stand in the file too, and transit gateways; let it lead "
                "to one of them"
            )
        else:
            continue  # what is not the way out is nothing to nodes here
        backend.create_route(table.route_table_id, route.destination_cidr_block, **target)


@contextmanager
def named(module: str, function: str, id: str) -> Iterator[None]:
    """Let moto give the next resource this ID; one of its own if it is empty."""
    patches = Patches()
    if id:
        patches.set(importlib.import_module(f"moto.ec2.models.{module}"), function, lambda: id)
    try:
        yield
    finally:
        patches.undo()
