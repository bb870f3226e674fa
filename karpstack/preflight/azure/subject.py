"""What the checks of a subscription look at: the subscription, the stack's settings, and what it has made already."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from karpstack.components.naming import AksNames
from karpstack.components.settings import AksSettings, ExistingAksSettings
from karpstack.components.settings.aks import AksStackSettings
from karpstack.components.settings.existing_aks_cluster import FoundCluster

from ..finding import NotAskedError, UnknowableError
from ..stack import State
from . import existing_cluster
from .api_versions import SKUS, SUBSCRIPTIONS
from .asking import Azure

CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
GROUP: Final = "azure-native:resources:ResourceGroup"


@dataclass(frozen=True)
class StackSubject(ABC):
    """The subscription, with what it says of itself; the stack's settings; its state.

    Attributes:
        azure: Asks it.
        told: What Azure says of the subscription: `displayName`, `state`, `tenantId`.
        settings: The stack's.
        state: What the stack has made.
    """

    azure: Azure
    told: Mapping[str, Any]
    settings: AksStackSettings
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
    @abstractmethod
    def machines(self) -> str:
        """The resource group of Karpenter's machines; empty where there is none yet.

        Raises:
            NotAskedError: Azure does not tell.
        """

    @property
    def scope(self) -> str:
        """Where the stack works: its resource group if it has made that, the subscription before."""
        return self.group if self.made(self.group) else self.azure.scope

    @property
    def makes_group(self) -> bool:
        """Whether the stack has a resource group: not where it puts NodePools on a cluster whose Karpenter is AKS's."""
        return True

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


@dataclass(frozen=True)
class Subject(StackSubject):
    """A stack that makes its cluster."""

    settings: AksSettings

    @property
    def is_up(self) -> bool:
        """Whether the stack has made its cluster."""
        return bool(self.state.count(CLUSTER))

    @property
    def machines(self) -> str:
        """By its name."""
        return self.names.node_resource_group if self.is_up else ""


@dataclass(frozen=True)
class ExistingSubject(StackSubject):
    """A stack that puts NodePools on a cluster that is there."""

    settings: ExistingAksSettings

    @property
    def makes_group(self) -> bool:
        """For a controller's identity."""
        return self.settings.mode == "self-hosted"

    @property
    def cluster_id(self) -> str:
        """Resource ID of the cluster."""
        return existing_cluster.identifier(self.settings)

    @cached_property
    def cluster_response(self) -> Mapping[str, Any] | None:
        """What Azure says of the cluster; None where it is not there.

        Raises:
            NotAskedError: Azure does not tell.
        """
        return existing_cluster.get_cluster(self.azure, self.settings)

    @cached_property
    def cluster(self) -> FoundCluster | None:
        """The same, with what the cluster says itself, as the program's rules take it.

        Raises:
            NotAskedError: Azure does not tell.
        """
        told = self.cluster_response
        if told is None:
            return None
        return existing_cluster.found(self.azure, self.settings, told, str(self.told.get("tenantId", "")))

    @property
    def machines(self) -> str:
        """As the cluster has it."""
        return str(((self.cluster_response or {}).get("properties") or {}).get("nodeResourceGroup") or "")


def get_subscription(azure: Azure) -> dict[str, Any]:
    """Return the subscription, as Azure describes it.

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
    """Return the subscription, as Azure describes it.

    Raises:
        UnknowableError: It does not answer.
    """
    return Subject(azure, get_subscription(azure), settings, state)


def existing_subject(azure: Azure, settings: ExistingAksSettings, state: State) -> ExistingSubject:
    """The same for a cluster that is there.

    Raises:
        UnknowableError: It does not answer.
    """
    return ExistingSubject(azure, get_subscription(azure), settings, state)
