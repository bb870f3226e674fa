"""AKS's add-ons as ARM has them: `addonProfiles` of a managed cluster, and what their agents collect."""

from __future__ import annotations

from typing import Any, Final

#: AKS's name of the Key Vault provider for the Secrets Store CSI driver
#: (https://learn.microsoft.com/azure/aks/csi-secrets-store-driver).
SECRETS_PROVIDER: Final = "azureKeyvaultSecretsProvider"
#: The same of Container insights.
CONTAINER_INSIGHTS: Final = "omsagent"
#: Names of the associations of data collection rules with a cluster: those that Azure's own command line gives them, so
#: that there is one of each whoever switches the agents on (Azure/azure-cli, acs/addonconfiguration.py and
#: acs/azuremonitormetrics/dc/defaults.py). The templates of Azure/prometheus-collector name the second one otherwise.
LOG_ASSOCIATION: Final = "ContainerInsightsExtension"
METRIC_ASSOCIATION: Final = "ContainerInsightsMetricsExtension"
_LOGS: Final = "Microsoft-ContainerInsights-Group-Default"
_METRICS: Final = "Microsoft-PrometheusMetrics"


def secrets_provider(*, rotation: str) -> dict[str, Any]:
    """Profile of that add-on.

    Args:
        rotation: How often it looks for changed secrets, like `2m`; `off` for never. AKS's own default is never.
    """
    if rotation == "off":
        return {"enabled": True, "config": {"enableSecretRotation": "false"}}
    return {"enabled": True, "config": {"enableSecretRotation": "true", "rotationPollInterval": rotation}}


#: Profile of an add-on that a cluster has not.
OFF: Final[dict[str, Any]] = {"enabled": False}


def container_insights(*, workspace_id: Any) -> dict[str, Any]:
    """Profile of that add-on: its agents use an identity of their own, not the workspace's key.

    Args:
        workspace_id: Resource ID of a Log Analytics workspace.
    """
    return {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": workspace_id, "useAADAuth": "true"}}


def collected_logs(*, workspace_id: Any) -> dict[str, Any]:
    """Properties of the data collection rule of Container insights: every namespace, into ContainerLogV2.

    Args:
        workspace_id: Resource ID of the same workspace.
    """
    return {
        "data_sources": {
            "extensions": [
                {
                    "name": "ContainerInsightsExtension",
                    "extension_name": "ContainerInsights",
                    "streams": [_LOGS],
                    "extension_settings": {
                        "dataCollectionSettings": {
                            "interval": "1m",
                            "namespaceFilteringMode": "Off",
                            "enableContainerLogV2": True,
                        }
                    },
                }
            ]
        },
        "destinations": {"log_analytics": [{"name": "ciworkspace", "workspace_resource_id": workspace_id}]},
        "data_flows": [{"streams": [_LOGS], "destinations": ["ciworkspace"]}],
    }


def collected_metrics(*, workspace_id: Any) -> dict[str, Any]:
    """Properties of the data collection rule of managed Prometheus.

    Args:
        workspace_id: Resource ID of an Azure Monitor workspace.
    """
    return {
        "data_sources": {"prometheus_forwarder": [{"name": "PrometheusDataSource", "streams": [_METRICS]}]},
        "destinations": {"monitoring_accounts": [{"name": "MonitoringAccount1", "account_resource_id": workspace_id}]},
        "data_flows": [{"streams": [_METRICS], "destinations": ["MonitoringAccount1"]}],
    }


def advanced_networking(*, hubble: bool, policies: str) -> dict[str, Any]:
    """`networkProfile.advancedNetworking` of a cluster: each part said, for what is not follows `enabled`.

    Args:
        hubble: Container network observability.
        policies: `none`, `FQDN` or `L7`.
    """
    secure = policies != "none"
    if not hubble and not secure:
        return {"enabled": False}
    security = {"enabled": secure, **({"advanced_network_policies": policies} if secure else {})}
    return {"enabled": True, "observability": {"enabled": hubble}, "security": security}
