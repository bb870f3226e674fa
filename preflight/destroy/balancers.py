"""Load balancers in an AWS account that were made for the cluster, by its own controller or by AWS's.

Where their Service or Ingress is still there, it is what has to be deleted; where it is not, nobody is left to delete
the load balancer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..aws.asking import Aws
from ..finding import Finding
from .subject import Subject, name_of
from .workloads import SERVICES

_CALL: Final = "elasticloadbalancing:DescribeLoadBalancers"
_AT_ONCE: Final = 20  # load balancers whose tags are told at once
#: Tags with the Service or Ingress, `shop/web`: the cloud provider's, and the AWS Load Balancer Controller's.
_SERVICE_TAGS: Final = ("kubernetes.io/service-name", "service.k8s.aws/stack")
_INGRESS_TAG: Final = "ingress.k8s.aws/stack"


@dataclass(frozen=True)
class _Kind:
    """One of the two APIs: its service, and what it calls a load balancer's key, in one and in many."""

    service: str
    result: str
    key: str
    asked: str
    deletes: str


_KINDS: Final = (
    _Kind(
        "elb",
        "LoadBalancerDescriptions",
        "LoadBalancerName",
        "LoadBalancerNames",
        "aws elb delete-load-balancer --region {region} --load-balancer-name {key}",
    ),
    _Kind(
        "elbv2",
        "LoadBalancers",
        "LoadBalancerArn",
        "ResourceArns",
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
        for key, tags in _tagged(subject.aws, kind):
            if f"kubernetes.io/cluster/{cluster}" not in tags and tags.get("elbv2.k8s.aws/cluster") != cluster:
                continue
            service = next((tags[tag] for tag in _SERVICE_TAGS if tag in tags), "")
            if service in there:
                continue  # told by the Service
            ingress = tags.get(_INGRESS_TAG, "")
            made_for = f"the Ingress {ingress}" if ingress else f"the Service {service or 'of a name it does not say'}"
            yield Finding(
                "error",
                f"the load balancer {key} was made for this cluster, for {made_for}"
                + ("" if ingress else ", which is not there any more"),
                "it outlives the cluster and costs on, and its network interfaces and security group stay in the VPC: "
                "pulumi destroy retries for 20 minutes and fails with DependencyViolation",
                (f"delete the Ingress and wait until it is gone, or {_deletes(subject.aws, kind, key)}")
                if ingress
                else f"{_deletes(subject.aws, kind, key)}, and the security group k8s-... that it leaves",
                _CALL,
            )


def _deletes(aws: Aws, kind: _Kind, key: str) -> str:
    return kind.deletes.format(region=aws.region, key=key)


def _tagged(aws: Aws, kind: _Kind) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Key and tags of each load balancer of a kind."""
    keys: list[str] = [one[kind.key] for one in aws.all(kind.service, "DescribeLoadBalancers", kind.result)]
    for first in range(0, len(keys), _AT_ONCE):
        asked: dict[str, Any] = {kind.asked: keys[first : first + _AT_ONCE]}
        for one in aws.ask(kind.service, "DescribeTags", **asked)["TagDescriptions"]:
            yield one.get(kind.key) or one["ResourceArn"], {tag["Key"]: tag.get("Value", "") for tag in one["Tags"]}
