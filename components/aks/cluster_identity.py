"""The identity of the control plane, with the right to put nodes into the subnets.

An identity of AKS's own would exist only once the cluster does, and AKS makes no cluster in a subnet that it may not
join; node auto provisioning joins nodes with it too, and so do load balancers of Services with those of self-hosted
Karpenter. Into a private DNS zone that is not AKS's it writes the API server's name, and ties the zone to the network.
The kubelet's identity is AKS's, in the node resource group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from ..documents.roles import Role
from ..naming import AksNames
from .role_assignments import Grant, RoleAssignments, RoleAssignmentsArgs


@dataclass(frozen=True, kw_only=True)
class ClusterIdentityArgs:
    """Arguments of `ClusterIdentity`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Location of the identity.
        subscription_id: Subscription of the network.
        network: IDs of what it joins, subnets or their network, by short, stable labels.
        zone_id: ID of a private DNS zone that AKS does not make.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    subscription_id: str
    network: Mapping[str, pulumi.Input[str]]
    zone_id: str | None
    tags: Mapping[str, str]


class ClusterIdentity(pulumi.ComponentResource):
    """The identity and its roles."""

    identity_id: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:ClusterIdentity", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=args.names.cluster_identity,
            resource_group_name=args.resource_group,
            location=args.location,
            tags=args.tags,
            opts=child,
        )
        RoleAssignments(
            f"{name}-roles",
            RoleAssignmentsArgs(
                subscription_id=args.subscription_id,
                principal_id=identity.principal_id,
                grants={
                    label: Grant(role=Role.NETWORK_CONTRIBUTOR, scope=scope) for label, scope in args.network.items()
                },
            ),
            opts=child,
        )
        if args.zone_id is not None:
            RoleAssignments(
                f"{name}-zone-roles",
                RoleAssignmentsArgs(
                    subscription_id=args.zone_id.split("/")[2],
                    principal_id=identity.principal_id,
                    grants={"zone": Grant(role=Role.PRIVATE_DNS_ZONE_CONTRIBUTOR, scope=args.zone_id)},
                ),
                opts=child,
            )
        self.identity_id = identity.id
        self.register_outputs({"identityId": self.identity_id})
