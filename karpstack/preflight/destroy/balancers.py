"""Load balancers in an AWS account that were made for the cluster, by its own controller or by AWS's.

Where their Service, Ingress or Gateway is still there, it is what has to be deleted; where it is not, nobody is left to
delete the load balancer, nor the security group that the cluster's own controller made for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..aws.asking import Aws
from ..finding import Finding, finding
from .subject import Subject, name_of
from .workloads import SERVICES

_CALL: Final = "elasticloadbalancing:DescribeLoadBalancers"
_AT_ONCE: Final = 20  # load balancers whose tags are told at once
#: Tags with the Service or Ingress, `shop/web`: the cloud provider's, and the AWS Load Balancer Controller's.
_SERVICE_TAGS: Final = ("kubernetes.io/service-name", "service.k8s.aws/stack")
#: Tags with what else AWS's controller makes them for. Whether it is still there the cluster is not asked.
_OTHERS: Final[Mapping[str, str]] = {
    "ingress.k8s.aws/stack": "Ingress",
    "gateway.k8s.aws.alb/stack": "Gateway",
    "gateway.k8s.aws.nlb/stack": "Gateway",
}
#: The tag, with the cluster's name, of what AWS's controller makes.
OF_AWS: Final = "elbv2.k8s.aws/cluster"
_GROUPS: Final = "ec2:DescribeSecurityGroups"
#: How the name of a security group of the cluster's own controller begins; then follows the classic load balancer's.
GROUP: Final = "k8s-elb-"
_BACKEND: Final = "backend-sg"  # of AWS's controller: the one group that all of its load balancers share
_RESOURCE: Final = "elbv2.k8s.aws/resource"


@dataclass(frozen=True)
class _Kind:
    """One of the two APIs: its service, and what it calls a load balancer's key, in one and in many, and its VPC."""

    service: str
    result: str
    key: str
    asked: str
    vpc: str
    deletes: str


_KINDS: Final = (
    _Kind(
        "elb",
        "LoadBalancerDescriptions",
        "LoadBalancerName",
        "LoadBalancerNames",
        "VPCId",
        "aws elb delete-load-balancer --region {region} --load-balancer-name {key}",
    ),
    _Kind(
        "elbv2",
        "LoadBalancers",
        "LoadBalancerArn",
        "ResourceArns",
        "VpcId",
        "aws elbv2 delete-load-balancer --region {region} --load-balancer-arn {key}",
    ),
)


def balancers(subject: Subject) -> Iterator[Finding]:
    """Those of no Service of the cluster's."""
    if subject.aws is None:
        return
    cluster = str(subject.outputs.get("clusterName", ""))
    there = {
        name_of(service)
        for service in subject.cluster.list(SERVICES)
        if (service.get("spec") or {}).get("type") == "LoadBalancer"
    }
    for kind in _KINDS:
        for key, tags in _tagged(subject.aws, kind, subject.vpcs):
            if not _is_own(tags, cluster):
                continue
            service = next((tags[tag] for tag in _SERVICE_TAGS if tag in tags), "")
            if service in there:
                continue  # told by the Service
            other = next((f"the {what} {tags[tag]}" for tag, what in _OTHERS.items() if tag in tags), "")
            deletes = kind.deletes.format(region=subject.aws.region, key=key)
            yield finding(
                "load-balancer-of-another-object" if other else "load-balancer-of-deleted-service",
                _CALL,
                key=key,
                made_for=other or f"the Service {service or '(unknown name)'}, which no longer exists",
                other=other,
                deletes=deletes,
            )


def own(subject: Subject, aws: Aws) -> set[str]:
    """Return the load balancers that were made for the cluster, as their interfaces' descriptions name them.

    A classic one by its name, another one as `app/NAME/ID`, the end of its ARN.
    """
    cluster = str(subject.outputs.get("clusterName", ""))
    return {
        key.rpartition(":loadbalancer/")[2]
        for kind in _KINDS
        for key, tags in _tagged(aws, kind, subject.vpcs)
        if _is_own(tags, cluster)
    }


