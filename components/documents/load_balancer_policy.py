"""IAM policies of the AWS Load Balancer Controller, as plain documents.

They allow what upstream's of v3.3.0 (docs/install/iam_policy.json) does, and on less. Upstream's names no resources, or
those of every region and account; here they are of the kinds that AWS knows for each action, in one region and, but for
what accounts share, in one account. What the controller makes it tags `elbv2.k8s.aws/cluster: <name>`, where upstream
asks for any value. Rules of security groups it adds to the cluster's, as upstream's installation guide recommends.
Shield Advanced and WAF Classic are left out, and switched off (`addons.load_balancer_controller`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .iam import VERSION, Document, Statement

_TAG: Final = "elbv2.k8s.aws/cluster"
_REQUESTED: Final = f"aws:RequestTag/{_TAG}"
_OF_RESOURCE: Final = f"aws:ResourceTag/{_TAG}"
_SERVICE: Final = "elasticloadbalancing.amazonaws.com"
_EC2_READS: Final = [
    f"Describe{what}"
    for what in (
        "AccountAttributes",
        "Addresses",
        "AvailabilityZones",
        "InternetGateways",
        "Vpcs",
        "VpcPeeringConnections",
        "Subnets",
        "SecurityGroups",
        "Instances",
        "NetworkInterfaces",
        "Tags",
        "CoipPools",
        "IpamPools",
        "RouteTables",
    )
]
_BALANCING_READS: Final = [
    f"Describe{what}"
    for what in (
        "LoadBalancers",
        "LoadBalancerAttributes",
        "Listeners",
        "ListenerCertificates",
        "SSLPolicies",
        "Rules",
        "TargetGroups",
        "TargetGroupAttributes",
        "TargetHealth",
        "Tags",
        "TrustStores",
        "ListenerAttributes",
        "CapacityReservation",
    )
]
_RULES: Final = ["AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"]
_BALANCING: Final = "elasticloadbalancing"
_PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "loadbalancer": ("loadbalancer/net/*/*", "loadbalancer/app/*/*"),
    "targetgroup": ("targetgroup/*/*",),
    "listener": ("listener/net/*/*/*", "listener/app/*/*/*"),
    "listener-rule": ("listener-rule/net/*/*/*", "listener-rule/app/*/*/*"),
}
_OF_LISTENERS: Final = [
    "DeleteListener",
    "CreateRule",
    "ModifyListener",
    "AddListenerCertificates",
    "RemoveListenerCertificates",
]
_CHANGES: Final = [
    "ModifyLoadBalancerAttributes",
    "SetIpAddressType",
    "SetSecurityGroups",
    "SetSubnets",
    "DeleteLoadBalancer",
    "ModifyTargetGroup",
    "ModifyTargetGroupAttributes",
    "DeleteTargetGroup",
    "ModifyListenerAttributes",
    "ModifyCapacityReservation",
    "ModifyIpPools",
]


@dataclass(frozen=True, kw_only=True)
class LoadBalancerScope:
    """What the permissions are limited to.

    Attributes:
        partition: `aws`, `aws-cn` or `aws-us-gov`.
        region: For example `us-east-1`.
        account_id: Twelve digits.
        cluster_name: Resources are the cluster's by their tags.
    """

    partition: str
    region: str
    account_id: str
    cluster_name: str

    def arn(self, service: str, resource: str) -> str:
        """An ARN or pattern in region and account; IAM's are in no region."""
        region = "" if service == "iam" else self.region
        return f"arn:{self.partition}:{service}:{region}:{self.account_id}:{resource}"

    def shared(self, kind: str) -> str:
        """ARN pattern of what EC2 lets accounts share; it names the account of the owner."""
        return f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*"

    def balancing(self, *kinds: str) -> list[str]:
        """ARN patterns of network and application load balancers, and of what belongs to them."""
        return [self.arn("elasticloadbalancing", pattern) for kind in kinds for pattern in _PATTERNS[kind]]

    @property
    def requested(self) -> dict[str, Any]:
        """Condition of what is made as the cluster's."""
        return {"StringEquals": {_REQUESTED: self.cluster_name}}

    @property
    def ours(self) -> dict[str, Any]:
        """Condition of what is the cluster's."""
        return {"StringEquals": {_OF_RESOURCE: self.cluster_name}}

    @property
    def ours_for_good(self) -> dict[str, Any]:
        """The same, and whose it is is said when it is made and never again."""
        return {**self.ours, "Null": {_REQUESTED: "true"}}


