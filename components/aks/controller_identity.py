"""The identity of self-hosted Karpenter: its tie to the service account, and what it may do.

It makes machines and their network interfaces in the node resource group, gives them the kubelet's identity, which
is there too unless a cluster that is there has one of its owner's, and joins them to the subnets. It may do nothing
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_azure_native import managedidentity

from ..documents.roles import Role
from ..naming import KARPENTER_AZURE_SERVICE_ACCOUNT, KARPENTER_NAMESPACE, AksNames
from .role_assignments import Grant, RoleAssignments, RoleAssignmentsArgs

#: What Entra wants to read in a service account's token before it takes it for the identity.
AUDIENCE: Final = "api://AzureADTokenExchange"


@dataclass(frozen=True, kw_only=True)
class ControllerIdentityArgs:
    """Arguments of `ControllerIdentity`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Location of the identity.
        subscription_id: Subscription of the scopes.
        issuer: The cluster's OIDC issuer URL.
        node_resource_group_id: The resource group that AKS made for nodes.
        identity_scopes: Where the identities are that machines carry, by short, stable labels.
        subnets: The subnets of nodes, by short, stable labels.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    subscription_id: str
    issuer: pulumi.Input[str]
    node_resource_group_id: pulumi.Input[str]
    identity_scopes: Mapping[str, pulumi.Input[str]]
    subnets: Mapping[str, pulumi.Input[str]]
    tags: Mapping[str, str]


class ControllerIdentity(pulumi.ComponentResource):
    """Identity, federated credential and roles."""

    client_id: pulumi.Output[str]

    def __init__(self, name: str, args: ControllerIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:ControllerIdentity", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=args.names.controller_identity,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=args.tags,
            opts=child,
        )
        managedidentity.FederatedIdentityCredential(
            f"{name}-federation",
            federated_identity_credential_resource_name=args.names.federated_credential,
            resource_name_=identity.name,
            resource_group_name=args.resource_group,
            issuer=args.issuer,
            subject=f"system:serviceaccount:{KARPENTER_NAMESPACE}:{KARPENTER_AZURE_SERVICE_ACCOUNT}",
            audiences=[AUDIENCE],
            opts=child,
        )
        nodes = args.node_resource_group_id
        RoleAssignments(
            f"{name}-roles",
            RoleAssignmentsArgs(
                subscription_id=args.subscription_id,
                principal_id=identity.principal_id,
                grants={
                    "machines": Grant(role=Role.VIRTUAL_MACHINE_CONTRIBUTOR, scope=nodes),
                    "interfaces": Grant(role=Role.NETWORK_CONTRIBUTOR, scope=nodes),
                    **{
                        label: Grant(role=Role.MANAGED_IDENTITY_OPERATOR, scope=scope)
                        for label, scope in args.identity_scopes.items()
                    },
                    **{
                        label: Grant(role=Role.NETWORK_CONTRIBUTOR, scope=subnet)
                        for label, subnet in args.subnets.items()
                    },
                },
            ),
            opts=child,
        )
        self.client_id = identity.client_id
        self.register_outputs({"clientId": self.client_id})
