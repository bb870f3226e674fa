"""Workspaces: of Log Analytics for logs, of Azure Monitor for metrics. Nothing is sent to them."""

from __future__ import annotations

import re
import uuid
from typing import Final

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.identifiers import ResourceId
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource

LOG_WORKSPACE_TYPE: Final = "Microsoft.OperationalInsights/workspaces"
METRIC_WORKSPACE_TYPE: Final = "Microsoft.Monitor/accounts"


class DeletedWorkspace(Kind):
    """A Log Analytics workspace that was deleted: Azure keeps its name and its data for 14 days.

    It is stored below the subscription, so that it outlives its resource group; its body is the workspace's.
    """

    type = "Microsoft.OperationalInsights/deletedWorkspaces"
    versions = ("2020-08-01", "2022-10-01", "2023-09-01", "2025-02-01", "2025-07-01")
    name = re.compile(r".+")


class LogWorkspace(Kind):
    """A Log Analytics workspace.

    Names and days are those of the specification (azure-rest-api-specs, operationalinsights, Workspaces.json), and of
    https://learn.microsoft.com/azure/azure-monitor/logs/data-retention-configure; deletion is that of
    https://learn.microsoft.com/rest/api/loganalytics/workspaces/delete. The texts are ours.
    """

    type = LOG_WORKSPACE_TYPE
    versions = ("2020-08-01", "2022-10-01", "2023-09-01", "2025-02-01", "2025-07-01")
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{2,61}[A-Za-z0-9]")

    def put(self, request: Request) -> Resource:
        """Check how long it keeps what it gets."""
        resource = self.resource(request)
        resource.properties.setdefault("sku", {"name": "PerGB2018"})
        days = resource.properties.setdefault("retentionInDays", 30)
        if not 30 <= int(days) <= 730:
            raise ArmError(
                "InvalidParameter",
                f"'RetentionInDays' property doesn't match the SKU limits: {days} is not between 30 and 730.",
            )
        deleted = None if request.existing else self.context.get(self._deleted(resource))
        if deleted and deleted.body["location"] != resource.body["location"]:
            raise ArmError(
                "Conflict",
                f"The workspace name '{request.id.name}' is not available: a workspace of that name was deleted from "
                f"{deleted.body['location']} within the last 14 days. Recover it there, delete it with force, or "
                "choose another name.",
                409,
            )
        # Made again at the same place within that time, it is the deleted one with its data.
        kept = request.existing or deleted
        resource.properties["customerId"] = kept.properties["customerId"] if kept else str(uuid.uuid4())
        return resource

    def created(self, resource: Resource, request: Request) -> None:
        """A deleted one is recovered."""
        self.context.store.remove(self._deleted(resource))

    def deleted(self, resource: Resource) -> None:
        """It can be recovered."""
        kept = Resource(ResourceId.parse(self._deleted(resource)), DeletedWorkspace.type, resource.body)
        self.context.store.add(kept)

    @staticmethod
    def _deleted(resource: Resource) -> str:
        found = resource.id
        return f"/subscriptions/{found.subscription}/providers/{DeletedWorkspace.type}/{found.group}.{found.name}"


class MetricWorkspace(Kind):
    """An Azure Monitor workspace."""

    type = METRIC_WORKSPACE_TYPE
    versions = ("2023-04-03", "2025-10-03")
    name = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{2,61}[A-Za-z0-9]")

    def put(self, request: Request) -> Resource:
        """Give it the address at which it is asked."""
        resource = self.resource(request)
        kept = at(request.existing.properties, "accountId") if request.existing else None
        account = kept or str(uuid.uuid4())
        resource.properties["accountId"] = account
        resource.properties["metrics"] = {
            "internalId": f"mac_{account}",
            "prometheusQueryEndpoint": f"https://{request.id.name}.{self.context.region}.prometheus.monitor.azure.com",
        }
        return resource
