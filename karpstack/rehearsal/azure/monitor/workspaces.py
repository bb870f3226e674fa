"""Log Analytics workspaces, deleted ones too."""

from __future__ import annotations

from typing import Final

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId
from karpstack.rehearsal.azure.arm.kind import Kind, Request
from karpstack.rehearsal.azure.arm.store import Resource

LOG_WORKSPACE_TYPE: Final = "Microsoft.OperationalInsights/workspaces"
METRIC_WORKSPACE_TYPE: Final = "Microsoft.Monitor/accounts"


#: Deleted ones: Azure keeps name and data for 14 days. Kept below the subscription, so that they outlive their groups;
#: the body is the workspace's.
DELETED_TYPE: Final = "Microsoft.OperationalInsights/deletedWorkspaces"


class LogWorkspace(Kind):
    """A Log Analytics workspace (deletion: https://learn.microsoft.com/rest/api/loganalytics/workspaces/delete)."""

    type = LOG_WORKSPACE_TYPE

    def check(self, request: Request, resource: Resource) -> None:
        """Recover a deleted one with its data, where one of that name was at the same place."""
        deleted = None if request.existing else self.context.get(self._deleted(resource))
        if deleted and deleted.body["location"] != resource.body["location"]:
            raise refused("Conflict/workspace", name=request.id.name, location=deleted.body["location"])
        if deleted:
            resource.properties["customerId"] = deleted.properties["customerId"]

    def created(self, resource: Resource, request: Request) -> None:
        """A deleted one is recovered."""
        self.context.store.remove(self._deleted(resource))

    def deleted(self, resource: Resource) -> None:
        """It can be recovered."""
        kept = Resource(ResourceId.parse(self._deleted(resource)), DELETED_TYPE, resource.body)
        self.context.store.add(kept)

    @staticmethod
    def _deleted(resource: Resource) -> str:
        found = resource.id
        return f"/subscriptions/{found.subscription}/providers/{DELETED_TYPE}/{found.group}.{found.name}"
