"""IAM and resource policies of an EKS environment with Karpenter, as plain documents.

The controller's permissions follow upstream's getting-started CloudFormation template for 1.14, statement by
statement and with the same statement IDs, so that the two can be compared; `spot_role` is ours. They are several
policies because one would exceed the 6,144 characters that IAM allows. `unused_rights.json` says why rights stay that
no rehearsal uses. Nothing here knows how a policy is attached.
1.15 calls one thing more, ec2:RebootInstances, and that only behind its gate rebootForRepair, which is off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

    @property
    def instance_profiles(self) -> str:
        """ARN pattern of the account's instance profiles."""
        return f"arn:{self.partition}:iam::{self.account_id}:instance-profile/*"

    @property
    def owned(self) -> str:
        """Key of the tag that marks a resource as the cluster's."""
        return f"kubernetes.io/cluster/{self.cluster_name}"

    def ec2(self, *kinds: str) -> list[str]:
        """ARN patterns of EC2 resources in the region, any account."""
        return [f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*" for kind in kinds]

    def ec2_unowned(self, *kinds: str) -> list[str]:
        """ARN patterns of EC2 resources whose ARN names no account (images, snapshots)."""
        return [f"arn:{self.partition}:ec2:{self.region}::{kind}/*" for kind in kinds]


def _document(*statements: Statement) -> Document:
    return {"Version": VERSION, "Statement": list(statements)}


def _allow(
    sid: str, action: str | list[str], resource: str | list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Resource": resource, "Action": action}
    return statement if condition is None else {**statement, "Condition": dict(condition)}


def node_lifecycle(scope: ControllerScope) -> Document:
    """Launch, tag and terminate instances, and only those of this cluster's NodePools."""
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    created = scope.ec2("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
    resource_is_ours = {
        "StringEquals": {f"aws:ResourceTag/{scope.owned}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    request_is_ours = {
        f"aws:RequestTag/{scope.owned}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": scope.cluster_name,
    }
    request_names_node_pool = {"aws:RequestTag/karpenter.sh/nodepool": "*"}
    return _document(
        _allow(
            "AllowScopedEC2InstanceAccessActions",
            launch,
            scope.ec2_unowned("image", "snapshot")
            + scope.ec2("security-group", "subnet", "capacity-reservation", "placement-group"),
        ),
        _allow("AllowScopedEC2LaunchTemplateAccessActions", launch, scope.ec2("launch-template"), resource_is_ours),
        _allow(
            "AllowScopedEC2InstanceActionsWithTags",
            [*launch, "ec2:CreateLaunchTemplate"],
            created,
            {"StringEquals": request_is_ours, "StringLike": request_names_node_pool},
        ),
        _allow(
            "AllowScopedResourceCreationTagging",
            "ec2:CreateTags",
            created,
            {
                "StringEquals": {
                    **request_is_ours,
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                "StringLike": request_names_node_pool,
            },
        ),
        _allow(
            "AllowScopedResourceTagging",
            "ec2:CreateTags",
            scope.ec2("instance"),
            {
                **resource_is_ours,
                "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": scope.cluster_name},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"],
                },
            },
        ),
        _allow(
            "AllowScopedDeletion",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            scope.ec2("instance", "launch-template"),
            resource_is_ours,
        ),
    )


def iam_integration(scope: ControllerScope) -> Document:
    """Pass the node role, and make the instance profiles that carry it."""
    region = "topology.kubernetes.io/region"
    node_class = "karpenter.k8s.aws/ec2nodeclass"
    resource_is_ours = {
        f"aws:ResourceTag/{scope.owned}": "owned",
        f"aws:ResourceTag/{region}": scope.region,
    }
    request_is_ours = {
        f"aws:RequestTag/{scope.owned}": "owned",
        "aws:RequestTag/eks:eks-cluster-name": scope.cluster_name,
        f"aws:RequestTag/{region}": scope.region,
    }
    return _document(
        _allow(
            "AllowPassingInstanceRole",
            "iam:PassRole",
            scope.node_role_arn,
            {
                "StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]},
            },
        ),
        _allow(
            "AllowScopedInstanceProfileCreationActions",
            ["iam:CreateInstanceProfile"],
            scope.instance_profiles,
            {
                "StringEquals": request_is_ours,
                "StringLike": {f"aws:RequestTag/{node_class}": "*"},
            },
        ),
        _allow(
            "AllowScopedInstanceProfileTagActions",
            ["iam:TagInstanceProfile"],
            scope.instance_profiles,
            {
                "StringEquals": {**resource_is_ours, **request_is_ours},
                "StringLike": {f"aws:ResourceTag/{node_class}": "*", f"aws:RequestTag/{node_class}": "*"},
            },
        ),
        _allow(
            "AllowScopedInstanceProfileActions",
            [
                "iam:AddRoleToInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:DeleteInstanceProfile",
            ],
            scope.instance_profiles,
            {
                "StringEquals": resource_is_ours,
                "StringLike": {f"aws:ResourceTag/{node_class}": "*"},
            },
        ),
    )


def eks_integration(scope: ControllerScope) -> Document:
    """Read this cluster's endpoint, version and service range."""
    return _document(_allow("AllowAPIServerEndpointDiscovery", "eks:DescribeCluster", scope.cluster_arn))


def interruption(scope: ControllerScope) -> Document:
    """Take messages from this cluster's interruption queue."""
    return _document(
        _allow(
            "AllowInterruptionQueueActions",
            ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            scope.interruption_queue_arn,
        )
    )


def zonal_shift(scope: ControllerScope) -> Document:
    """See whether traffic is being shifted away from a zone of this cluster."""
    return _document(
        _allow(
            "AllowZonalShiftStatusReadOnly",
            ["arc-zonal-shift:GetManagedResource"],
            "*",
            {
                "StringEquals": {"arc-zonal-shift:ResourceIdentifier": scope.cluster_arn},
            },
        )
    )


def resource_discovery(scope: ControllerScope) -> Document:
    """Read what the region offers: types, images, prices, subnets. None of these calls can be scoped further."""
    describe = [
        f"ec2:Describe{what}"
        for what in (
            "CapacityReservations",
            "Images",
            "Instances",
            "InstanceStatus",
            "InstanceTypeOfferings",
            "InstanceTypes",
            "LaunchTemplates",
            "PlacementGroups",
            "SecurityGroups",
            "SpotPriceHistory",
            "Subnets",
        )
    ]
    return _document(
        _allow("AllowRegionalReadActions", describe, "*", {"StringEquals": {"aws:RequestedRegion": scope.region}}),
        _allow(
            "AllowSSMReadActions",
            "ssm:GetParameter",
            f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*",
        ),
        _allow("AllowPricingReadActions", "pricing:GetProducts", "*"),
        _allow("AllowUnscopedInstanceProfileListAction", "iam:ListInstanceProfiles", "*"),
        _allow("AllowInstanceProfileReadActions", "iam:GetInstanceProfile", scope.instance_profiles),
    )


def spot_role(scope: ControllerScope) -> Document:
    """Have EC2 make its service-linked role for spot instances, which an account lacks until its first one.

    EC2 makes the role at that request, with the rights of whoever sends it. A resource of ours would fail in each
    account that has the role, and it would not be ours to delete.
    """
    role = f"arn:{scope.partition}:iam::{scope.account_id}:role/aws-service-role/spot.amazonaws.com/"
    return _document(
        _allow(
            "AllowSpotServiceLinkedRole",
            "iam:CreateServiceLinkedRole",
            f"{role}AWSServiceRoleForEC2Spot",
            {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
        )
    )


#: Short name of each of the controller's policies to the function that makes it.
CONTROLLER_POLICIES: Final[Mapping[str, Callable[[ControllerScope], Document]]] = {
    "node-lifecycle": node_lifecycle,
    "iam-integration": iam_integration,
    "eks-integration": eks_integration,
    "interruption": interruption,
    "zonal-shift": zonal_shift,
    "resource-discovery": resource_discovery,
    "spot-role": spot_role,
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
