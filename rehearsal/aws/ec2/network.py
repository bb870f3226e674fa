"""EC2's network: VPC, subnets, gateways and routes.

The account refuses to delete what is in use. What it would let be created and EC2 would not (a NAT gateway in a VPC
without internet gateway, a route to a gateway that does not exist, a subnet with two route tables) is refused here,
in EC2's words.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Properties, RefusedError
from rehearsal.aws.ec2.resources import Ec2Resource
from rehearsal.aws.resource import AwsRefusalError, api, capital, halves, properties

NO_INTERNET_GATEWAY = "Network {vpc} has no Internet gateway attached"
ADDRESS_TAKEN = "Elastic IP address [{allocation}] is already associated"
ASSOCIATION_CONFLICT = "the specified association for route table {table} conflicts with an existing association"
NO_NAT_GATEWAY = "The natGateway ID '{id}' does not exist"


def _filter(name: str, *values: str) -> dict[str, Any]:
    return {"Name": name, "Values": list(values)}


def _dhcp_options(account: str) -> str:
    """The ID of the options that every VPC of an account has; moto calls them `default`."""
    return f"dopt-{zlib.crc32(account.encode()):08x}"


class Vpc(Ec2Resource):
    """A VPC with its DNS attributes."""

    token = "aws:ec2/vpc:Vpc"
    title, noun = "EC2 VPC", "Vpc"
    at_creation = reported = frozenset({"cidrBlock", "instanceTenancy"})
    attributes = frozenset({"enableDnsHostnames", "enableDnsSupport"})
    accepts = at_creation | attributes | {"tags"}
    replace_on = frozenset({"cidrBlock", "instanceTenancy"})
    required = frozenset({"cidrBlock"})
    computed = frozenset({"cidrBlock", "enableDnsHostnames"})
    defaults: ClassVar[Mapping[str, Any]] = {"enableDnsSupport": True}
    unset: ClassVar[Mapping[str, Any]] = {
        "assignGeneratedIpv6CidrBlock": False,
        "enableNetworkAddressUsageMetrics": False,
        "instanceTenancy": "default",
        "ipv6AssociationId": "",
        "ipv6CidrBlock": "",
        "ipv6CidrBlockNetworkBorderGroup": "",
        "ipv6IpamPoolId": "",
        "ipv6NetmaskLength": 0,
    }

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Set the attributes, one call each as EC2 wants it."""
        for name in sorted(self.attributes):
            if name in inputs:
                self.client.modify_vpc_attribute(VpcId=id, **{capital(name): {"Value": inputs[name]}})

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Set the attributes again."""
        self.complete(id, {"enableDnsHostnames": False, **new}, timeout)

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """Attributes, and what EC2 made along with the VPC."""
        attributes = {
            name: self.client.describe_vpc_attribute(VpcId=id, Attribute=name)[capital(name)]["Value"]
            for name in self.attributes
        }
        tables = self.client.describe_route_tables(Filters=[_filter("vpc-id", id), _filter("association.main", "true")])
        groups = self.client.describe_security_groups(Filters=[_filter("vpc-id", id), _filter("group-name", "default")])
        acls = self.client.describe_network_acls(Filters=[_filter("vpc-id", id), _filter("default", "true")])
        table = tables["RouteTables"][0]["RouteTableId"]
        return {
            **super().outputs(id, described),
            **attributes,
            "mainRouteTableId": table,
            "defaultRouteTableId": table,
            "defaultSecurityGroupId": groups["SecurityGroups"][0]["GroupId"],
            "defaultNetworkAclId": acls["NetworkAcls"][0]["NetworkAclId"],
            "dhcpOptionsId": _dhcp_options(self.account.account_id),
        }


class Subnet(Ec2Resource):
    """A subnet in one zone."""

    token = "aws:ec2/subnet:Subnet"
    title, noun = "EC2 Subnet", "Subnet"
    at_creation = frozenset({"vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId"})
    attributes = frozenset({"mapPublicIpOnLaunch"})
    reported = at_creation | attributes
    accepts = at_creation | attributes | {"tags"}
    replace_on = at_creation
    required = frozenset({"vpcId", "cidrBlock"})
    computed = frozenset({"availabilityZone", "availabilityZoneId", "cidrBlock"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "assignIpv6AddressOnCreation": False,
        "enableDns64": False,
        "enableResourceNameDnsARecordOnLaunch": False,
        "enableResourceNameDnsAaaaRecordOnLaunch": False,
        "ipv6Native": False,
        "mapPublicIpOnLaunch": False,
    }
    unset: ClassVar[Mapping[str, Any]] = {
        "customerOwnedIpv4Pool": "",
        "enableLniAtDeviceIndex": 0,
        "ipv6CidrBlock": "",
        "ipv6CidrBlockAssociationId": "",
        "mapCustomerOwnedIpOnLaunch": False,
        "outpostArn": "",
        "privateDnsHostnameTypeOnLaunch": "ip-name",
    }

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Set the attributes."""
        for name in sorted(self.attributes):
            if name in inputs:
                self.client.modify_subnet_attribute(SubnetId=id, **{capital(name): {"Value": inputs[name]}})

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Set the attributes again."""
        self.complete(id, new, timeout)


class InternetGateway(Ec2Resource):
    """An internet gateway, attached to its VPC."""

    token = "aws:ec2/internetGateway:InternetGateway"
    title, noun = "EC2 Internet Gateway", "InternetGateway"
    accepts = frozenset({"vpcId", "tags"})
    computed = frozenset({"vpcId"})
    unset: ClassVar[Mapping[str, Any]] = {"vpcId": ""}

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Attach it."""
        if inputs.get("vpcId"):
            self.client.attach_internet_gateway(InternetGatewayId=id, VpcId=inputs["vpcId"])

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """The VPC that it is attached to."""
        attachments = described.get("Attachments", [])
        return {**super().outputs(id, described), "vpcId": attachments[0]["VpcId"] if attachments else None}

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Move it to another VPC."""
        self._detach(id)
        self.complete(id, new, timeout)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Detach and delete."""
        self._detach(id)
        super().remove(id, state, timeout)

    def _detach(self, id: str) -> None:
        for attachment in (self.describe(id) or {}).get("Attachments", []):
            self.client.detach_internet_gateway(InternetGatewayId=id, VpcId=attachment["VpcId"])


