"""Rights of one identity: Azure's built-in roles, each on one scope.

Custom roles are left out: whoever deploys would need to write role definitions, and their names are unique in a tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pulumi
from pulumi_azure_native import authorization

from ..documents.roles import Role, assignment_name, definition_id

PrincipalType = Literal["ServicePrincipal", "User"]


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role on a scope, which is a resource ID."""

    role: Role
    scope: pulumi.Input[str]


@dataclass(frozen=True, kw_only=True)
class RoleAssignmentsArgs:
    """Arguments of `RoleAssignments`.

    Attributes:
        subscription_id: Subscription of the scopes.
        principal_id: Object ID of who gets the roles.
        principal_type: `ServicePrincipal` for a managed identity, or `User`. Azure refuses the wrong one; left out,
            the SDK says `User`.
        grants: The roles by short, stable labels, which become logical names.
    """

    subscription_id: str
    principal_id: pulumi.Input[str]
    principal_type: PrincipalType = "ServicePrincipal"
    grants: Mapping[str, Grant]


class RoleAssignments(pulumi.ComponentResource):
    """One assignment a grant."""

    def __init__(self, name: str, args: RoleAssignmentsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:RoleAssignments", name, {}, opts)
        for label, grant in args.grants.items():
            authorization.RoleAssignment(
                f"{name}-{label}",
                role_assignment_name=pulumi.Output.all(scope=grant.scope, principal_id=args.principal_id).apply(
                    partial(_name, grant.role)
                ),
                scope=grant.scope,
                role_definition_id=definition_id(args.subscription_id, grant.role),
                principal_id=args.principal_id,
                principal_type=args.principal_type,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def _name(role: Role, known: Mapping[str, str]) -> str:
    return assignment_name(role=role, **known)
