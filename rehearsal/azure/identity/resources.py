"""What Pulumi knows of identities and their rights: the types of azure-native, for the table in `provider`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import ClassVar, Final

from rehearsal.attachment.resource import AUTOMATIC, Properties
from rehearsal.azure.resource import GROUP, AzureResource

_IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{{resourceName}}"


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
    fixed = frozenset({"principalId"})
    _names: ClassVar[uuid.UUID] = uuid.UUID("5ac2b1a5-3b3c-4f1e-9a0e-6d5f2f0f6f0b")

    def autoname(self, inputs: Properties, old: Mapping[str, object], proposed: str | None) -> Properties:
        """Its name must be a GUID."""
        named = super().autoname(inputs, old, proposed)
        if AUTOMATIC in named and named[self.name_property] == proposed:
            return {**named, self.name_property: str(uuid.uuid5(self._names, str(proposed)))}
        return named
