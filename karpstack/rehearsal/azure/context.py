"""What the kinds of resources share: the store, the region, the catalogue, the directory and the operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.faults import Faults
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, resource_id
from karpstack.rehearsal.azure.arm.operations import Durations, Operations
from karpstack.rehearsal.azure.arm.store import Resource, Store
from karpstack.rehearsal.azure.identity.entra import Directory
from karpstack.rehearsal.azure.machines.catalogue import ZONES, Size, offered
from karpstack.rehearsal.azure.machines.images import Images
from karpstack.rehearsal.azure.machines.prices import PriceTable


@dataclass
class Context:
    """One subscription's shared parts.

    Attributes:
        subscription: Id of the subscription.
        region: The only region that has anything.
        store: What exists.
        prices: What sizes cost, and with it which are sold.
        directory: Entra: who exists.
        operations: What is still running.
        faults: Errors to inject.
        durations: How long things take.
        images: The community galleries.
        quotas: vCPU limit by name of the family (`standardDSv5Family`), `cores` or `lowPriorityCores`; 1000 by default.
        role_effective: Seconds until a role that is assigned takes effect.
        unregistered: Resource providers, in lower case, that the subscription is not registered to use.
        features: Preview features that it is registered for, `Microsoft.Compute/EncryptionAtHost`.
        restricted: Zones in which the subscription may not have a VM size, by its name in lower case.
        network_limits: How many of a network resource it may have, by the name that its usage has.
        followers: Called when ARM has changed a cluster that was there already or a pool of it, by the cluster's key.
    """

    subscription: str
    region: str
    store: Store
    prices: PriceTable
    directory: Directory
    operations: Operations
    faults: Faults
    durations: Durations
    images: Images = field(default_factory=Images)
    quotas: dict[str, int] = field(default_factory=dict)
    role_effective: float = 0.0
    unregistered: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    restricted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    network_limits: dict[str, int] = field(default_factory=dict)
    followers: dict[str, Callable[[], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sizes = {size.name.lower(): size for size in offered(self.prices.sizes(self.region))}

    @property
    def sizes(self) -> list[Size]:
        """VM sizes that the region offers."""
        return list(self._sizes.values())

    def size(self, name: str) -> Size | None:
        """The size of a name, if the region offers it."""
        return self._sizes.get(name.lower())

    def zones_of(self, size: Size) -> tuple[str, ...]:
        """The zones in which the subscription may have a size; none where it may not have it at all."""
        return tuple(zone for zone in ZONES if zone not in self.restricted.get(size.name.lower(), ()))

    def changed(self, cluster: ResourceId) -> None:
        """Tell who follows a cluster that it, or a pool of it, is another now; mostly there is nobody."""
        if follow := self.followers.get(cluster.key):
            follow()

    def location(self, given: str, resource_type: str) -> str:
        """A location as ARM writes it; one that is not the rehearsal's region is refused."""
        name = given.replace(" ", "").lower()
        if not name:
            raise refused("LocationRequired")
        if name != self.region:
            raise refused(
                "LocationNotAvailableForResourceType", given=given, resource_type=resource_type, region=self.region
            )
        return name

    def get(self, identifier: str) -> Resource | None:
        """A resource by id."""
        return self.store.get(identifier)

    def named(self, group: str, resource_type: str, *names: str) -> str:
        """Id of a resource in this subscription."""
        return resource_id(self.subscription, group, resource_type, *names)

    def keep(self, identifier: str, resource_type: str, body: dict[str, Any]) -> Resource:
        """Store a resource that a resource provider makes by itself, past the checks of a caller's PUT."""
        parsed = ResourceId.parse(identifier)
        complete = {
            **body,
            "id": identifier,
            "name": parsed.name,
            "type": resource_type,
            "properties": {**body.get("properties", {}), "provisioningState": "Succeeded"},
        }
        resource = Resource(parsed, resource_type, complete)
        self.store.add(resource)
        return resource
