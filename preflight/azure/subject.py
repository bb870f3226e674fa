"""What the checks of a subscription look at: the subscription, the stack's settings, and what it has made already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.naming import AksNames
from components.settings import AksSettings

from ..finding import NotAskedError, UnknowableError
from ..stack import State
from .asking import Azure

#: API versions of what is asked, by resource provider: stable ones that have all that is read.
AUTHORIZATION: Final = "2022-04-01"
COMPUTE: Final = "2025-04-01"
CONTAINER_SERVICE: Final = "2025-09-01"
LOG_WORKSPACES: Final = "2023-09-01"
LOCKS: Final = "2020-05-01"
METRIC_WORKSPACES: Final = "2023-04-03"
NETWORK: Final = "2024-05-01"
REGISTRIES: Final = "2025-11-01"
RESOURCES: Final = "2021-04-01"
VAULTS: Final = "2024-11-01"
ZONES: Final = "2024-06-01"
SKUS: Final = "2021-07-01"
SUBSCRIPTIONS: Final = "2022-12-01"

CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
GROUP: Final = "azure-native:resources:ResourceGroup"


@dataclass(frozen=True)
class Subject:
    """The subscription, with what it says of itself; the stack's settings; its state.

    Attributes:
        azure: Asks it.
        told: What Azure says of the subscription: `displayName`, `state`, `tenantId`.
        settings: The stack's.
        state: What the stack has made.
    """

    azure: Azure
    told: Mapping[str, Any]
    settings: AksSettings
    state: State

    @property
    def names(self) -> AksNames:
        """Physical names of the stack."""
        return AksNames(self.settings.name)

    @property
    def region(self) -> str:
        """The Azure location."""
        return self.settings.region

    @property
    def group(self) -> str:
        """Resource ID of the stack's resource group."""
        return self.azure.group(self.names.resource_group)

    @property
    def is_up(self) -> bool:
        """Whether the stack has made its cluster."""
        return bool(self.state.count(CLUSTER))

    @property
    def scope(self) -> str:
        """Where the stack works: its resource group if it has made that, the subscription before."""
        return self.group if self.made(self.group) else self.azure.scope

    def made(self, identifier: str) -> bool:
        """Whether the stack itself has made the resource of this ID, in which Azure does not tell upper from lower."""
        return self.state.knows(identifier)

    def sizes(self) -> dict[str, dict[str, Any]]:
        """The VM sizes that the region has, by name, with their restrictions.

        Raises:
            NotAskedError: Azure does not tell.
        """
        found = self.azure.all(
            "Microsoft.Compute/skus/read",
            f"{self.azure.scope}/providers/Microsoft.Compute/skus",
            SKUS,
            filter=f"location eq '{self.region}'",
        )
        return {one["name"]: one for one in found if one.get("resourceType") == "virtualMachines"}


def greet(azure: Azure) -> dict[str, Any]:
    """Ask the subscription what it is.

    Raises:
        UnknowableError: It does not answer.
    """
    try:
        return azure.ask("Microsoft.Resources/subscriptions/read", azure.scope, SUBSCRIPTIONS)
    except NotAskedError as error:
        raise UnknowableError(
            f"subscription {azure.subscription}: {error}, so nothing can be asked; give Azure credentials (az login, "
            "or ARM_CLIENT_ID and so on), and see that azure-native:subscriptionId is one that they can read"
        ) from error


def subject(azure: Azure, settings: AksSettings, state: State) -> Subject:
    """Ask the subscription what it is.

    Raises:
        UnknowableError: It does not answer.
    """
    return Subject(azure, greet(azure), settings, state)
