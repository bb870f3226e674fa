"""Container registries and key vaults: there by their names, so that roles can be given on them.

They hold no images and no secrets, and nobody pulls or reads: what an identity might do is asked of its roles. Names
are as Azure takes them
(https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
"""

from __future__ import annotations

import re
from typing import Final

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource

REGISTRY_TYPE: Final = "Microsoft.ContainerRegistry/registries"
VAULT_TYPE: Final = "Microsoft.KeyVault/vaults"


class Registry(Kind):
    """A container registry."""

    type = REGISTRY_TYPE
    versions = ("2019-05-01", "2023-07-01", "2025-04-01", "2025-11-01")
    name = re.compile(r"[A-Za-z0-9]{5,50}")

    def put(self, request: Request) -> Resource:
        """Give it the address by which images name it."""
        resource = self.resource(request)
        resource.body.setdefault("sku", {"name": "Basic", "tier": "Basic"})
        resource.properties.setdefault("loginServer", f"{request.id.name.lower()}.azurecr.io")
        return resource


class Vault(Kind):
    """A key vault."""

    type = VAULT_TYPE
    versions = ("2019-09-01", "2022-07-01", "2023-07-01", "2024-11-01")
    name = re.compile(r"(?=.{3,24}$)[A-Za-z](-?[A-Za-z0-9])+")
    name_error = "VaultNameNotValid"

    def put(self, request: Request) -> Resource:
        """Whose tenant may use it is said by whoever makes it."""
        resource = self.resource(request)
        if not at(request.body, "properties.tenantId"):
            raise ArmError("BadRequest", "The parameter tenantId is missing or its value is not valid.")
        resource.properties.setdefault("vaultUri", f"https://{request.id.name.lower()}.vault.azure.net/")
        return resource
