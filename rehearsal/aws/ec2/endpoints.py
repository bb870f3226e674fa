"""EC2's VPC endpoints: interfaces in subnets, and the gateway of S3.

moto makes an endpoint of whatever it is given. What EC2 refuses is refused here, with its codes and words: as users of
the provider quote them (hashicorp/terraform-provider-aws#17535 for names that are taken,
terraform-aws-modules/terraform-aws-vpc#583 for two subnets of a zone), and of DNS attributes as AWS's PrivateLink guide
has it, "Enable private DNS names".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rehearsal.attachment.resource import Properties
from rehearsal.aws.ec2.resources import Ec2Resource
from rehearsal.aws.resource import AwsRefusalError, same

NO_SERVICE = "The Vpc Endpoint Service '{service}' does not exist"
WRONG_TYPE = "Endpoint type ({kind}) does not match available service types ([{known}])."
NAME_TAKEN = (
    "private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
    "{service}.{region}.amazonaws.com in the VPC {vpc}"
)
NO_DNS = (
    "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true for {vpc}"
)
SAME_ZONE = (
    "Found another VPC endpoint subnet in the availability zone of {subnet}. VPC endpoint subnets should be in "
    "different availability zones supported by the VPC endpoint service."
)
OTHER_VPC = "{what} {id} does not belong to the VPC {vpc}"

#: Services that have interface endpoints, of those that a cluster may want; S3 has a gateway, too.
SERVICES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            "autoscaling",
            "ec2",
            "ec2messages",
            "ecr.api",
            "ecr.dkr",
            "eks",
            "eks-auth",
            "elasticloadbalancing",
            "kms",
            "logs",
            "monitoring",
            "sqs",
            "ssm",
            "ssmmessages",
            "sts",
        ),
        frozenset({"Interface"}),
    ),
    "s3": frozenset({"Gateway", "Interface"}),
}


class VpcEndpoint(Ec2Resource):
    """An endpoint of one of AWS's services. ID: vpce-..."""

    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    title, noun = "EC2 VPC Endpoint", "VpcEndpoint"
    lists = frozenset({"routeTableIds", "securityGroupIds", "subnetIds"})
    at_creation = lists | {"privateDnsEnabled", "serviceName", "vpcEndpointType", "vpcId"}
    reported = frozenset({"privateDnsEnabled", "serviceName", "state", "vpcEndpointType", "vpcId", "ownerId"})
    accepts = at_creation | {"policy", "tags"}
    replace_on = frozenset({"serviceName", "vpcEndpointType", "vpcId"})
    required = frozenset({"vpcId", "serviceName"})
    computed = frozenset({"policy", "privateDnsEnabled"}) | lists
    defaults: ClassVar[Mapping[str, Any]] = {"vpcEndpointType": "Gateway"}
    unset: ClassVar[Mapping[str, Any]] = {
        "cidrBlocks": [],
        "dnsOptions": {},
        "ipAddressType": "ipv4",
        "prefixListId": "",
        "requesterManaged": False,
        "resourceConfigurationArn": "",
        "serviceNetworkArn": "",
        "subnetConfigurations": [],
    }

    def request(self, inputs: Properties) -> dict[str, Any]:
        """EC2 calls the policy a document."""
        document = {"PolicyDocument": inputs["policy"]} if inputs.get("policy") else {}
        return {**super().request(inputs), **document}

    def make(self, inputs: Properties) -> str:
        """create_vpc_endpoint, once EC2 would take it."""
        self._check_service(inputs)
        self._check_places(inputs)
        if inputs.get("privateDnsEnabled"):
            self._check_names(inputs)
        return super().make(inputs)

    def describe(self, id: str) -> dict[str, Any] | None:
        """A deleted endpoint stays in EC2's answers for a while."""
        described = super().describe(id)
        return None if described is None or described["State"].lower() in ("deleted", "deleting") else described

    def outputs(self, id: str, described: dict[str, Any]) -> Properties:
        """Where it is, and who may use it."""
        policy = described.get("PolicyDocument")
        return {
            "arn": self.arn("ec2", f"vpc-endpoint/{id}"),
            "ownerId": self.account.account_id,
            "policy": policy,
            "serviceRegion": self.account.region,
            "dnsEntries": [
                {"dnsName": one.get("DnsName", ""), "hostedZoneId": one.get("HostedZoneId", "")}
                for one in described.get("DnsEntries", [])
            ],
            "networkInterfaceIds": described.get("NetworkInterfaceIds", []),
            "routeTableIds": described.get("RouteTableIds", []),
            "subnetIds": described.get("SubnetIds", []),
            "securityGroupIds": [group["GroupId"] for group in described.get("Groups", [])],
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """modify_vpc_endpoint: policy, and what is added to and taken from each list."""
        self._check_places(new)
        wanted: dict[str, Any] = {}
        for key, parameter in (
            ("routeTableIds", "RouteTableIds"),
            ("securityGroupIds", "SecurityGroupIds"),
            ("subnetIds", "SubnetIds"),
        ):
            before, after = set(old.get(key) or ()), set(new.get(key) or ())
            wanted |= {f"Add{parameter}": sorted(after - before), f"Remove{parameter}": sorted(before - after)}
        document = new.get("policy")
        if document and same(document, old.get("policy")) != document:
            wanted["PolicyDocument"] = document
        self.client.modify_vpc_endpoint(VpcEndpointId=id, **{key: value for key, value in wanted.items() if value})

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_vpc_endpoints."""
        if self.describe(id) is not None:
            self.client.delete_vpc_endpoints(VpcEndpointIds=[id])

    def _check_service(self, inputs: Properties) -> None:
        prefix, name = f"com.amazonaws.{self.account.region}.", str(inputs["serviceName"])
        kinds = SERVICES.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if kinds is None:
            raise AwsRefusalError("InvalidServiceName", NO_SERVICE.format(service=name))
        if inputs["vpcEndpointType"] not in kinds:
            known = ", ".join(sorted(kinds))
            raise AwsRefusalError("InvalidParameter", WRONG_TYPE.format(kind=inputs["vpcEndpointType"], known=known))

    def _check_places(self, inputs: Properties) -> None:
        """Subnets, groups and tables are the VPC's, each zone has one subnet."""
        vpc = inputs["vpcId"]
        self.client.describe_vpcs(VpcIds=[vpc])
        subnets = inputs.get("subnetIds") or []
        found = self.client.describe_subnets(SubnetIds=subnets)["Subnets"] if subnets else []
        self._in_vpc("subnet", vpc, {one["SubnetId"]: one["VpcId"] for one in found})
        zones = Counter(one["AvailabilityZone"] for one in found)
        for one in found:
            if zones[one["AvailabilityZone"]] > 1:
                raise AwsRefusalError("DuplicateSubnetsInSameZone", SAME_ZONE.format(subnet=one["SubnetId"]))
        if groups := inputs.get("securityGroupIds"):
            there = self.client.describe_security_groups(GroupIds=groups)["SecurityGroups"]
            self._in_vpc("security group", vpc, {one["GroupId"]: one["VpcId"] for one in there})
        if tables := inputs.get("routeTableIds"):
            known = self.client.describe_route_tables(RouteTableIds=tables)["RouteTables"]
            self._in_vpc("route table", vpc, {one["RouteTableId"]: one["VpcId"] for one in known})

    def _in_vpc(self, what: str, vpc: str, vpcs: Mapping[str, str]) -> None:
        for id, other in vpcs.items():
            if other != vpc:
                raise AwsRefusalError("InvalidParameter", OTHER_VPC.format(what=what, id=id, vpc=vpc))

    def _check_names(self, inputs: Properties) -> None:
        """Private DNS: only with both attributes of the VPC, and once for a service."""
        vpc, name = inputs["vpcId"], inputs["serviceName"]
        for attribute, key in (("enableDnsSupport", "EnableDnsSupport"), ("enableDnsHostnames", "EnableDnsHostnames")):
            if not self.client.describe_vpc_attribute(VpcId=vpc, Attribute=attribute)[key]["Value"]:
                raise AwsRefusalError("InvalidParameter", NO_DNS.format(vpc=vpc))
        for one in self.client.describe_vpc_endpoints()["VpcEndpoints"]:
            same_service = (one["VpcId"], one["ServiceName"]) == (vpc, name)
            if same_service and one.get("PrivateDnsEnabled") and one["State"].lower() != "deleted":
                service = name.rpartition(f"{self.account.region}.")[2]
                raise AwsRefusalError(
                    "InvalidParameter", NAME_TAKEN.format(service=service, region=self.account.region, vpc=vpc)
                )
