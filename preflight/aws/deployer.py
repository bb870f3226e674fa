"""What whoever deploys an EKS stack must be allowed, as data: docs/deployer-policy.md is made from it.

Each grant names the types of resources that need it, so that a test can tell a type that nobody has thought of. The
actions are those with which Pulumi's AWS provider creates, reads, changes and deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from components.documents.iam import CONTROLLER_POLICIES, VERSION
from components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES
from components.documents.partitions import ec2_principal, suffixes
from components.naming import EksNames

#: The type of resource that only a stack with `network.flowLogRetentionDays` has.
FLOW_LOG: Final = "aws:ec2/flowLog:FlowLog"
#: The types that only a stack with `cluster.privateAccessCidrs` has.
OF_PRIVATE_ACCESS: Final = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
#: The types that only a stack with `network.endpoints` has.
OF_ENDPOINTS: Final = ("aws:ec2/vpcEndpoint:VpcEndpoint",)
#: The type that only a stack has out of whose network, its own or an existing one, nothing leads.
INSTANCE_PROFILE: Final = "aws:iam/instanceProfile:InstanceProfile"
#: The types that only a stack without `network.vpcId` has.
OF_AN_OWN_NETWORK: Final = tuple(
    f"aws:ec2/{kind}"
    for kind in (
        "defaultSecurityGroup:DefaultSecurityGroup",
        "eip:Eip",
        "internetGateway:InternetGateway",
        "natGateway:NatGateway",
        "route:Route",
        "routeTable:RouteTable",
        "routeTableAssociation:RouteTableAssociation",
        "subnet:Subnet",
        "vpc:Vpc",
    )
)
_LOG_GROUP: Final = "aws:cloudwatch/logGroup:LogGroup"
TAGGING: Final = ("TagResource", "UntagResource", "ListTagsForResource")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """Some actions on some resources.

    Attributes:
        sid: Name of the statement.
        needed_by: Types of resources, as `aws:ec2/vpc:Vpc`; `preflight` for what only the look before needs.
        actions: For example `ec2:CreateVpc`.
        resources: ARNs, or `*`.
        context: Condition keys and the value that the request has.
    """

    sid: str
    needed_by: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ("*",)
    context: Mapping[str, str] = field(default_factory=dict)

    def statement(self) -> dict[str, Any]:
        """As a policy has it."""
        made: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": sorted(self.actions),
            "Resource": list(self.resources),
        }
        return {**made, "Condition": {"StringEquals": dict(self.context)}} if self.context else made


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where a stack is made: partition, region, account id, and its names."""

    partition: str
    region: str
    account: str
    names: EksNames

    def arn(self, service: str, resource: str) -> str:
        """An ARN in account and region; IAM's are in none."""
        region = "" if service == "iam" else self.region
        return f"arn:{self.partition}:{service}:{region}:{self.account}:{resource}"


def policy(scope: Scope) -> dict[str, Any]:
    """The whole policy, the rights of a look before included."""
    return {"Version": VERSION, "Statement": [grant.statement() for grant in (*deploying(scope), *looking(scope))]}


def deploying(scope: Scope) -> Iterator[Grant]:
    """What `pulumi up` and `pulumi destroy` do."""
    yield from _ec2(scope)
    yield from _eks(scope)
    yield from _iam(scope)
    yield from _kms(scope)
    names = scope.names
    for sid, needed_by, group in (
        ("ControlPlaneLogs", _LOG_GROUP, names.control_plane_log_group),
        ("FlowLogsGroup", FLOW_LOG, names.flow_log_group),
    ):
        yield Grant(
            sid=sid,
            needed_by=(needed_by,),
            actions=of("logs", "CreateLogGroup", "DeleteLogGroup", "PutRetentionPolicy", *TAGGING),
            resources=_with_children(scope.arn("logs", f"log-group:{group}")),
        )
    yield Grant(sid="LogGroups", needed_by=(_LOG_GROUP,), actions=of("logs", "DescribeLogGroups"))
    yield reading_parameters(scope, "aws:eks/nodeGroup:NodeGroup")
    yield from interruptions(scope)


