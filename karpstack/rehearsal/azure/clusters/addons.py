"""AKS's add-ons, as far as ARM sees them: profiles, and an identity of their own in the node resource group.

AKS gives each node of its pools the identities of the add-ons, names them as here, and takes them back with the add-on
(https://learn.microsoft.com/azure/aks/csi-secrets-store-identity-access). None of their pods runs
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karpstack.karpenter.quantities import go_duration
from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import at
from karpstack.rehearsal.azure.arm.store import Resource
from karpstack.rehearsal.azure.context import Context
from karpstack.rehearsal.azure.identity.identities import IDENTITY_TYPE, make
from karpstack.rehearsal.azure.monitor.workspaces import LOG_WORKSPACE_TYPE

SECRETS_PROVIDER: Final = "azureKeyvaultSecretsProvider"
CONTAINER_INSIGHTS: Final = "omsagent"
#: Name of an add-on -> what its identity's name begins with.
_IDENTITIES: Final = {SECRETS_PROVIDER: "azurekeyvaultsecretsprovider", CONTAINER_INSIGHTS: "omsagent"}
_WORKSPACE: Final = "config.logAnalyticsWorkspaceResourceID"


def check(context: Context, properties: Mapping[str, Any]) -> None:
    """Refuse profiles that AKS refuses."""
    for name, profile in (properties.get("addonProfiles") or {}).items():
        if name == CONTAINER_INSIGHTS and (profile.get("enabled") or at(profile, _WORKSPACE) is not None):
            _check_workspace(context, str(at(profile, _WORKSPACE, "")))
        interval = at(profile, "config.rotationPollInterval")
        try:
            go_duration("0s" if interval is None else str(interval))
        except ValueError:
            raise refused("InvalidParameter/interval", name=name, interval=interval) from None


def _check_workspace(context: Context, identifier: str) -> None:
    """An empty ID too is refused, even of an add-on that is off (azure-cli#29210)."""
    try:
        parsed = ResourceId.parse(identifier) if identifier else None
    except ArmError:
        parsed = None
    if parsed is None:
        raise refused("LinkedInvalidPropertyId/workspace", identifier=identifier)
    # Of another subscription nothing is known here.
    if parsed.subscription.lower() == context.subscription and (
        parsed.type.lower() != LOG_WORKSPACE_TYPE.lower() or context.get(identifier) is None
    ):
        # As in Azure/AKS#787.
        raise refused("BadRequest/workspace", identifier=identifier)


def identities(cluster: Resource) -> Iterator[str]:
    """IDs of the add-ons' identities, which every node has."""
    for profile in (cluster.properties.get("addonProfiles") or {}).values():
        if profile.get("identity"):
            yield profile["identity"]["resourceId"]


def settle(context: Context, cluster: Resource) -> None:
    """Make the identities of the add-ons that are on, and remove those of the others."""
    group = str(cluster.properties["nodeResourceGroup"])
    for name, profile in (cluster.properties.get("addonProfiles") or {}).items():
        identifier = context.named(group, IDENTITY_TYPE, f"{_IDENTITIES[name]}-{cluster.id.name}")
        identity = context.get(identifier)
        if not profile.get("enabled"):
            profile.pop("identity", None)
            if identity is not None:
                context.store.remove(identifier)
                context.directory.remove(identity.properties["principalId"])
            continue
        if identity is None:
            identity = make(context, identifier)
        profile["identity"] = {
            "resourceId": identifier,
            "clientId": identity.properties["clientId"],
            "objectId": identity.properties["principalId"],
        }
