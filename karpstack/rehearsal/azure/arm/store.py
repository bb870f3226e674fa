"""What exists in the subscription: resources by id, and nothing about their meaning."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from karpstack.rehearsal.azure.arm.identifiers import ResourceId, within


@dataclass
class Resource:
    """One stored resource.

    Attributes:
        id: Its id, written as when it was created.
        type: Its type in Azure's own spelling.
        body: What GET answers, outputs that ARM computes included.
        private: What ARM keeps and does not show: custom data, the owner of a principal.
    """

    id: ResourceId
    type: str
    body: dict[str, Any]
    private: dict[str, Any] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, Any]:
        """The `properties` of the body."""
        properties: dict[str, Any] = self.body.setdefault("properties", {})
        return properties

    @property
    def state(self) -> str:
        """`provisioningState`; Succeeded where the type has none."""
        return str(self.properties.get("provisioningState", "Succeeded"))

    @state.setter
    def state(self, value: str) -> None:
        self.properties["provisioningState"] = value

    def shown(self) -> dict[str, Any]:
        """A copy of the body, for callers to keep."""
        return copy.deepcopy(self.body)


class Store:
    """Resources by id. Its lock guards every sequence of reads and writes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._resources: dict[str, Resource] = {}

    def get(self, identifier: str) -> Resource | None:
        """The resource of an id in any case."""
        with self.lock:
            return self._resources.get("/" + identifier.strip("/").lower())

    def add(self, resource: Resource) -> None:
        """Keep a resource."""
        with self.lock:
            self._resources[resource.id.key] = resource

    def remove(self, identifier: str) -> None:
        """Forget a resource and all below it; nothing happens when there is none."""
        with self.lock:
            for key in [key for key in self._resources if within(key, identifier)]:
                del self._resources[key]

    def of_type(self, resource_type: str, scope: str = "") -> Iterator[Resource]:
        """Resources of a type (and of no type below it) at or below a scope, in the order of creation."""
        with self.lock:
            resources = [
                resource
                for resource in self._resources.values()
                if resource.type.lower() == resource_type.lower() and within(resource.id.text, scope)
            ]
        return iter(resources)

    def below(self, scope: str) -> list[Resource]:
        """All resources below a scope, the scope itself left out."""
        with self.lock:
            return [
                resource
                for key, resource in self._resources.items()
                if within(key, scope) and key != "/" + scope.strip("/").lower()
            ]

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._resources.clear()
