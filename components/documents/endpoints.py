"""VPC endpoints of a cluster's network: which services it needs where nothing leads out, and who may use them.

From EKS's user guide, "Deploy private clusters with limited internet access", and Karpenter's getting started,
"Private clusters". Two of the controller's services have no endpoint: IAM, so the stack makes the instance profile that
Karpenter would make, and the price list, so Karpenter takes the prices that it carries; it is told by `isolatedVPC`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from .iam import VERSION
from .partitions import suffixes

#: Services for which an endpoint can be asked, as in `com.amazonaws.<region>.<service>`.
EndpointService = Literal[
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
    "s3",
    "sqs",
    "ssm",
    "ssmmessages",
    "sts",
]
#: What nodes, Karpenter and EKS's add-ons call on any such cluster; layers of images lie in S3.
ALWAYS: Final[tuple[EndpointService, ...]] = ("ec2", "ecr.api", "ecr.dkr", "eks", "s3", "ssm", "sts")
#: The one that is an entry in route tables, costs nothing, and has neither addresses nor a security group.
GATEWAYS: Final[tuple[EndpointService, ...]] = ("s3",)
#: Those whose callers all sign as principals of this account. Not STS, to whom pods come with a token of the cluster's;
#: not S3, where ECR signs the addresses of layers.
_SIGNED: Final[tuple[EndpointService, ...]] = (
    "ec2",
    "ecr.api",
    "eks",
    "elasticloadbalancing",
    "kms",
    "logs",
    "sqs",
    "ssm",
)


def needed(
    *, interruption_queue: bool, pod_identity: bool, load_balancer_controller: bool
) -> tuple[EndpointService, ...]:
    """Services without whose endpoints a cluster does not come up where nothing leads out.

    Args:
        interruption_queue: Whether Karpenter reads a queue.
        pod_identity: Whether a service account gets its role by Pod Identity.
        load_balancer_controller: Whether the AWS Load Balancer Controller runs.
    """
    more: list[EndpointService] = []
    if interruption_queue:
        more.append("sqs")
    if pod_identity:
        more.append("eks-auth")
    if load_balancer_controller:
        more.append("elasticloadbalancing")
    return (*ALWAYS, *more)


def host_names(services: Iterable[str], region: str) -> list[str]:
    """Names that lead to endpoints inside the VPC; names below them do too, as those of S3's buckets."""
    return [_host_name(service, region) for service in services]


def api_servers(region: str) -> str:
    """What the names of EKS's API servers in a region end with."""
    return f".{region}.eks.{suffixes(region).dns}"


def _host_name(service: str, region: str) -> str:
    if service == "eks-auth":
        return f"eks-auth.{region}.{suffixes(region).dual_stack}"
    # ecr.api is called api.ecr, and ecr.dkr is dkr.ecr below the registries' own names.
    return f"{'.'.join(reversed(service.split('.')))}.{region}.{suffixes(region).dns}"


def endpoint_policy(service: EndpointService, account_id: str) -> dict[str, Any] | None:
    """Who may use an endpoint: principals of this account alone, so that nobody carries data out with keys of his own.

    None where AWS's own policy stays, which lets everybody through who may call the service.
    """
    if service not in _SIGNED:
        return None
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "OwnPrincipals",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "*",
                "Resource": "*",
                "Condition": {"StringEquals": {"aws:PrincipalAccount": account_id}},
            }
        ],
    }
