"""Network interfaces that others put into the stack's own VPC: its subnets cannot be deleted while they are there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..aws.asking import Aws
from ..finding import Finding, finding
from . import balancers
from .subject import Subject

_CALL: Final = "ec2:DescribeNetworkInterfaces"
_VPC: Final = "aws:ec2/vpc:Vpc"
_ENDPOINT: Final = "aws:ec2/vpcEndpoint:VpcEndpoint"
_GATEWAY: Final = "aws:ec2/natGateway:NatGateway"
#: The tag of what GuardDuty's Runtime Monitoring makes: an endpoint, and a security group that is called so too.
_GUARD_DUTY: Final = "GuardDutyManaged"
#: Beginnings of descriptions: of the control plane's interfaces, of those of pods, and of those of load balancers.
_OF_A_CLUSTER: Final = "Amazon EKS "
_OF_PODS: Final = "aws-K8S-"
_OF_A_BALANCER: Final = "ELB "
_CONSEQUENCE: Final = "pulumi destroy waits 20 minutes at the subnets and fails with DependencyViolation"


def interfaces(subject: Subject) -> Iterator[Finding]:
    """Find interfaces of neither the stack nor its cluster."""
    resources = subject.state.resources if subject.state else frozenset()
    vpcs = sorted(identifier for kind, identifier in resources if kind == _VPC)
    if subject.aws is None or not vpcs:
        return
    asked: Any = {"Filters": [{"Name": "vpc-id", "Values": vpcs}]}
    listed = subject.aws.all("ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", **asked)
    known = _known(subject, subject.aws, listed)
    told = set()  # a load balancer has one in each zone
    for found in listed:
        endpoint = _endpoint(found)
        if endpoint:
            if (_ENDPOINT, endpoint) not in resources:
                yield _of_an_endpoint(subject.aws, endpoint)
        elif _is_foreign(found, known) and (said := _said(found)) not in told:
            if said.startswith(_OF_A_BALANCER):
                told.add(said)
            yield _of_others(subject.aws, found)


def _endpoint(found: Mapping[str, Any]) -> str:
    """ID of the VPC endpoint that an interface belongs to; empty for others."""
    return str(found.get("Description", "")).rpartition("VPC Endpoint Interface ")[2] if _is_endpoint(found) else ""


def _is_endpoint(found: Mapping[str, Any]) -> bool:
    return found.get("InterfaceType") == "vpc_endpoint"


@dataclass(frozen=True)
class _Known:
    """What is the stack's or its cluster's, and goes with it or is told elsewhere.

    Attributes:
        cluster: Name of the cluster.
        nodes: IDs of its instances.
        gateways: IDs of the stack's NAT gateways.
        balancers: As `balancers.own`.
    """

    cluster: str
    nodes: Collection[str]
    gateways: Collection[str]
    balancers: Collection[str]


def _known(subject: Subject, aws: Aws, listed: Collection[Mapping[str, Any]]) -> _Known:
    cluster = str(subject.outputs.get("clusterName", ""))
    resources = subject.state.resources if subject.state else ()
    tagged: Any = {"Filters": [{"Name": "tag-key", "Values": [balancers.owner(cluster)]}]}
    has_instances = any(_instance(found) for found in listed)
    has_balancers = any(_said(found).startswith(_OF_A_BALANCER) for found in listed)
    reservations = aws.all("ec2", "DescribeInstances", "Reservations", **tagged) if has_instances else ()
    return _Known(
        cluster,
        {one["InstanceId"] for reservation in reservations for one in reservation["Instances"]},
        {identifier for kind, identifier in resources if kind == _GATEWAY},
        balancers.own(subject, aws) if has_balancers else (),
    )


def _said(found: Mapping[str, Any]) -> str:
    return str(found.get("Description", ""))


def _instance(found: Mapping[str, Any]) -> str:
    return str((found.get("Attachment") or {}).get("InstanceId") or "")


def _is_foreign(found: Mapping[str, Any], known: _Known) -> bool:
    said = _said(found)
    if found.get("InterfaceType") == "nat_gateway":
        return said.rpartition(" ")[2] not in known.gateways
    if instance := _instance(found):
        return instance not in known.nodes
    if said.startswith(_OF_A_BALANCER):
        return said.removeprefix(_OF_A_BALANCER) not in known.balancers
    return said != f"{_OF_A_CLUSTER}{known.cluster}" and not said.startswith(_OF_PODS)


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
    identifier, said = found["NetworkInterfaceId"], _said(found) or _instance(found) or found.get("InterfaceType", "")
    return finding("network-interface-left-on-aws", _CALL, identifier=identifier, said=said, region=aws.region)
