"""What others have put into the stack's own cluster or VPC on AWS, and what has to go before these can be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..finding import Finding, finding
from .balancers import GROUP, OF_AWS, owner
from .interfaces import GUARD_DUTY
from .subject import Subject

_CLUSTER: Final = "aws:eks/cluster:Cluster"
#: What EKS lists of a cluster, under which key, its type in Pulumi, and how it is called and deleted.
_OF_A_CLUSTER: Final = (
    (
        "ListNodegroups",
        "nodegroups",
        "aws:eks/nodeGroup:NodeGroup",
        "node group",
        "delete-nodegroup",
        "--nodegroup-name",
    ),
    (
        "ListFargateProfiles",
        "fargateProfileNames",
        "aws:eks/fargateProfile:FargateProfile",
        "Fargate profile",
        "delete-fargate-profile",
        "--fargate-profile-name",
    ),
)
#: Tags, with the cluster's name, of security groups that go with the cluster or with a load balancer.
_OF_THE_CLUSTER: Final = ("aws:eks:cluster-name", OF_AWS)


def node_groups(subject: Subject) -> Iterator[Finding]:
    """Node groups and Fargate profiles that the stack has not made: EKS deletes no cluster that has one."""
    if subject.aws is None or subject.state is None or not subject.state.count(_CLUSTER):
        return
    cluster = str(subject.outputs.get("clusterName", ""))
    for operation, result, kind, what, command, option in _OF_A_CLUSTER:
        for name in subject.aws.all("eks", operation, result, clusterName=cluster):
            if not subject.state.has(kind, f"{cluster}:{name}"):
                yield finding(
                    "node-group-of-others",
                    f"eks:{operation}",
                    what=what,
                    name=name,
                    cluster=cluster,
                    delete=f"aws eks {command} --region {subject.aws.region} --cluster-name {cluster} {option} {name}",
                )


def security_groups(subject: Subject) -> Iterator[Finding]:
    """Security groups in the stack's own VPC that neither the stack nor its cluster has made."""
    resources = subject.state.resources if subject.state else frozenset()
    if subject.aws is None or not subject.vpcs:
        return
    own, cluster = {identifier for _, identifier in resources}, str(subject.outputs.get("clusterName", ""))
    asked: Any = {"Filters": [{"Name": "vpc-id", "Values": subject.vpcs}]}
    for group in subject.aws.all("ec2", "DescribeSecurityGroups", "SecurityGroups", **asked):
        if group["GroupId"] not in own and group.get("GroupName") != "default" and not _goes_by_itself(group, cluster):
            yield finding(
                "security-group-of-others",
                "ec2:DescribeSecurityGroups",
                group_id=group["GroupId"],
                group_name=group.get("GroupName", ""),
                region=subject.aws.region,
            )


def _goes_by_itself(group: Mapping[str, Any], cluster: str) -> bool:
    """Whether it goes with the cluster, a load balancer or an endpoint, for each of which there is another check."""
    tags = {tag["Key"]: tag.get("Value") for tag in group.get("Tags") or ()}
    return (
        GUARD_DUTY in tags
        or any(tags.get(tag) == cluster for tag in _OF_THE_CLUSTER)
        or (str(group.get("GroupName")).startswith(GROUP) and tags.get(owner(cluster)) == "owned")
    )