def interruptions(scope: Scope) -> Iterator[Grant]:
    """What the interruption queue and its rules take."""
    names = scope.names
    yield Grant(
        sid="InterruptionQueue",
        needed_by=("aws:sqs/queue:Queue", "aws:sqs/queuePolicy:QueuePolicy"),
        actions=of(
            "sqs",
            "CreateQueue",
            "DeleteQueue",
            "GetQueueAttributes",
            "GetQueueUrl",
            "ListQueueTags",
            "SetQueueAttributes",
            "TagQueue",
            "UntagQueue",
        ),
        resources=(scope.arn("sqs", names.interruption_queue),),
    )
    yield Grant(
        sid="EventRules",
        needed_by=("aws:cloudwatch/eventRule:EventRule", "aws:cloudwatch/eventTarget:EventTarget"),
        actions=of(
            "events",
            "DeleteRule",
            "DescribeRule",
            "ListTargetsByRule",
            "PutRule",
            "PutTargets",
            "RemoveTargets",
            *TAGGING,
        ),
        resources=(scope.arn("events", f"rule/{names.stem}-*"),),
    )


def looking(scope: Scope) -> Iterator[Grant]:
    """What only the looks before `up` and `destroy` ask, beside the reads that deploying needs anyway."""
    yield Grant(
        sid="LookBefore",
        needed_by=("preflight",),
        actions=(
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:GetEbsDefaultKmsKeyId",
            "eks:DescribeClusterVersions",
            "elasticloadbalancing:DescribeLoadBalancers",
            "elasticloadbalancing:DescribeTags",
            "iam:ListRoles",
            "servicequotas:GetAWSDefaultServiceQuota",
            "servicequotas:GetServiceQuota",
        ),
    )
    yield simulating(scope)


