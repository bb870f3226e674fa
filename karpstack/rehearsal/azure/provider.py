"""The stand-in for pulumi-azure-native: resource types and functions over a simulated subscription.

Inputs are translated to requests of Azure Resource Manager and answers to outputs, as the real provider does; the
subscription behind it (`karpstack.rehearsal.azure`) decides. Types with an API version in their name are not played.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from karpstack.rehearsal.attachment.resource import AUTOMATIC, Properties, RefusedError, Resource
from karpstack.rehearsal.attachment.server import Configuration, Provider
from karpstack.rehearsal.azure.arm.rows import latest
from karpstack.rehearsal.azure.clusters import CLUSTER_TYPE
from karpstack.rehearsal.azure.clusters.resources import AgentPool, ManagedCluster
from karpstack.rehearsal.azure.invokes import invokes
from karpstack.rehearsal.azure.resource import BY_TOKEN, AzureResource, Session

if TYPE_CHECKING:
    from karpstack.rehearsal.azure.subscription import Subscription
    from karpstack.rehearsal.cluster.control_plane import Clusters

__all__ = ["PACKAGE", "TYPES", "VERSION", "configuration", "resources"]

PACKAGE: Final = "azure-native"
VERSION: Final = "3.29.0"


class ResourceGroup(AzureResource):
    """A resource group."""

    token = "azure-native:resources:ResourceGroup"

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Everything in it goes with it, control planes too."""
        clusters = self.arm.list(f"{id}/providers/{CLUSTER_TYPE}", latest(CLUSTER_TYPE))
        super().remove(id, state, timeout)
        for cluster in clusters:
            self.session.stop_control_plane(cluster["id"])


class RoleAssignment(AzureResource):
    """A role given to a principal at a scope."""

    token = "azure-native:authorization:RoleAssignment"
    _names: ClassVar[uuid.UUID] = uuid.UUID("5ac2b1a5-3b3c-4f1e-9a0e-6d5f2f0f6f0b")

    def autoname(self, inputs: Properties, old: Mapping[str, object], proposed: str | None) -> Properties:
        """Its name must be a GUID."""
        named = super().autoname(inputs, old, proposed)
        if AUTOMATIC in named and named[self.name_property] == proposed:
            return {**named, self.name_property: str(uuid.uuid5(self._names, str(proposed)))}
        return named


_CODE = {kind.token: kind for kind in (ResourceGroup, RoleAssignment, ManagedCluster, AgentPool)}
#: Every resource type that the stand-in knows: each row that Pulumi knows, with the code that some need besides.
TYPES: tuple[type[AzureResource], ...] = tuple(
    _CODE.get(token) or type(token.rpartition(":")[2], (AzureResource,), {"token": token}) for token in BY_TOKEN
)

_OTHER = (
    "azure-native:{name} is {given!r}, but the simulated subscription has {own!r}, so the stack would lie "
    "elsewhere; start the rehearsal with this stack's configuration, or set azure-native:{name} to {own}"
)

#: The settings that a provider may have; azure-native adds `environment` to every explicit one.
SETTINGS: Final = frozenset({"environment", "location", "subscriptionId", "tenantId"})


def resources(session: Session) -> list[Resource]:
    """One of each type, for one instance of the provider."""
    return [kind(session) for kind in TYPES]


def configuration(subscription: Subscription, clusters: Clusters, definitions: Path) -> Configuration:
    """What the provider takes as configuration: `location`, `subscriptionId` and `tenantId`.

    Without a subscription it takes that of the environment (`ARM_SUBSCRIPTION_ID`), as azure-native does.

    Args:
        subscription: The simulated subscription.
        clusters: The clusters that run in it.
        definitions: Folder with Karpenter's resource definitions.
    """

    def configure(given: Properties, cancelled: threading.Event) -> Provider:
        for name, own in (
            ("subscriptionId", subscription.subscription_id),
            ("tenantId", subscription.tenant_id),
            ("location", subscription.region),
            ("environment", "public"),
        ):
            if given.get(name) and _plain(given[name]) != _plain(own):
                raise RefusedError(_OTHER.format(name=name, given=given[name], own=own))
        session = Session(subscription, clusters, definitions, str(given.get("location") or ""))
        return Provider(resources(session), invokes(session, TYPES))

    def named(given: Properties) -> object:
        return given.get("subscriptionId") or subscription.subscription_id

    return Configuration(
        names=SETTINGS,
        configure=configure,
        replaces=lambda old, new: ["subscriptionId"] if named(old) != named(new) else [],
    )


def _plain(value: Any) -> str:
    return str(value).replace(" ", "").lower()
