"""What Pulumi knows of what is kept: the types of azure-native, for the table in `provider`."""

from __future__ import annotations

from rehearsal.azure.resource import ENVELOPE, GROUP, AzureResource


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


class Workspace(AzureResource):
    """A Log Analytics workspace."""

    token = "azure-native:operationalinsights:Workspace"
    path = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/{{workspaceName}}"
    default_version = "2023-09-01"
    body = frozenset({"location", "tags", "sku", "retentionInDays"})
    outputs = frozenset({"customerId", "provisioningState"})
    # Unlike most, it has its sku among its properties.
    envelope = ENVELOPE - {"sku"}


class AzureMonitorWorkspace(AzureResource):
    """An Azure Monitor workspace."""

    token = "azure-native:monitor:AzureMonitorWorkspace"
    path = f"{GROUP}/providers/Microsoft.Monitor/accounts/{{azureMonitorWorkspaceName}}"
    default_version = "2023-04-03"
    body = frozenset({"location", "tags"})
    outputs = frozenset({"accountId", "metrics", "provisioningState"})


class DataCollectionEndpoint(AzureResource):
    """An endpoint that data goes through."""

    token = "azure-native:monitor:DataCollectionEndpoint"
    path = f"{GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/{{dataCollectionEndpointName}}"
    default_version = "2022-06-01"
    body = frozenset({"location", "tags", "kind", "description", "networkAcls"})
    outputs = frozenset({"immutableId", "provisioningState"})


class DataCollectionRule(AzureResource):
    """What is collected, and where it is sent to."""

    token = "azure-native:monitor:DataCollectionRule"
    path = f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/{{dataCollectionRuleName}}"
    default_version = "2022-06-01"
    body = frozenset(
        {
            "location",
            "tags",
            "kind",
            "dataCollectionEndpointId",
            "dataFlows",
            "dataSources",
            "description",
            "destinations",
        }
    )
    outputs = frozenset({"immutableId", "provisioningState"})


class DataCollectionRuleAssociation(AzureResource):
    """One resource has one rule, or an endpoint."""

    token = "azure-native:monitor:DataCollectionRuleAssociation"
    path = "/{resourceUri}/providers/Microsoft.Insights/dataCollectionRuleAssociations/{associationName}"
    default_version = "2022-06-01"
    body = frozenset({"dataCollectionEndpointId", "dataCollectionRuleId", "description"})
