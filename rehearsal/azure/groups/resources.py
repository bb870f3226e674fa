"""What Pulumi knows of resource groups: the type of azure-native, for the table in `provider`."""

from __future__ import annotations

from rehearsal.azure.clusters import CLUSTER_TYPE
from rehearsal.azure.resource import GROUP, AzureResource


class ResourceGroup(AzureResource):
    """A resource group."""

    token = "azure-native:resources:ResourceGroup"
    path, default_version = GROUP, "2024-03-01"
    body = frozenset({"location", "managedBy", "tags"})
    outputs = frozenset({"properties"})
    flat = False

    def remove(self, id: str, timeout: float) -> None:
        """Everything in it goes with it, control planes too."""
        clusters = self.arm.list(f"{id}/providers/{CLUSTER_TYPE}", "2025-09-01")
        super().remove(id, timeout)
        for cluster in clusters:
            self.session.stop_control_plane(cluster["id"])
