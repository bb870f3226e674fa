"""IAM and resource policies of an EKS environment with Karpenter, as plain documents.

The permissions of controllers are data, in policies.json. Nothing here knows how a policy is attached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

Document = dict[str, Any]
Statement = dict[str, Any]

VERSION: Final = "2012-10-17"

#: Managed policies of every node.
NODE_MANAGED_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
#: The same where the VPC CNI runs with the node's role; an overlay is without it.
CNI_MANAGED_POLICY: Final = "AmazonEKS_CNI_Policy"
#: Managed policy of the EBS CSI driver: volumes and snapshots that bear its tag, which it puts on each that it makes.
#: AmazonEBSCSIDriverEKSClusterScopedPolicy is of one cluster: it wants the tag `ebs.csi.aws.com/cluster-name`, which
#: the driver puts on only where it has `controller.k8sTagClusterId`; volumes of before lack it.
EBS_CSI_MANAGED_POLICIES: Final = ("AmazonEBSCSIDriverPolicyV2",)


@dataclass(frozen=True, kw_only=True)
class ControllerScope:
    """What the controller's permissions are limited to.

    Attributes:
        partition: `aws`, `aws-cn` or `aws-us-gov`.
        region: For example `us-east-1`.
        account_id: Twelve digits.
        cluster_name: Resources are the cluster's by the tag `kubernetes.io/cluster/<cluster_name>`.
        node_role_arn: The only role that the controller may give to instances.
        interruption_queue_arn: Empty when there is no queue; then there is no policy for it either.
    """

    partition: str
    region: str
    account_id: str
    cluster_name: str
    node_role_arn: str
    interruption_queue_arn: str

    @property
    def cluster_arn(self) -> str:
        """ARN of the EKS cluster."""
        return f"arn:{self.partition}:eks:{self.region}:{self.account_id}:cluster/{self.cluster_name}"


def _document(*statements: Statement) -> Document:
    return {"Version": VERSION, "Statement": list(statements)}


def _allow(
    sid: str, action: str | list[str], resource: str | list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Resource": resource, "Action": action}
    return statement if condition is None else {**statement, "Condition": dict(condition)}


def policy(controller: str, subject: str, scope: object) -> Document:
    """Return one of the policies in policies.json.

    Args:
        controller: Whose.
        subject: Which of them.
        scope: Its attributes are what statements have in braces.
    """
    return _document(*_filled(_policies()[controller][subject]["statements"], vars(scope)))


@cache
def _policies() -> Mapping[str, Any]:
    policies: dict[str, Any] = json.loads(Path(__file__).with_name("policies.json").read_text(encoding="utf-8"))
    return policies


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key.format(**words): _filled(entry, words) for key, entry in value.items()}
    return [_filled(entry, words) for entry in value] if isinstance(value, list) else value.format(**words)


#: Short name of each of the controller's policies to the function that makes it.
CONTROLLER_POLICIES: Final[Mapping[str, Callable[[ControllerScope], Document]]] = {
    subject: partial(policy, "controller", subject)
    for subject in (
        "node-lifecycle",
        "iam-integration",
        "eks-integration",
        "interruption",
        "zonal-shift",
        "resource-discovery",
        "spot-role",
    )
}


def service_trust(service: str) -> Document:
    """Trust of a role that an AWS service takes, for example `ec2.amazonaws.com`."""
    return _document({"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"})


def pod_identity_trust(*, account_id: str, cluster_arn: str, namespace: str, service_account: str) -> Document:
    """Trust of a role that EKS Pod Identity hands to the pods of one service account.

    The association says so, too, but whoever may make associations could make another one.

    Args:
        account_id: Account of the cluster.
        cluster_arn: The cluster.
        namespace: Namespace of the service account.
        service_account: Its name.
    """
    return _document(
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            # Pod Identity tags each session with cluster, namespace and service account.
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:SourceAccount": account_id,
                    "aws:RequestTag/eks-cluster-arn": cluster_arn,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": service_account,
                }
            },
        }
    )


def irsa_trust(*, provider_arn: str, issuer: str, namespace: str, service_account: str) -> Document:
    """Trust of a role that one service account takes with its token (IAM roles for service accounts).

    Args:
        provider_arn: ARN of the IAM OpenID Connect provider of the cluster.
        issuer: The cluster's issuer URL, `https://...`.
        namespace: Namespace of the service account.
        service_account: Its name.
    """
    subject = issuer.removeprefix("https://")
    return _document(
        {
            "Effect": "Allow",
            "Principal": {"Federated": provider_arn},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {
                "StringEquals": {
                    f"{subject}:aud": "sts.amazonaws.com",
                    f"{subject}:sub": f"system:serviceaccount:{namespace}:{service_account}",
                }
            },
        }
    )


def flow_log_trust(*, partition: str, region: str, account_id: str) -> Document:
    """Trust of a role with which flow logs of an account's VPCs are written."""
    trust = service_trust("vpc-flow-logs.amazonaws.com")
    trust["Statement"][0]["Condition"] = {
        "StringEquals": {"aws:SourceAccount": account_id},
        # A flow log's ID is known only when it is there.
        "ArnLike": {"aws:SourceArn": f"arn:{partition}:ec2:{region}:{account_id}:vpc-flow-log/*"},
    }
    return trust


def flow_log_delivery(*, partition: str, region: str, account_id: str, group: str) -> Document:
    """Write to a log group that exists, and make none: late lines would bring it back when the stack is gone."""
    arn = f"arn:{partition}:logs:{region}:{account_id}:log-group:{group}"
    actions = ["CreateLogStream", "PutLogEvents", "DescribeLogGroups", "DescribeLogStreams"]
    return _document(_allow("AllowFlowLogDelivery", [f"logs:{action}" for action in actions], [arn, f"{arn}:*"]))


def interruption_queue_policy(queue_arn: str, rule_arns: Sequence[str]) -> Document:
    """Let these rules of EventBridge send to the queue, and nobody use it without TLS.

    Karpenter believes what is in the queue. Upstream's template lets EventBridge of any account in.
    """
    return {
        "Version": VERSION,
        "Id": "EC2InterruptionPolicy",
        "Statement": [
            {
                "Sid": "AllowEvents",
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": list(rule_arns)}},
            },
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": queue_arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    }
