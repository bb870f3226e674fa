"""Azure's built-in roles that matter here, with their actions as Azure documents them, and how actions are matched.

Actions of resource providers that the rehearsal has nothing of are left out of the lists. Custom roles do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Role:
    """One role definition.

    Attributes:
        id: GUID, the same in every tenant.
        name: As the portal shows it.
        actions: Patterns of control-plane actions, `*` stands for anything.
        not_actions: Taken away from them.
        data_actions: Patterns of data-plane actions (Kubernetes' own API under Azure RBAC).
    """

    id: str
    name: str
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()

    def allows(self, action: str) -> bool:
        """Whether it grants a control-plane action."""
        return matches(self.actions, self.not_actions, action)

    def allows_data(self, action: str) -> bool:
        """Whether it grants a data-plane action."""
        return _any(self.data_actions, action)


_COMMON = (
    "Microsoft.Authorization/*/read",
    "Microsoft.Insights/alertRules/*",
    "Microsoft.Resources/deployments/*",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.Support/*",
)
_NO_GRANTS = (
    "Microsoft.Authorization/*/Delete",
    "Microsoft.Authorization/*/Write",
    "Microsoft.Authorization/elevateAccess/Action",
)

OWNER = Role("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "Owner", ("*",))
CONTRIBUTOR = Role("b24988ac-6180-42a0-ab88-20f7382dd24c", "Contributor", ("*",), _NO_GRANTS)
READER = Role("acdd72a7-3385-48ef-bd42-f606fba81ae7", "Reader", ("*/read",))
USER_ACCESS_ADMINISTRATOR = Role(
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
    "User Access Administrator",
    ("*/read", "Microsoft.Authorization/*", "Microsoft.Support/*"),
)
RBAC_ADMINISTRATOR = Role(
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168",
    "Role Based Access Control Administrator",
    (
        "Microsoft.Authorization/roleAssignments/write",
        "Microsoft.Authorization/roleAssignments/delete",
        "*/read",
        "Microsoft.Support/*",
    ),
)
VIRTUAL_MACHINE_CONTRIBUTOR = Role(
    "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
    "Virtual Machine Contributor",
    (
        *_COMMON,
        "Microsoft.Compute/availabilitySets/*",
        "Microsoft.Compute/locations/*",
        "Microsoft.Compute/virtualMachines/*",
        "Microsoft.Compute/virtualMachineScaleSets/*",
        "Microsoft.Compute/cloudServices/*",
        "Microsoft.Compute/disks/write",
        "Microsoft.Compute/disks/read",
        "Microsoft.Compute/disks/delete",
        "Microsoft.Network/applicationGateways/backendAddressPools/join/action",
        "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
        "Microsoft.Network/loadBalancers/inboundNatPools/join/action",
        "Microsoft.Network/loadBalancers/inboundNatRules/join/action",
        "Microsoft.Network/loadBalancers/probes/join/action",
        "Microsoft.Network/loadBalancers/read",
        "Microsoft.Network/locations/*",
        "Microsoft.Network/networkInterfaces/*",
        "Microsoft.Network/networkSecurityGroups/join/action",
        "Microsoft.Network/networkSecurityGroups/read",
        "Microsoft.Network/publicIPAddresses/join/action",
        "Microsoft.Network/publicIPAddresses/read",
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/subnets/join/action",
    ),
)
NETWORK_CONTRIBUTOR = Role(
    "4d97b98b-1d4f-4787-a291-c67834d212e7", "Network Contributor", (*_COMMON, "Microsoft.Network/*")
)
PRIVATE_DNS_ZONE_CONTRIBUTOR = Role(
    "b12aa53e-6015-4669-85d0-8515ebb3ae7f",
    "Private DNS Zone Contributor",
    (
        *_COMMON,
        "Microsoft.Network/privateDnsZones/*",
        "Microsoft.Network/privateDnsOperationResults/*",
        "Microsoft.Network/privateDnsOperationStatuses/*",
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/join/action",
    ),
)
MANAGED_IDENTITY_OPERATOR = Role(
    "f1a07417-d97a-45cb-824c-7a7467783830",
    "Managed Identity Operator",
    (
        # Azure writes `userAssignedIdentities/*/read` and `.../*/assign/action`, and means the identities themselves.
        *_COMMON,
        "Microsoft.ManagedIdentity/userAssignedIdentities/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
    ),
)
MANAGED_IDENTITY_CONTRIBUTOR = Role(
    "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59",
    "Managed Identity Contributor",
    (
        *_COMMON,
        "Microsoft.ManagedIdentity/userAssignedIdentities/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/write",
        "Microsoft.ManagedIdentity/userAssignedIdentities/delete",
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/*",
    ),
)
ACR_PULL = Role(
    "7f951dda-4ed3-4680-a7ca-43fe172d538d", "AcrPull", ("Microsoft.ContainerRegistry/registries/pull/read",)
)
KEY_VAULT_SECRETS_USER = Role(
    "4633458b-17de-408a-b874-0445c86b69e6",
    "Key Vault Secrets User",
    data_actions=(
        "Microsoft.KeyVault/vaults/secrets/getSecret/action",
        "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
    ),
)
AKS_CONTRIBUTOR = Role(
    "ed7f3fbd-7b88-4dd4-9017-9adb7ce333f8",
    "Azure Kubernetes Service Contributor Role",
    (
        "Microsoft.ContainerService/managedClusters/read",
        "Microsoft.ContainerService/managedClusters/write",
        "Microsoft.Resources/deployments/*",
    ),
)
AKS_CLUSTER_ADMIN = Role(
    "0ab0b1a8-8aac-4efd-b8c2-3ee1fb270be8",
    "Azure Kubernetes Service Cluster Admin Role",
    (
        "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action",
        "Microsoft.ContainerService/managedClusters/accessProfiles/listCredential/action",
        "Microsoft.ContainerService/managedClusters/read",
        "Microsoft.ContainerService/managedClusters/runcommand/action",
    ),
)
AKS_CLUSTER_USER = Role(
    "4abbcc35-e782-43d8-92c5-2d3f1bd2253f",
    "Azure Kubernetes Service Cluster User Role",
    (
        "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        "Microsoft.ContainerService/managedClusters/read",
    ),
)
AKS_RBAC_CLUSTER_ADMIN = Role(
    "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b",
    "Azure Kubernetes Service RBAC Cluster Admin",
    (*_COMMON, "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"),
    data_actions=("Microsoft.ContainerService/managedClusters/*",),
)
AKS_RBAC_ADMIN = Role(
    "3498e952-d568-435e-9b2c-8d77e338d7f7",
    "Azure Kubernetes Service RBAC Admin",
    (*_COMMON, "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"),
    data_actions=("Microsoft.ContainerService/managedClusters/*",),
)
AKS_RBAC_READER = Role("7f6c6a51-bcf8-42ba-9220-52d62157d7db", "Azure Kubernetes Service RBAC Reader", _COMMON)
AKS_RBAC_WRITER = Role("a7ffa36f-339b-4b5c-8bdf-e2c188b2c0eb", "Azure Kubernetes Service RBAC Writer", _COMMON)

BUILT_IN = {
    role.id: role
    for role in (
        OWNER,
        CONTRIBUTOR,
        READER,
        USER_ACCESS_ADMINISTRATOR,
        RBAC_ADMINISTRATOR,
        VIRTUAL_MACHINE_CONTRIBUTOR,
        NETWORK_CONTRIBUTOR,
        PRIVATE_DNS_ZONE_CONTRIBUTOR,
        MANAGED_IDENTITY_OPERATOR,
        MANAGED_IDENTITY_CONTRIBUTOR,
        ACR_PULL,
        KEY_VAULT_SECRETS_USER,
        AKS_CONTRIBUTOR,
        AKS_CLUSTER_ADMIN,
        AKS_CLUSTER_USER,
        AKS_RBAC_CLUSTER_ADMIN,
        AKS_RBAC_ADMIN,
        AKS_RBAC_READER,
        AKS_RBAC_WRITER,
    )
}


def find(definition_id: str) -> Role | None:
    """The role that a role definition id names, whatever its scope; None when it is not built in."""
    return BUILT_IN.get(definition_id.rstrip("/").rsplit("/", 1)[-1].lower())


def matches(actions: Iterable[str], not_actions: Iterable[str], action: str) -> bool:
    """Whether patterns of actions, less others, hold an action."""
    return _any(actions, action) and not _any(not_actions, action)


def _any(patterns: Iterable[str], action: str) -> bool:
    return any(_compiled(pattern).fullmatch(action) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"), re.IGNORECASE)