class Eip(Ec2Resource):
    """An Elastic IP address of a VPC, for a NAT gateway. ID: the allocation's."""

    token = "aws:ec2/eip:Eip"
    title, noun, plural, id_key, kind = "EC2 EIP", "Address", "Addresses", "AllocationId", "elastic-ip"
    accepts = frozenset({"domain", "tags"})
    replace_on = computed = frozenset({"domain"})
    unset: ClassVar[Mapping[str, Any]] = {
        "associationId": "",
        "carrierIp": "",
        "customerOwnedIp": "",
        "customerOwnedIpv4Pool": "",
        "instance": "",
        "networkInterface": "",
        "privateIp": "",
        "ptrRecord": "",
        "publicIpv4Pool": "amazon",
    }

    def make(self, inputs: Properties) -> str:
        """allocate_address."""
        allocated = self.client.allocate_address(Domain=inputs.get("domain", "vpc"), **self.tagging(inputs))
        return str(allocated["AllocationId"])

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """Address and association."""
        zone = "compute-1" if self.account.region == "us-east-1" else f"{self.account.region}.compute"
        address = described["PublicIp"]
        return {
            "arn": self.arn("ec2", f"elastic-ip/{id}"),
            "allocationId": id,
            "domain": described["Domain"],
            "publicIp": address,
            "publicDns": f"ec2-{address.replace('.', '-')}.{zone}.amazonaws.com",
            "networkBorderGroup": self.account.region,
            "associationId": described.get("AssociationId"),
            "privateIp": described.get("PrivateIpAddress"),
            "networkInterface": described.get("NetworkInterfaceId"),
        }

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """release_address."""
        self.client.release_address(AllocationId=id)


