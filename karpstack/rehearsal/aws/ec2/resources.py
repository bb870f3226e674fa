"""EC2's types that have behaviour which no row can say: IDs that are made or found, and what changes of a list."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.aws.resource import AwsResource, capital, read_form, same


class Route(AwsResource):
    """One IPv4 route to an internet or NAT gateway. ID: `r-<route table><checksum of the destination>`."""

    type = "aws:ec2/route:Route"

    def identity(self, inputs: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
        """The ID as the provider makes it."""
        return f"r-{inputs['routeTableId']}{zlib.crc32(inputs['destinationCidrBlock'].encode())}"


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