def groups(subject: Subject) -> Iterator[Finding]:
    """Security groups of the cluster's own controller whose load balancers are gone, and those of AWS's controller."""
    if subject.aws is None:
        return
    aws, cluster = subject.aws, str(subject.outputs.get("clusterName", ""))
    yield from _of_the_own_controller(aws, cluster)
    yield from _of_awss_controller(aws, cluster)


def _of_the_own_controller(aws: Aws, cluster: str) -> Iterator[Finding]:
    found = aws.all("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=[_tag(owner(cluster), "owned")])
    left = [group for group in found if group["GroupName"].startswith(GROUP)]
    if not left:
        return
    balanced = {one[_KINDS[0].key] for one in aws.all(_KINDS[0].service, "DescribeLoadBalancers", _KINDS[0].result)}
    for group in left:
        if group["GroupName"].removeprefix(GROUP) in balanced:
            continue  # its load balancer is told, or its Service
        yield finding(
            "security-group-of-deleted-balancer",
            _GROUPS,
            group_id=group["GroupId"],
            group_name=group["GroupName"],
            delete=_deletes(aws, group),
        )


def _of_awss_controller(aws: Aws, cluster: str) -> Iterator[Finding]:
    """It deletes them itself, with the last load balancer that has them, as long as it runs."""
    for group in aws.all("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=[_tag(OF_AWS, cluster)]):
        tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags") or ()}
        what = "that its load balancers share" if tags.get(_RESOURCE) == _BACKEND else "of one of its load balancers"
        yield finding(
            "security-group-of-balancer-controller",
            _GROUPS,
            group_id=group["GroupId"],
            group_name=group["GroupName"],
            what=what,
            delete=_deletes(aws, group),
        )


def _deletes(aws: Aws, group: Mapping[str, Any]) -> str:
    """The commands that delete a security group, and before it the rules of others that let it in."""
    identifier = group["GroupId"]
    in_the_vpc = aws.all(
        "ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=[{"Name": "vpc-id", "Values": [group["VpcId"]]}]
    )
    revoked = [
        f"aws ec2 revoke-security-group-ingress --region {aws.region} --group-id {one['GroupId']} --protocol all "
        f"--source-group {identifier}, "
        for one in in_the_vpc
        if _lets_in(one, identifier)
    ]
    deleted = f"aws ec2 delete-security-group --region {aws.region} --group-id {identifier}"
    return f"{''.join(revoked)}then {deleted}" if revoked else deleted


def _is_own(tags: Mapping[str, str], cluster: str) -> bool:
    return tags.get(owner(cluster)) == "owned" or tags.get(OF_AWS) == cluster


def owner(cluster: str) -> str:
    """The tag of what a cluster's controller owns, or, as `shared`, only uses."""
    return f"kubernetes.io/cluster/{cluster}"


def _tag(key: str, value: str) -> dict[str, Any]:
    return {"Name": f"tag:{key}", "Values": [value]}


def _lets_in(group: Mapping[str, Any], other: str) -> bool:
    """Whether a rule of one security group names another."""
    return any(
        pair.get("GroupId") == other for rule in group["IpPermissions"] for pair in rule.get("UserIdGroupPairs") or ()
    )


def _tagged(aws: Aws, kind: _Kind, vpcs: Collection[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Key and tags of each load balancer of a kind in some VPCs; of every one where none is known."""
    found = aws.all(kind.service, "DescribeLoadBalancers", kind.result)
    keys: list[str] = [one[kind.key] for one in found if not vpcs or one.get(kind.vpc) in vpcs]
    for first in range(0, len(keys), _AT_ONCE):
        asked: dict[str, Any] = {kind.asked: keys[first : first + _AT_ONCE]}
        for one in aws.ask(kind.service, "DescribeTags", **asked)["TagDescriptions"]:
            yield one.get(kind.key) or one["ResourceArn"], {tag["Key"]: tag.get("Value", "") for tag in one["Tags"]}