class NatGateway(Ec2Resource):
    """A zonal NAT gateway; a public one needs a free address and a VPC with an internet gateway."""

    token = "aws:ec2/natGateway:NatGateway"
    title, noun = "EC2 NAT Gateway", "NatGateway"
    at_creation = frozenset({"allocationId", "subnetId", "connectivityType"})
    reported = frozenset({"subnetId", "connectivityType", "vpcId"})
    accepts = at_creation | {"tags"}
    replace_on = at_creation
    required = frozenset({"subnetId"})
    defaults: ClassVar[Mapping[str, Any]] = {"connectivityType": "public"}
    unset: ClassVar[Mapping[str, Any]] = {
        "availabilityMode": "zonal",
        "secondaryAllocationIds": [],
        "secondaryPrivateIpAddressCount": 0,
        "secondaryPrivateIpAddresses": [],
    }

    def make(self, inputs: Properties) -> str:
        """Create it; EC2 finds these faults while the gateway is pending, which then fails."""
        if inputs["connectivityType"] == "public":
            if not inputs.get("allocationId"):
                raise AwsRefusalError(
                    "MissingParameter",
                    "The request must include the AllocationId parameter. Add "
                    "the required parameter and retry the request.",
                )
            subnet = self.client.describe_subnets(SubnetIds=[inputs["subnetId"]])["Subnets"][0]
            attached = self.client.describe_internet_gateways(Filters=[_filter("attachment.vpc-id", subnet["VpcId"])])
            if not attached["InternetGateways"]:
                raise AwsRefusalError("Gateway.NotAttached", NO_INTERNET_GATEWAY.format(vpc=subnet["VpcId"]))
            address = self.client.describe_addresses(AllocationIds=[inputs["allocationId"]])["Addresses"][0]
            if address.get("AssociationId"):
                raise AwsRefusalError(
                    "Resource.AlreadyAssociated", ADDRESS_TAKEN.format(allocation=inputs["allocationId"])
                )
        return super().make(inputs)

    def describe(self, id: str) -> dict[str, Any] | None:
        """A deleted gateway stays in EC2's answers for an hour."""
        described = super().describe(id)
        return None if described is None or described["State"] in ("deleted", "deleting", "failed") else described

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """Its one address."""
        addresses = described.get("NatGatewayAddresses") or [{}]
        return {
            **properties(addresses[0], ("allocationId", "associationId", "networkInterfaceId", "privateIp", "publicIp"))
        }

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_nat_gateway, once."""
        if self.describe(id) is not None:
            super().remove(id, state, timeout)


class RouteTable(Ec2Resource):
    """A route table without inline routes (they are `ec2.Route`s)."""

    token = "aws:ec2/routeTable:RouteTable"
    title, noun = "EC2 Route Table", "RouteTable"
    at_creation = replace_on = required = reported = frozenset({"vpcId"})
    accepts = frozenset({"vpcId", "tags"})
    # What other resources add is not shown, so that it is no change of this one.
    unset: ClassVar[Mapping[str, Any]] = {"propagatingVgws": [], "routes": []}

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Disassociate, as the provider does, and delete."""
        for association in (self.describe(id) or {}).get("Associations", []):
            if not association.get("Main"):
                self.client.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
        super().remove(id, state, timeout)


