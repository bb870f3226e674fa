"""User-assigned identities and their federated credentials."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import same
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource, Store
from rehearsal.azure.identity.entra import FederatedCredential, Principal

IDENTITY_TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"
CREDENTIAL_TYPE = f"{IDENTITY_TYPE}/federatedIdentityCredentials"
VERSIONS = (
    "2018-11-30",
    "2022-01-31-preview",
    "2023-01-31",
    "2023-07-31-preview",
    "2024-11-30",
    "2025-01-31-preview",
    "2025-05-31-preview",
)
_MOST_CREDENTIALS = 20


class UserAssignedIdentity(Kind):
    """A managed identity: ARM makes its principal and its client id."""

    type = IDENTITY_TYPE
    versions = VERSIONS
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{2,127}")

    def put(self, request: Request) -> Resource:
        """Give a new identity its principal; an old one keeps it."""
        resource = self.resource(request)
        resource.properties.pop("provisioningState")
        if request.existing:
            resource.body["properties"] = dict(request.existing.properties)
        else:
            resource.body["properties"] = {
                "tenantId": self.context.directory.tenant,
                "principalId": str(uuid.uuid4()),
                "clientId": str(uuid.uuid4()),
            }
        return resource

    def created(self, resource: Resource, request: Request) -> None:
        """Enter the principal in the directory."""
        enter(self, resource)

    def deleted(self, resource: Resource) -> None:
        """Strike the principal; its role assignments stay and mean nothing, as in Azure."""
        self.context.directory.remove(resource.properties["principalId"])


class FederatedIdentityCredential(Kind):
    """Which tokens of another issuer stand for an identity."""

    type = CREDENTIAL_TYPE
    versions = tuple(version for version in VERSIONS if version != "2018-11-30")
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{2,119}")
    located = False

    def put(self, request: Request) -> Resource:
        """Check what is required, and that issuer and subject are not there yet."""
        resource = self.resource(request)
        resource.properties.pop("provisioningState")
        issuer, subject = (str(at(request.body, f"properties.{name}", "")) for name in ("issuer", "subject"))
        audiences = at(request.body, "properties.audiences") or []
        for name, value in (("issuer", issuer), ("subject", subject), ("audiences", audiences)):
            if not value:
                raise ArmError(
                    "BadRequest",
                    f"The property '{name}' of the federated identity credential {request.id.name} is required.",
                )
        if len(audiences) != 1:
            raise ArmError(
                "BadRequest",
                f"The federated identity credential {request.id.name} must have exactly one audience, not "
                f"{len(audiences)}.",
            )
        if not issuer.startswith("https://"):
            raise ArmError(
                "BadRequest",
                f"The issuer '{issuer}' of the federated identity credential {request.id.name} is not a valid https "
                "URL.",
            )
        others = [
            credential
            for credential in self.context.store.of_type(CREDENTIAL_TYPE, request.id.parent)
            if not same(credential.id.text, request.id.text)
        ]
        if any(
            credential.properties["issuer"] == issuer and credential.properties["subject"] == subject
            for credential in others
        ):
            raise ArmError("Conflict", "Issuer and subject combination already exists for this Managed Identity.", 409)
        if not request.existing and len(others) >= _MOST_CREDENTIALS:
            raise ArmError(
                "BadRequest",
                "Too many Federated Identity Credentials have been set on this object. The maximum is "
                f"{_MOST_CREDENTIALS}.",
            )
        return resource


def enter(kind: Kind, identity: Resource) -> None:
    """Enter an identity's principal in the directory."""
    kind.context.directory.add(
        Principal(
            identity.properties["principalId"],
            "ServicePrincipal",
            identity.id.name,
            identity.properties["clientId"],
            identity.id.text,
        )
    )


def credentials(store: Store, identity: str) -> Iterator[FederatedCredential]:
    """The federated credentials of an identity, as Entra matches them."""
    for credential in store.of_type(CREDENTIAL_TYPE, identity):
        yield FederatedCredential(
            credential.properties["issuer"],
            credential.properties["subject"],
            tuple(credential.properties["audiences"]),
            credential.id.text,
        )
