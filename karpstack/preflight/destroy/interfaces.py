"""Network interfaces that others put into the stack's own VPC: its subnets cannot be deleted while they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..aws.asking import Aws
from ..finding import Finding, finding
from .subject import Subject

_CALL: Final = "ec2:DescribeNetworkInterfaces"
_VPC: Final = "aws:ec2/vpc:Vpc"
_ENDPOINT: Final = "aws:ec2/vpcEndpoint:VpcEndpoint"
#: The tag of what GuardDuty's Runtime Monitoring makes: an endpoint, and a security group that is called so too.
_GUARD_DUTY: Final = "GuardDutyManaged"
#: Beginnings of descriptions of what goes with the cluster, its nodes and its load balancers, which are told elsewhere.
_OF_THE_CLUSTER: Final = ("Amazon EKS ", "aws-K8S-", "ELB ")
_CONSEQUENCE: Final = "pulumi destroy waits 20 minutes at the subnets and fails with DependencyViolation"


def interfaces(subject: Subject) -> Iterator[Finding]:
    """Find interfaces of neither the stack nor its cluster."""
    resources = subject.state.resources if subject.state else frozenset()
    vpcs = sorted(identifier for kind, identifier in resources if kind == _VPC)
    if subject.aws is None or not vpcs:
        return
    asked: Any = {"Filters": [{"Name": "vpc-id", "Values": vpcs}]}
    for found in subject.aws.all("ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", **asked):
        endpoint = _endpoint(found)
        if endpoint:
            if (_ENDPOINT, endpoint) not in resources:
                yield _of_an_endpoint(subject.aws, endpoint)
        elif _is_foreign(found):
            yield _of_others(subject.aws, found)


def _endpoint(found: Mapping[str, Any]) -> str:
    """ID of the VPC endpoint that an interface belongs to; empty for others."""
    return str(found.get("Description", "")).rpartition("VPC Endpoint Interface ")[2] if _is_endpoint(found) else ""


def _is_endpoint(found: Mapping[str, Any]) -> bool:
    return found.get("InterfaceType") == "vpc_endpoint"


def _is_foreign(found: Mapping[str, Any]) -> bool:
    is_instance = bool((found.get("Attachment") or {}).get("InstanceId"))
    known = found.get("InterfaceType") == "nat_gateway" or is_instance
    return not known and not str(found.get("Description", "")).startswith(_OF_THE_CLUSTER)


def _of_an_endpoint(aws: Aws, endpoint: str) -> Finding:
    told: Any = {"VpcEndpointIds": [endpoint]}
    tags = {
        tag["Key"]: tag["Value"]
        for one in aws.ask("ec2", "DescribeVpcEndpoints", **told).get("VpcEndpoints", [])
        for tag in one.get("Tags") or ()
    }
    delete = f"aws ec2 delete-vpc-endpoints --region {aws.region} --vpc-endpoint-ids {endpoint}"
    if _GUARD_DUTY in tags:
        return finding("guard-duty-endpoint", "ec2:DescribeVpcEndpoints", endpoint=endpoint, delete=delete)
    return finding("vpc-endpoint-left", "ec2:DescribeVpcEndpoints", endpoint=endpoint, delete=delete)


def _of_others(aws: Aws, found: Mapping[str, Any]) -> Finding:
    identifier, said = found["NetworkInterfaceId"], found.get("Description") or found.get("InterfaceType", "")
    return finding("network-interface-left-on-aws", _CALL, identifier=identifier, said=said, region=aws.region)
