"""Roles on what is somebody else's, for what runs beside Karpenter: registries to pull from, vaults to read.

Every node pulls with the kubelet's identity, those of node auto provisioning and of self-hosted Karpenter too, so one
role on a registry does for all (https://learn.microsoft.com/azure/aks/cluster-container-registry-integration). A
registry or a vault may lie in another resource group or subscription of the same tenant; it is not changed itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from ..documents.roles import Role
from .role_assignments import Grant, RoleAssignments, RoleAssignmentsArgs


@dataclass(frozen=True, kw_only=True)
class AddonRightsArgs:
    """Arguments of `AddonRights`.

    Attributes:
        kubelet_object_id: Object ID of the identity with which nodes pull.
        registry_ids: Resource IDs of registries.
        secrets_provider_object_id: Object ID of the identity that AKS makes for its Key Vault add-on.
        vault_ids: Resource IDs of vaults.
    """

    kubelet_object_id: pulumi.Input[str]
    registry_ids: Sequence[str]
    secrets_provider_object_id: pulumi.Input[str]
    vault_ids: Sequence[str]


class AddonRights(pulumi.ComponentResource):
    """One role assignment a registry, and one a vault."""

    def __init__(self, name: str, args: AddonRightsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:AddonRights", name, {}, opts)
        for label, role, principal, scopes in (
            ("registry", Role.ACR_PULL, args.kubelet_object_id, args.registry_ids),
            ("vault", Role.KEY_VAULT_SECRETS_USER, args.secrets_provider_object_id, args.vault_ids),
        ):
            for scope in scopes:
                # Names of registries and of vaults are the only ones of all Azure.
                its_name = scope.rsplit("/", 1)[1].lower()
                RoleAssignments(
                    f"{name}-{label}-{its_name}",
                    RoleAssignmentsArgs(
                        subscription_id=scope.split("/")[2],
                        principal_id=principal,
                        grants={"role": Grant(role=role, scope=scope)},
                    ),
                    opts=pulumi.ResourceOptions(parent=self),
                )
        self.register_outputs({})
