"""The table of types: ARM path, API version, which inputs go where, and which outputs come back.

The facts are those of pulumi-azure-native 3.29.0; a test compares them with the SDK. Properties that the rehearsal
gives no meaning to are left out, so that they are refused by name. Clusters and agent pools, which bring more about
than an entry in ARM, are in `clusters`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import ClassVar, Final

from rehearsal.attachment.resource import AUTOMATIC, Properties
from rehearsal.azure.kinds.clusters import CLUSTER_TYPE
from rehearsal.azure.provider.base import AzureResource

GROUP: Final = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
_NETWORK: Final = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/{{virtualNetworkName}}"
_IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"


class ResourceGroup(AzureResource):
    """A resource group."""

    token = "azure-native:resources:ResourceGroup"
    path, default_version = GROUP, "2024-03-01"
    body = frozenset({"location", "managedBy", "tags"})
    outputs = frozenset({"properties"})
    fixed = frozenset({"managedBy"})
    flat = False

    def remove(self, id: str, timeout: float) -> None:
        """Everything in it goes with it, control planes too."""
        clusters = self.arm.list(f"{id}/providers/{CLUSTER_TYPE}", "2025-09-01")
        super().remove(id, timeout)
        for cluster in clusters:
            self.session.stop_control_plane(cluster["id"])


class VirtualNetwork(AzureResource):
    """A virtual network."""

    token = "azure-native:network:VirtualNetwork"
    path, default_version = _NETWORK, "2024-05-01"
    # The SDK itself sends the two that begin with `enable`.
    body = frozenset({"location", "tags", "addressSpace", "subnets", "enableDdosProtection", "enableVmProtection"})
    outputs = frozenset({"etag", "provisioningState", "resourceGuid", "virtualNetworkPeerings"})
    nested = frozenset({"subnets"})


class Subnet(AzureResource):
    """A subnet as a resource of its own."""

    token = "azure-native:network:Subnet"
    path, default_version = f"{_NETWORK}/subnets/{{subnetName}}", "2024-05-01"
    body = frozenset(
        {
            "addressPrefix",
            "addressPrefixes",
            "defaultOutboundAccess",
            "networkSecurityGroup",
            "serviceEndpoints",
            "privateEndpointNetworkPolicies",
            "privateLinkServiceNetworkPolicies",
        }
    )
    outputs = frozenset({"delegations", "etag", "provisioningState"})
    name_digits = 0


class NetworkSecurityGroup(AzureResource):
    """A network security group."""

    token = "azure-native:network:NetworkSecurityGroup"
    path = f"{GROUP}/providers/Microsoft.Network/networkSecurityGroups/{{networkSecurityGroupName}}"
    default_version = "2024-05-01"
    body = frozenset({"location", "tags", "securityRules"})
    outputs = frozenset({"etag", "provisioningState"})
    nested = frozenset({"securityRules"})


class UserAssignedIdentity(AzureResource):
    """A managed identity."""

    token = "azure-native:managedidentity:UserAssignedIdentity"
    path, default_version = _IDENTITY, "2023-01-31"
    body = frozenset({"location", "tags"})
    outputs = frozenset({"clientId", "principalId", "tenantId"})


class FederatedIdentityCredential(AzureResource):
    """Which tokens of another issuer stand for a managed identity."""

    token = "azure-native:managedidentity:FederatedIdentityCredential"
    path = f"{_IDENTITY}/federatedIdentityCredentials/{{federatedIdentityCredentialResourceName}}"
    default_version = "2023-01-31"
    body = required = frozenset({"audiences", "issuer", "subject"})
    name_digits = 0


class RoleAssignment(AzureResource):
    """A role given to a principal at a scope. It cannot be changed but for its description."""

    token = "azure-native:authorization:RoleAssignment"
    path = "/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}"
    default_version = "2022-04-01"
    body = frozenset({"principalId", "principalType", "roleDefinitionId", "description"})
    outputs = frozenset({"scope"})
    required = frozenset({"principalId", "roleDefinitionId"})
    fixed = frozenset({"principalId", "principalType", "roleDefinitionId"})
    _names: ClassVar[uuid.UUID] = uuid.UUID("5ac2b1a5-3b3c-4f1e-9a0e-6d5f2f0f6f0b")

    def autoname(self, inputs: Properties, old: Mapping[str, object], proposed: str | None) -> Properties:
        """Its name must be a GUID."""
        named = super().autoname(inputs, old, proposed)
        if AUTOMATIC in named and named[self.name_property] == proposed:
            return {**named, self.name_property: str(uuid.uuid5(self._names, str(proposed)))}
        return named
