"""What whoever puts Karpenter on an EKS cluster that is there must be allowed: much less than `deployer` has.

The cluster, its network and its node groups are read; roles, queue, rules and the cluster's own entries are made.

Of the cluster, which is somebody else's, nothing may be untagged. What pulumi-aws asks of the two that it gets: Create,
Describe, Update, Delete of each, and Tag and Untag of what it has made (sources of terraform-provider-aws, service/eks:
access_entry.go, pod_identity_association.go; tags are read with them). What the first of each takes beside it is in the
service authorization reference, "API operations defined by Amazon EKS": CreateAccessEntry eks:TagResource, and
iam:PassRole to ec2.amazonaws.com; of which resource eks:TagResource is asked there it does not say, so that it is
allowed of the cluster too.
"""

from __future__ import annotations

from collections.abc import Iterator

from components.documents.iam import CONTROLLER_POLICIES
from components.documents.partitions import ec2_principal, suffixes

from .deployer import (
    TAGGING,
    Grant,
    Scope,
    interruptions,
    making_policies,
    making_roles,
    of,
    passing_roles,
    reading_parameters,
    simulating,
)

_ENTRY = "aws:eks/accessEntry:AccessEntry"
_ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
_PROVIDER = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"


def deploying(scope: Scope) -> Iterator[Grant]:
    """What `pulumi up` and `pulumi destroy` do; `scope.names.existing` is the cluster."""
    names = scope.names
    yield Grant(
        sid="TheNetwork",
        needed_by=(_ENTRY,),
        actions=of(
            "ec2",
            "DescribeNatGateways",
            "DescribePrefixLists",
            "DescribeRouteTables",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "DescribeVpcAttribute",
            "DescribeVpcEndpoints",
            "DescribeVpcs",
        ),
        context={"aws:RequestedRegion": scope.region},
    )
    yield Grant(sid="Clusters", needed_by=(_ENTRY,), actions=of("eks", "ListClusters"))
    yield Grant(
        sid="TheCluster",
        needed_by=(_ENTRY,),
        actions=of("eks", "CreateAccessEntry", "DescribeCluster", "ListNodegroups", "TagResource"),
        resources=(scope.arn("eks", f"cluster/{names.cluster}"),),
    )
    yield Grant(
        sid="WhatItHas",
        needed_by=(_ENTRY,),
        actions=of("eks", "DescribeAddon", "DescribeNodegroup"),
        resources=tuple(scope.arn("eks", f"{kind}/{names.cluster}/*") for kind in ("addon", "nodegroup")),
    )
    yield Grant(
        sid="AccessEntry",
        needed_by=(_ENTRY,),
        actions=of("eks", "DeleteAccessEntry", "DescribeAccessEntry", "UpdateAccessEntry", *TAGGING),
        resources=(scope.arn("eks", f"access-entry/{names.cluster}/*"),),
    )
    yield Grant(
        sid="PodIdentities",
        needed_by=(_ASSOCIATION,),
        actions=of("eks", "CreatePodIdentityAssociation", "TagResource"),
        resources=(scope.arn("eks", f"cluster/{names.cluster}"),),
    )
    yield Grant(
        sid="PodIdentityAssociation",
        needed_by=(_ASSOCIATION,),
        actions=of(
            "eks",
            "DeletePodIdentityAssociation",
            "DescribePodIdentityAssociation",
            "UpdatePodIdentityAssociation",
            *TAGGING,
        ),
        resources=(scope.arn("eks", f"podidentityassociation/{names.cluster}/*"),),
    )
    yield Grant(sid="OpenIdConnectProviders", needed_by=(_PROVIDER,), actions=of("iam", "ListOpenIDConnectProviders"))
    yield Grant(
        sid="OpenIdConnectProvider",
        needed_by=(_PROVIDER,),
        actions=of("iam", "GetOpenIDConnectProvider"),
        resources=(scope.arn("iam", f"oidc-provider/oidc.eks.{scope.region}.{suffixes(scope.region).dns}/id/*"),),
    )
    roles = names.node_role, names.controller_role
    yield making_roles(
        scope, "Roles", ("aws:iam/role:Role", "aws:iam/rolePolicyAttachment:RolePolicyAttachment"), roles
    )
    yield passing_roles(scope, "PassNodeRole", _ENTRY, roles[:1], ec2_principal(scope.region))
    yield passing_roles(scope, "PassControllerRole", _ASSOCIATION, roles[1:], "pods.eks.amazonaws.com")
    policies = map(names.controller_policy, CONTROLLER_POLICIES)
    yield making_policies(scope, "ControllerPolicies", "aws:iam/policy:Policy", policies)
    yield from interruptions(scope)


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
            "iam:ListRoles",
            "servicequotas:GetAWSDefaultServiceQuota",
            "servicequotas:GetServiceQuota",
        ),
    )
    yield reading_parameters(scope, "preflight")
    yield simulating(scope)