class Route(Ec2Resource):
    """One IPv4 route to an internet or NAT gateway. ID: `r-<route table><checksum of the destination>`."""

    token = "aws:ec2/route:Route"
    title, noun = "EC2 Route", "Route"
    targets = frozenset({"gatewayId", "natGatewayId"})
    at_creation = frozenset({"routeTableId", "destinationCidrBlock"}) | targets
    accepts = at_creation
    replace_on = required = frozenset({"routeTableId", "destinationCidrBlock"})
    unset: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        (
            "carrierGatewayId",
            "coreNetworkArn",
            "destinationIpv6CidrBlock",
            "destinationPrefixListId",
            "egressOnlyGatewayId",
            "gatewayId",
            "instanceId",
            "instanceOwnerId",
            "localGatewayId",
            "natGatewayId",
            "networkInterfaceId",
            "transitGatewayId",
            "vpcEndpointId",
            "vpcPeeringConnectionId",
        ),
        "",
    )

    def make(self, inputs: Properties) -> str:
        """create_route; moto takes a NAT gateway that does not exist for none at all."""
        self._check_target(inputs)
        self.client.create_route(**self.request(inputs))
        return self._id(inputs["routeTableId"], inputs["destinationCidrBlock"])

    def imported(self, id: str) -> tuple[str, Properties]:
        """By table and destination: `rtb-656C65616E6F72_10.42.0.0/16`."""
        table, destination = halves(id, "_", "ROUTETABLEID_DESTINATION")
        return self._id(table, destination), {"routeTableId": table, "destinationCidrBlock": destination}

    @staticmethod
    def _id(table: str, destination: str) -> str:
        return f"r-{table}{zlib.crc32(destination.encode())}"

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find it among the routes of its table."""
        tables = self.client.describe_route_tables(RouteTableIds=[state["routeTableId"]])["RouteTables"]
        for route in tables[0]["Routes"]:
            if route.get("DestinationCidrBlock") == state["destinationCidrBlock"]:
                missing: Properties = dict.fromkeys(self.targets & state.keys())
                return {
                    **missing,
                    **properties(route, self.targets),
                    "state": route.get("State", "active"),
                    "origin": route.get("Origin", "CreateRoute"),
                }
        return None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """replace_route."""
        self._check_target(new)
        self.client.replace_route(**self.request(new))

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_route."""
        self.client.delete_route(**api(state, ("routeTableId", "destinationCidrBlock")))

    def _check_target(self, inputs: Properties) -> None:
        if sum(bool(inputs.get(target)) for target in self.targets) != 1:
            raise AwsRefusalError("InvalidParameterCombination", "one of gatewayId and natGatewayId must be set")
        nat = inputs.get("natGatewayId")
        if nat:
            found = self.client.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"]
            if not found or found[0]["State"] != "available":
                raise AwsRefusalError("InvalidNatGatewayID.NotFound", NO_NAT_GATEWAY.format(id=nat))


class RouteTableAssociation(Ec2Resource):
    """Which route table a subnet uses. ID: rtbassoc-..."""

    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    title, noun = "EC2 Route Table Association", "RouteTableAssociation"
    accepts = required = at_creation = frozenset({"subnetId", "routeTableId"})
    unset: ClassVar[Mapping[str, Any]] = {"gatewayId": ""}
    # EC2 gives a moved association a new ID, which the engine cannot take from an update.
    replace_on = accepts
    delete_before_replace = True

    def make(self, inputs: Properties) -> str:
        """associate_route_table; moto answers a second one for a subnet with the first."""
        taken = self.client.describe_route_tables(Filters=[_filter("association.subnet-id", inputs["subnetId"])])[
            "RouteTables"
        ]
        if taken:
            raise AwsRefusalError(
                "Resource.AlreadyAssociated", ASSOCIATION_CONFLICT.format(table=inputs["routeTableId"])
            )
        return str(self.client.associate_route_table(**self.request(inputs))["AssociationId"])

    def imported(self, id: str) -> tuple[str, Properties]:
        """By subnet and table: `subnet-6777656e646f6c796e/rtb-656c65616e6f72`."""
        subnet, wanted = halves(id, "/", "subnet ID/route table ID")
        tables = self.client.describe_route_tables(Filters=[_filter("association.subnet-id", subnet)])["RouteTables"]
        for table in tables:
            for association in table["Associations"]:
                if table["RouteTableId"] == wanted and association.get("SubnetId") == subnet:
                    return str(association["RouteTableAssociationId"]), {}
        raise RefusedError(f"no association found between subnet {subnet} and route table {wanted}")

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find the table that holds the association."""
        tables = self.client.describe_route_tables(Filters=[_filter("association.route-table-association-id", id)])[
            "RouteTables"
        ]
        for table in tables:
            for association in table["Associations"]:
                if association["RouteTableAssociationId"] == id:
                    return {"subnetId": association.get("SubnetId"), "routeTableId": table["RouteTableId"]}
        return None

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """disassociate_route_table."""
        self.client.disassociate_route_table(AssociationId=id)