def reading(scope: LoadBalancerScope) -> Document:
    """Read what load balancers stand on; have the service-linked role made, which an account lacks until its first."""
    return _document(
        _allow(
            "iam",
            ["CreateServiceLinkedRole"],
            scope.arn("iam", f"role/aws-service-role/{_SERVICE}/AWSServiceRoleForElasticLoadBalancing"),
            {"StringEquals": {"iam:AWSServiceName": _SERVICE}},
        ),
        # AWS limits none of these to single resources.
        _allow("ec2", _EC2_READS, "*"),
        _allow("elasticloadbalancing", _BALANCING_READS, "*"),
        _allow("acm", ["ListCertificates"], "*"),
        _allow("iam", ["ListServerCertificates"], "*"),
        _allow("ec2", ["GetSecurityGroupsForVpc"], scope.shared("vpc")),
        _allow("ec2", ["GetCoipPoolUsage"], scope.shared("coip-pool")),
        _allow("cognito-idp", ["DescribeUserPoolClient"], scope.arn("cognito-idp", "userpool/*")),
        _allow("acm", ["DescribeCertificate"], scope.arn("acm", "certificate/*")),
        _allow("iam", ["GetServerCertificate"], scope.arn("iam", "server-certificate/*")),
    )


def security_groups(scope: LoadBalancerScope) -> Document:
    """Make security groups of load balancers, and let these in to the cluster's nodes."""
    groups = scope.arn("ec2", "security-group/*")
    of_cluster = {"Null": {f"aws:ResourceTag/kubernetes.io/cluster/{scope.cluster_name}": "false"}}
    created = {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup", _REQUESTED: scope.cluster_name}}
    return _document(
        _allow("ec2", _RULES, groups, of_cluster),
        _allow("ec2", ["CreateSecurityGroup"], [groups, scope.shared("vpc")]),
        _allow("ec2", ["CreateTags"], groups, created),
        _allow("ec2", ["CreateTags", "DeleteTags"], groups, scope.ours_for_good),
        _allow("ec2", [*_RULES, "DeleteSecurityGroup"], groups, scope.ours),
    )


def balancing(scope: LoadBalancerScope) -> Document:
    """Make, change and delete the cluster's load balancers and target groups; put web ACLs before them."""
    made = scope.balancing("loadbalancer", "targetgroup")
    created = {
        "StringEquals": {
            "elasticloadbalancing:CreateAction": ["CreateTargetGroup", "CreateLoadBalancer"],
            _REQUESTED: scope.cluster_name,
        }
    }
    listeners, rules = scope.balancing("listener"), scope.balancing("listener-rule")
    return _document(
        _allow(_BALANCING, ["CreateLoadBalancer", "CreateTargetGroup"], made, scope.requested),
        _allow(_BALANCING, ["AddTags"], made, created),
        _allow(_BALANCING, ["AddTags", "RemoveTags"], made, scope.ours_for_good),
        _allow(_BALANCING, _CHANGES, [*made, *listeners], scope.ours),
        _allow(_BALANCING, ["RegisterTargets", "DeregisterTargets"], scope.balancing("targetgroup")),
        # AWS knows no resource for it. It lets WAF act on load balancers, and changes none by itself.
        _allow(_BALANCING, ["SetWebAcl"], "*"),
        # Upstream asks for no tag of listeners and rules: where its gate ListenerRulesTagging is off they bear none.
        _allow(_BALANCING, ["CreateListener"], scope.balancing("loadbalancer")),
        _allow(_BALANCING, _OF_LISTENERS, listeners),
        _allow(_BALANCING, ["DeleteRule", "ModifyRule", "SetRulePriorities"], rules),
        _allow(_BALANCING, ["AddTags", "RemoveTags"], [*listeners, *rules]),
        _allow(
            "wafv2",
            ["GetWebACL", "GetWebACLForResource", "AssociateWebACL", "DisassociateWebACL"],
            [scope.arn("wafv2", "regional/webacl/*/*"), *scope.balancing("loadbalancer")],
        ),
    )


#: Short name of each of the controller's policies to the function that makes it; together they would exceed the 6,144
#: characters that IAM allows.
LOAD_BALANCER_POLICIES: Final[Mapping[str, Callable[[LoadBalancerScope], Document]]] = {
    "reading": reading,
    "security-groups": security_groups,
    "balancing": balancing,
}


def _document(*statements: Statement) -> Document:
    return {"Version": VERSION, "Statement": list(statements)}


def _allow(
    service: str, actions: list[str], resource: str | list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement: Statement = {
        "Effect": "Allow",
        "Action": [f"{service}:{action}" for action in actions],
        "Resource": resource,
    }
    return statement if condition is None else {**statement, "Condition": dict(condition)}
