"""Network interfaces that others put into the stack's own VPC: its subnets cannot be deleted while they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..aws.asking import Aws
from ..finding import Finding, finding
from . import balancers
from .subject import Subject

_CALL: Final = "ec2:DescribeNetworkInterfaces"
#: Load balancers in the stack's state; a classic one's id is its name.
_BALANCERS: Final = ("aws:lb/loadBalancer:", "aws:alb/loadBalancer:")
#: The tag of what GuardDuty's Runtime Monitoring makes: an endpoint, and a security group that is called so too.
GUARD_DUTY: Final = "GuardDutyManaged"
#: Beginnings of descriptions: of interfaces of the control plane, of pods, of load balancers, of endpoints.
_OF_A_CLUSTER: Final = "Amazon EKS "
_OF_PODS: Final = "aws-k8s-"  # in small letters; branch interfaces have it so, and others have aws-K8S-
_OF_A_BALANCER: Final = "ELB "
_OF_AN_ENDPOINT: Final = "VPC Endpoint Interface "
_CONSEQUENCE: Final = "pulumi destroy waits 20 minutes at the subnets and fails with DependencyViolation"


def interfaces(subject: Subject) -> Iterator[Finding]:
    """Find interfaces of neither the stack nor its cluster."""
    resources = subject.state.resources if subject.state else frozenset()
    if subject.aws is None or not subject.vpcs:
        return
    cluster, own = str(subject.outputs.get("clusterName", "")), {_name(*one) for one in resources}
    asked: Any = {"Filters": [{"Name": "vpc-id", "Values": subject.vpcs}]}
    of_instances, of_balancers = {}, {}
    for found in subject.aws.all("ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", **asked):
        said, instance = _said(found), str((found.get("Attachment") or {}).get("InstanceId") or "")
        if found.get("InterfaceType") == "vpc_endpoint" and (endpoint := said.partition(_OF_AN_ENDPOINT)[2]):
            if endpoint not in own:
                yield _of_an_endpoint(subject.aws, endpoint)
        elif found["NetworkInterfaceId"] in own:
            continue
        elif found.get("InterfaceType") == "nat_gateway":
            if said.rpartition(" ")[2] not in own:
                yield _of_others(subject.aws, found, said)
        elif instance:
            of_instances[instance] = found
        elif said.startswith(_OF_A_BALANCER):  # it has one in each zone
            of_balancers[said.removeprefix(_OF_A_BALANCER)] = found
        elif said != f"{_OF_A_CLUSTER}{cluster}" and not said.lower().startswith(_OF_PODS):
            yield _of_others(subject.aws, found, said or str(found.get("InterfaceType", "")))
    # Last, because they need more rights.
    if left := of_instances.keys() - own:
        for instance in sorted(left - _nodes(subject.aws, cluster)):
            yield _of_others(subject.aws, of_instances[instance], instance)
    if left := of_balancers.keys() - own:
        for balancer in sorted(left - balancers.own(subject, subject.aws)):
            yield _of_others(subject.aws, of_balancers[balancer], f"{_OF_A_BALANCER}{balancer}")


def _name(kind: str, identifier: str) -> str:
    """The name of one of the stack's resources, as an interface has it: of a load balancer, the end of its ARN."""
    return identifier.rpartition(":loadbalancer/")[2] if kind.startswith(_BALANCERS) else identifier


def _nodes(aws: Aws, cluster: str) -> set[str]:
    tagged: Any = {"Filters": [{"Name": "tag-key", "Values": [balancers.owner(cluster)]}]}
    reservations = aws.all("ec2", "DescribeInstances", "Reservations", **tagged)
    return {one["InstanceId"] for reservation in reservations for one in reservation["Instances"]}


def _said(found: Mapping[str, Any]) -> str:
    return str(found.get("Description") or "")


def _of_an_endpoint(aws: Aws, endpoint: str) -> Finding:
    told: Any = {"VpcEndpointIds": [endpoint]}
    tags = {
        tag["Key"]: tag["Value"]
        for one in aws.ask("ec2", "DescribeVpcEndpoints", **told).get("VpcEndpoints", [])
        for tag in one.get("Tags") or ()
    }
    delete = f"aws ec2 delete-vpc-endpoints --region {aws.region} --vpc-endpoint-ids {endpoint}"
    if GUARD_DUTY in tags:
        return finding("guard-duty-endpoint", "ec2:DescribeVpcEndpoints", endpoint=endpoint, delete=delete)
    return finding("vpc-endpoint-left", "ec2:DescribeVpcEndpoints", endpoint=endpoint, delete=delete)


def _of_others(aws: Aws, found: Mapping[str, Any], said: str) -> Finding:
    identifier = found["NetworkInterfaceId"]
    return finding("network-interface-left-on-aws", _CALL, identifier=identifier, said=said, region=aws.region)
