"""The deployer's right to apply objects in the cluster, which Entra does not give to whoever made it.

It is given on the stack's resource group, and before the cluster is made: Azure takes minutes to spread a role, and
by then the cluster is up. Administrators are the cluster's (`ClusterArgs.admins`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization

from ..documents.roles import Role
from .role_assignments import Grant, PrincipalType, RoleAssignments, RoleAssignmentsArgs


@dataclass(frozen=True, kw_only=True)
class DeployerAccessArgs:
    """Arguments of `DeployerAccess`.

    Attributes:
        subscription_id: Subscription of the resource group.
        resource_group_id: ID of the stack's resource group.
        principal_type: What kind of principal deploys; Azure refuses the wrong one.
    """

    subscription_id: str
    resource_group_id: pulumi.Input[str]
    principal_type: PrincipalType


class DeployerAccess(pulumi.ComponentResource):
    """Makes whoever deploys Azure Kubernetes Service RBAC Cluster Admin; the last one who did holds it."""

    def __init__(self, name: str, args: DeployerAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:DeployerAccess", name, {}, opts)
        deployer = authorization.get_client_config_output(opts=pulumi.InvokeOutputOptions(parent=self))
        RoleAssignments(
            f"{name}-roles",
            RoleAssignmentsArgs(
                subscription_id=args.subscription_id,
                principal_id=deployer.object_id,
                principal_type=args.principal_type,
                grants={"cluster-admin": Grant(role=Role.AKS_RBAC_CLUSTER_ADMIN, scope=args.resource_group_id)},
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
