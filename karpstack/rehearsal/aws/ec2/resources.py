"""EC2's types that have behaviour which no row can say: IDs that are made or found, and what changes of a list."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import Failure, Properties, RefusedError
from karpstack.rehearsal.aws.resource import AwsResource, AwsResourceWithBlocks, capital, in_order, read_form, same

#: Targets of a route that the simulated account has.
_TARGETS: Final = ("gatewayId", "natGatewayId")
#: A route of a table, as the provider answers it.
_ROUTE: Final = dict.fromkeys(
    (
        *_TARGETS,
        *("carrierGatewayId", "cidrBlock", "coreNetworkArn", "destinationPrefixListId", "egressOnlyGatewayId"),
        *("ipv6CidrBlock", "localGatewayId", "networkInterfaceId", "transitGatewayId", "vpcEndpointId"),
        "vpcPeeringConnectionId",
    ),
    "",
)


class Route(AwsResource):
    """One IPv4 route to an internet or NAT gateway. ID: `r-<route table><checksum of the destination>`."""

    type = "aws:ec2/route:Route"

    def identity(self, inputs: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
        """The ID as the provider makes it."""
        return f"r-{inputs['routeTableId']}{zlib.crc32(inputs['destinationCidrBlock'].encode())}"


class RouteTable(AwsResourceWithBlocks):
    """A route table, with the routes that stand in it. ID: rtb-...

    The provider makes the routes equal to the blocks that the program has. Without blocks it lets routes alone, which
    then are other resources.
    """

    type = "aws:ec2/routeTable:RouteTable"

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Each route has a destination of its own."""
        blocks = inputs.get("routes")
        known = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        if not all(block.get("cidrBlock") for block in known):
            yield Failure("routes", "the rehearsal supports only routes with a cidrBlock", unsupported=True)
        cidrs = [block.get("cidrBlock") for block in known]
        for cidr in sorted({one for one in cidrs if isinstance(one, str) and cidrs.count(one) > 1}):
            yield Failure("routes", f"two routes to {cidr}; a table has one for each destination")

    def describe(self, id: str, state: Properties) -> Properties | None:
        """The table; its routes in the program's order, if it has them."""
        seen = super().describe(id, state)
        if seen is not None and self.describes_blocks("routes", state):
            there = self._routes(id)
            order = in_order(there, [block.get("cidrBlock") for block in state.get("routes") or ()])
            seen["routes"] = [{**_ROUTE, "cidrBlock": cidr, **there[cidr]} for cidr in order]
        return seen

    def _routes(self, id: str) -> dict[str, Properties]:
        """The target of each destination, without the VPC's own."""
        (table,) = self.client.describe_route_tables(RouteTableIds=[id])["RouteTables"]
        return {
            route["DestinationCidrBlock"]: {name: route[capital(name)] for name in _TARGETS if route.get(capital(name))}
            for route in table["Routes"]
            if route.get("DestinationCidrBlock") and route.get("GatewayId") != "local"
        }

    def set_blocks(self, id: str, inputs: Properties) -> None:
        """Make the routes those of the program."""
        if (blocks := inputs.get("routes")) is None:
            return
        route, there = Route(self.session), self._routes(id)
        wanted = {block["cidrBlock"]: {name: block[name] for name in _TARGETS if block.get(name)} for block in blocks}
        for cidr in there:
            if there[cidr] != wanted.get(cidr):
                route.remove("", {"routeTableId": id, "destinationCidrBlock": cidr}, 0)
        for cidr, target in wanted.items():
            if target != there.get(cidr):
                route.make({"routeTableId": id, "destinationCidrBlock": cidr, **target})


class RouteTableAssociation(AwsResource):
    """Which route table a subnet uses. ID: rtbassoc-..."""

    type = "aws:ec2/routeTableAssociation:RouteTableAssociation"

    def imported(self, id: str) -> tuple[str, Properties]:
        """By subnet and table: `subnet-6777656e646f6c796e/rtb-656c65616e6f72`."""
        found = read_form("{subnet}/{table}", id)
        if not found:
            raise RefusedError(f"unexpected format of ID ({id!r}), expected subnet ID/route table ID")
        filters = [{"Name": "association.subnet-id", "Values": [found["subnet"]]}]
        for table in self.client.describe_route_tables(Filters=filters)["RouteTables"]:
            for association in table["Associations"]:
                if (association["RouteTableId"], association.get("SubnetId")) == (found["table"], found["subnet"]):
                    return str(association["RouteTableAssociationId"]), {}
        raise RefusedError("no association found between subnet {subnet} and route table {table}".format(**found))


class VpcEndpoint(AwsResource):
    """An endpoint of one of AWS's services: interfaces in subnets, or the gateway of S3. ID: vpce-..."""

    type = "aws:ec2/vpcEndpoint:VpcEndpoint"

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """modify_vpc_endpoint: policy, and what is added to and taken from each list."""
        super().adjust(id, old, new, timeout)
        wanted: dict[str, Any] = {}
        for key in ("routeTableIds", "securityGroupIds", "subnetIds"):
            before, after, parameter = set(old.get(key) or ()), set(new.get(key) or ()), capital(key)
            wanted |= {f"Add{parameter}": sorted(after - before), f"Remove{parameter}": sorted(before - after)}
        document = new.get("policy")
        if document and same(document, old.get("policy")) != document:
            wanted["PolicyDocument"] = document
        self.client.modify_vpc_endpoint(VpcEndpointId=id, **{key: value for key, value in wanted.items() if value})
