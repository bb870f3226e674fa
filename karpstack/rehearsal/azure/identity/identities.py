"""User-assigned identities and their federated credentials."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import same
from karpstack.rehearsal.azure.arm.kind import Kind, Request
from karpstack.rehearsal.azure.arm.store import Resource, Store
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.entra import FederatedCredential, Principal

IDENTITY_TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"
CREDENTIAL_TYPE = f"{IDENTITY_TYPE}/federatedIdentityCredentials"


class UserAssignedIdentity(Kind):
    """A managed identity: ARM makes its principal and its client id."""

    type = IDENTITY_TYPE

    def put(self, request: Request) -> Resource:
        """All its properties are ARM's."""
        request.body.pop("properties", None)
        return super().put(request)

    def created(self, resource: Resource, request: Request) -> None:
        """Enter the principal in the directory."""
        enter(self.context, resource)

    def deleted(self, resource: Resource) -> None:
        """Strike the principal; its role assignments stay and mean nothing, as in Azure."""
        self.context.directory.remove(resource.properties["principalId"])


class FederatedIdentityCredential(Kind):
    """Which tokens of another issuer stand for an identity."""

    type = CREDENTIAL_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Check that issuer and subject are not there yet."""
        properties = resource.properties
        store = self.context.store
        others = [
            one.properties
            for one in store.of_type(CREDENTIAL_TYPE, request.id.parent)
            if not same(one.id.text, request.id.text)
        ]
        if any(all(one[name] == properties[name] for name in ("issuer", "subject")) for one in others):
            raise refused("Conflict/credential")


def make(context: Context, identifier: str, *, principal: str = "", client: str = "") -> Resource:
    """An identity that a resource provider makes by itself, entered in the directory."""
    ids = {"principalId": principal or str(uuid.uuid4()), "clientId": client or str(uuid.uuid4())}
    identity = context.keep(identifier, IDENTITY_TYPE, {"location": context.region})
    identity.body["properties"] = {"tenantId": context.directory.tenant, **ids}
    enter(context, identity)
    return identity


def enter(context: Context, identity: Resource) -> None:
    """Enter an identity's principal in the directory."""
    context.directory.add(
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
