"""What Pulumi knows of what is kept: the types of azure-native, for the table in `provider`."""

from __future__ import annotations

from rehearsal.azure.resource import AzureResource


class DiagnosticSetting(AzureResource):
    """Which logs of a resource go where."""

    token = "azure-native:monitor:DiagnosticSetting"
    path = "/{resourceUri}/providers/Microsoft.Insights/diagnosticSettings/{name}"
    default_version = "2021-05-01-preview"
    body = frozenset(
        {
            "eventHubAuthorizationRuleId",
            "eventHubName",
            "logAnalyticsDestinationType",
            "logs",
            "metrics",
            "storageAccountId",
            "workspaceId",
        }
    )
