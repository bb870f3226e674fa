"""Workspaces: of Log Analytics for logs, of Azure Monitor for metrics. Nothing is sent to them."""

from __future__ import annotations

import re
import uuid
from typing import Final

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.kind import Kind, Request, at
from rehearsal.azure.arm.store import Resource

LOG_WORKSPACE_TYPE: Final = "Microsoft.OperationalInsights/workspaces"
METRIC_WORKSPACE_TYPE: Final = "Microsoft.Monitor/accounts"


class LogWorkspace(Kind):
    """A Log Analytics workspace.

    Names and days are those of the specification (azure-rest-api-specs, operationalinsights, Workspaces.json), and of
    https://learn.microsoft.com/azure/azure-monitor/logs/data-retention-configure; the texts are ours.
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
        kept = request.existing.properties if request.existing else {}
        resource.properties["customerId"] = kept.get("customerId") or str(uuid.uuid4())
        return resource


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