def reading_parameters(scope: Scope, needed_by: str) -> Grant:
    """What reads AWS's public parameters, in which the releases of images are."""
    return Grant(
        sid="PublicParameters",
        needed_by=(needed_by,),
        actions=("ssm:GetParameter",),
        resources=(f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*",),
    )


def simulating(scope: Scope) -> Grant:
    """What has IAM say which rights whoever deploys has."""
    return Grant(
        sid="WhatMayIDo",
        needed_by=("preflight",),
        actions=("iam:GetRole", "iam:SimulatePrincipalPolicy"),
        resources=(scope.arn("iam", "role/*"), scope.arn("iam", "user/*")),
    )


def _ec2(scope: Scope) -> Iterator[Grant]:
    # Their ids are not known before: the region is all that limits them.
    yield Grant(
        sid="Network",
        needed_by=OF_AN_OWN_NETWORK,
        actions=of(
            "ec2",
            "AllocateAddress",
            "AssociateRouteTable",
            "AttachInternetGateway",
            "AuthorizeSecurityGroupEgress",
            "AuthorizeSecurityGroupIngress",
            "CreateInternetGateway",
            "CreateNatGateway",
            "CreateRoute",
            "CreateRouteTable",
            "CreateSubnet",
            "CreateVpc",
            "DeleteInternetGateway",
            "DeleteNatGateway",
            "DeleteRoute",
            "DeleteRouteTable",
            # GuardDuty's Runtime Monitoring puts an endpoint and a group into a VPC; the provider removes them with it.
            "DeleteSecurityGroup",
            "DeleteSubnet",
            "DeleteVpc",
            "DeleteVpcEndpoints",
            "DescribeAddresses",
            "DescribeAddressesAttribute",
            "DescribeAvailabilityZones",
            "DescribeInternetGateways",
            "DetachInternetGateway",
            "DisassociateAddress",
            "DisassociateRouteTable",
            "ModifySubnetAttribute",
            "ModifyVpcAttribute",
            "ModifyVpcEndpoint",
            "ReleaseAddress",
            "ReplaceRoute",
            "ReplaceRouteTableAssociation",
            "RevokeSecurityGroupEgress",
            "RevokeSecurityGroupIngress",
        ),
        context={"aws:RequestedRegion": scope.region},
    )
    yield Grant(
        sid="NetworkAsItIs",
        needed_by=(*OF_AN_OWN_NETWORK, "aws:ec2/tag:Tag"),
        actions=of(
            "ec2",
            "CreateTags",
            "DeleteTags",
            "DescribeNatGateways",
            "DescribeNetworkAcls",
            "DescribeNetworkInterfaces",
            "DescribeRouteTables",
            "DescribeSecurityGroupRules",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "DescribeTags",
            "DescribeVpcAttribute",
            "DescribeVpcEndpoints",
            "DescribeVpcs",
        ),
        context={"aws:RequestedRegion": scope.region},
    )
    yield Grant(
        sid="PrivateAccess",
        needed_by=OF_PRIVATE_ACCESS,
        actions=of(
            "ec2",
            "AuthorizeSecurityGroupIngress",
            "CreateSecurityGroup",
            "DeleteSecurityGroup",
            "ModifySecurityGroupRules",
            "RevokeSecurityGroupEgress",
            "RevokeSecurityGroupIngress",
        ),
        context={"aws:RequestedRegion": scope.region},
    )
    yield Grant(
        sid="Endpoints",
        needed_by=OF_ENDPOINTS,
        actions=of(
            "ec2",
            "AuthorizeSecurityGroupIngress",
            "CreateSecurityGroup",
            "CreateVpcEndpoint",
            "DeleteSecurityGroup",
            "DeleteVpcEndpoints",
            "DescribePrefixLists",
            "DescribeVpcEndpointServices",
            "ModifySecurityGroupRules",
            "ModifyVpcEndpoint",
            "RevokeSecurityGroupEgress",
            "RevokeSecurityGroupIngress",
        ),
        context={"aws:RequestedRegion": scope.region},
    )
    yield Grant(
        sid="EndpointNames",
        needed_by=OF_ENDPOINTS,
        actions=("route53:AssociateVPCWithHostedZone",),
    )
    yield Grant(
        sid="FlowLogs",
        needed_by=(FLOW_LOG,),
        actions=of("ec2", "CreateFlowLogs", "DeleteFlowLogs", "DescribeFlowLogs"),
        context={"aws:RequestedRegion": scope.region},
    )
    # EKS tries a launch template with the rights of whoever gives it one.
    yield Grant(
        sid="SystemNodesTemplate",
        needed_by=("aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"),
        actions=of(
            "ec2",
            "CreateLaunchTemplate",
            "CreateLaunchTemplateVersion",
            "DeleteLaunchTemplate",
            "DescribeLaunchTemplateVersions",
            "DescribeLaunchTemplates",
            "ModifyLaunchTemplate",
            "RunInstances",
        ),
        context={"aws:RequestedRegion": scope.region},
    )


def _eks(scope: Scope) -> Iterator[Grant]:
    cluster = scope.names.cluster
    yield Grant(
        sid="Cluster",
        needed_by=("aws:eks/cluster:Cluster",),
        actions=of(
            "eks",
            "CreateAccessEntry",
            "CreateAddon",
            "CreateCluster",
            "CreateNodegroup",
            "CreatePodIdentityAssociation",
            "DeleteCluster",
            "DescribeCluster",
            "DescribeUpdate",
            "ListPodIdentityAssociations",
            "UpdateClusterConfig",
            "UpdateClusterVersion",
            *TAGGING,
        ),
        resources=(scope.arn("eks", f"cluster/{cluster}"),),
    )
    yield Grant(
        sid="InTheCluster",
        needed_by=(
            "aws:eks/accessEntry:AccessEntry",
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
            "aws:eks/addon:Addon",
            "aws:eks/nodeGroup:NodeGroup",
            "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        ),
        actions=of(
            "eks",
            "AssociateAccessPolicy",
            "DeleteAccessEntry",
            "DeleteAddon",
            "DeleteNodegroup",
            "DeletePodIdentityAssociation",
            "DescribeAccessEntry",
            "DescribeAddon",
            "DescribeNodegroup",
            "DescribePodIdentityAssociation",
            "DescribeUpdate",
            "DisassociateAccessPolicy",
            "ListAssociatedAccessPolicies",
            "UpdateAccessEntry",
            "UpdateAddon",
            "UpdateNodegroupConfig",
            "UpdateNodegroupVersion",
            "UpdatePodIdentityAssociation",
            *TAGGING,
        ),
        resources=tuple(
            scope.arn("eks", f"{kind}/{cluster}/*")
            for kind in ("access-entry", "addon", "nodegroup", "podidentityassociation")
        ),
    )
    yield Grant(
        sid="WhatEksHas",
        needed_by=("aws:eks/addon:Addon", _LOG_GROUP),
        actions=of("eks", "DescribeAddonConfiguration", "DescribeAddonVersions", "ListClusters"),
    )


def _iam(scope: Scope) -> Iterator[Grant]:
    names = scope.names
    roles: tuple[str, ...] = (
        names.cluster_role,
        names.controller_role,
        names.ebs_csi_role,
        names.load_balancer_role,
        names.node_role,
        names.system_node_role,
    )
    policies = (
        *map(names.controller_policy, CONTROLLER_POLICIES),
        *map(names.load_balancer_policy, LOAD_BALANCER_POLICIES),
    )
    of_pods = names.controller_role, names.ebs_csi_role, names.load_balancer_role
    flow_logs: tuple[str, ...] = (names.flow_log_role,)
    for sid, needed_by, named in (
        ("Roles", ("aws:iam/role:Role", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"), roles),
        ("FlowLogsRole", (FLOW_LOG,), flow_logs),
    ):
        yield making_roles(scope, sid, needed_by, named)
    yield Grant(
        sid="InstanceProfile",
        needed_by=(INSTANCE_PROFILE,),
        actions=of(
            "iam",
            "AddRoleToInstanceProfile",
            "CreateInstanceProfile",
            "DeleteInstanceProfile",
            "GetInstanceProfile",
            "RemoveRoleFromInstanceProfile",
            "TagInstanceProfile",
            "UntagInstanceProfile",
        ),
        resources=(scope.arn("iam", f"instance-profile/{names.node_role}"),),
    )
    for sid, needing, passed, service in (
        ("PassClusterRole", "aws:iam/role:Role", (names.cluster_role,), "eks.amazonaws.com"),
        ("PassSystemNodeRole", "aws:iam/role:Role", (names.system_node_role,), "eks.amazonaws.com"),
        ("PassControllerRole", "aws:iam/role:Role", of_pods, "pods.eks.amazonaws.com"),
        ("PassFlowLogsRole", FLOW_LOG, flow_logs, "vpc-flow-logs.amazonaws.com"),
        # Of the access entry as well as of the profile: preflight/aws/existing_deployer.py has the source.
        ("PassNodeRole", "aws:eks/accessEntry:AccessEntry", (names.node_role,), ec2_principal(scope.region)),
    ):
        yield passing_roles(scope, sid, needing, passed, service)
    for sid, kind, named in (
        ("ControllerPolicies", "aws:iam/policy:Policy", policies),
        ("FlowLogsPolicy", FLOW_LOG, flow_logs),
    ):
        yield making_policies(scope, sid, kind, named)
    # In an account's first cluster EKS makes its roles with the rights of whoever makes the cluster.
    for sid, service, role in (
        ("FirstCluster", "eks.amazonaws.com", "AWSServiceRoleForAmazonEKS"),
        ("FirstNodeGroup", "eks-nodegroup.amazonaws.com", "AWSServiceRoleForAmazonEKSNodegroup"),
    ):
        yield Grant(
            sid=sid,
            needed_by=("aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"),
            actions=("iam:CreateServiceLinkedRole",),
            resources=(scope.arn("iam", f"role/aws-service-role/{service}/{role}"),),
            context={"iam:AWSServiceName": service},
        )
    yield Grant(
        sid="RolesOfEks",
        needed_by=("aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"),
        actions=("iam:GetRole",),
        resources=tuple(
            scope.arn("iam", f"role/aws-service-role/{service}/*")
            for service in ("eks.amazonaws.com", "eks-nodegroup.amazonaws.com")
        ),
    )
    yield Grant(
        sid="OpenIdConnectProvider",
        needed_by=("aws:iam/openIdConnectProvider:OpenIdConnectProvider",),
        actions=of(
            "iam",
            "AddClientIDToOpenIDConnectProvider",
            "CreateOpenIDConnectProvider",
            "DeleteOpenIDConnectProvider",
            "GetOpenIDConnectProvider",
            "TagOpenIDConnectProvider",
            "UntagOpenIDConnectProvider",
            "UpdateOpenIDConnectProviderThumbprint",
        ),
        resources=(scope.arn("iam", f"oidc-provider/oidc.eks.{scope.region}.{suffixes(scope.region).dns}/id/*"),),
    )


def making_roles(scope: Scope, sid: str, needed_by: tuple[str, ...], names: Iterable[str]) -> Grant:
    """What roles of some names, and what is attached to them, take."""
    return Grant(
        sid=sid,
        needed_by=needed_by,
        actions=of(
            "iam",
            "AttachRolePolicy",
            "CreateRole",
            "DeleteRole",
            "DetachRolePolicy",
            "GetRole",
            "ListAttachedRolePolicies",
            "ListInstanceProfilesForRole",
            "ListRolePolicies",
            "TagRole",
            "UntagRole",
            "UpdateAssumeRolePolicy",
            "UpdateRole",
            "UpdateRoleDescription",
        ),
        resources=tuple(scope.arn("iam", f"role/{name}") for name in names),
    )


def passing_roles(scope: Scope, sid: str, needed_by: str, names: Iterable[str], service: str) -> Grant:
    """What handing roles to a service takes."""
    return Grant(
        sid=sid,
        needed_by=(needed_by,),
        actions=("iam:PassRole",),
        resources=tuple(scope.arn("iam", f"role/{name}") for name in names),
        context={"iam:PassedToService": service},
    )


def making_policies(scope: Scope, sid: str, needed_by: str, names: Iterable[str]) -> Grant:
    """What policies of some names take."""
    return Grant(
        sid=sid,
        needed_by=(needed_by,),
        actions=of(
            "iam",
            "CreatePolicy",
            "CreatePolicyVersion",
            "DeletePolicy",
            "DeletePolicyVersion",
            "GetPolicy",
            "GetPolicyVersion",
            "ListPolicyVersions",
            "TagPolicy",
            "UntagPolicy",
        ),
        resources=tuple(scope.arn("iam", f"policy/{name}") for name in names),
    )


def _kms(scope: Scope) -> Iterator[Grant]:
    alias = scope.arn("kms", scope.names.secrets_key_alias)
    yield Grant(
        sid="Keys",
        needed_by=("aws:kms/key:Key", "aws:kms/alias:Alias"),
        actions=of("kms", "CreateKey", "ListAliases"),
    )
    # EKS makes a grant of the key with the rights of whoever makes the cluster.
    yield Grant(
        sid="SecretsKey",
        needed_by=("aws:kms/key:Key", "aws:eks/cluster:Cluster"),
        actions=of(
            "kms",
            "CreateAlias",
            "CreateGrant",
            "DeleteAlias",
            "DescribeKey",
            "DisableKeyRotation",
            "EnableKeyRotation",
            "GetKeyPolicy",
            "GetKeyRotationStatus",
            "ListResourceTags",
            "PutKeyPolicy",
            "ScheduleKeyDeletion",
            "TagResource",
            "UntagResource",
            "UpdateAlias",
            "UpdateKeyDescription",
        ),
        resources=(scope.arn("kms", "key/*"),),
    )
    yield Grant(
        sid="SecretsKeyAlias",
        needed_by=("aws:kms/alias:Alias",),
        actions=of("kms", "CreateAlias", "DeleteAlias", "UpdateAlias"),
        resources=(alias,),
    )


def of(service: str, *actions: str) -> tuple[str, ...]:
    """Actions of a service, by their full names."""
    return tuple(f"{service}:{action}" for action in actions)


def _with_children(arn: str) -> tuple[str, ...]:
    return arn, f"{arn}:*"
