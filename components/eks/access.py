"""Who may enter the cluster: Karpenter's nodes, and administrators.

The deployer has its own entry by `bootstrap_cluster_creator_admin_permissions`, and EKS makes that of the
managed node group's role: a second one for either is refused by EKS. Finer grants for teams (groups, RBAC)
belong to whoever runs the workloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_aws import eks

from ..naming import principal_label


@dataclass(frozen=True, kw_only=True)
class AccessArgs:
    """Arguments of `Access`.

    Attributes:
        cluster_name: The cluster.
        partition: For the ARN of EKS's administrator policy.
        node_role_arn: Role of the nodes that Karpenter launches.
        admins: ARNs of IAM roles and users.
        tags: For every resource.
    """

    cluster_name: pulumi.Input[str]
    partition: pulumi.Input[str]
    node_role_arn: pulumi.Input[str]
    admins: Sequence[str]
    tags: Mapping[str, str]


class Access(pulumi.ComponentResource):
    """Access entries, and the policy of administrators."""

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Access", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        # Without it an instance boots, never joins, and Karpenter replaces it for ever.
        eks.AccessEntry(
            f"{name}-nodes",
            cluster_name=args.cluster_name,
            principal_arn=args.node_role_arn,
            type="EC2_LINUX",
            tags=args.tags,
            opts=child,
        )
        for admin in args.admins:
            label = principal_label(admin)
            entry = eks.AccessEntry(
                f"{name}-admin-{label}",
                cluster_name=args.cluster_name,
                principal_arn=admin,
                type="STANDARD",
                tags=args.tags,
                opts=child,
            )
            eks.AccessPolicyAssociation(
                f"{name}-admin-{label}",
                cluster_name=args.cluster_name,
                principal_arn=entry.principal_arn,
                policy_arn=pulumi.Output.concat(
                    "arn:", args.partition, ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
                ),
                access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                opts=child,
            )
        self.register_outputs({})
