"""What the monitoring agents in a cluster collect, and where to: data collection rules, each tied to the cluster.

Without its rule an agent runs and sends nothing. A rule lies where its workspace does, Azure refuses it elsewhere; it
is in the stack's resource group, whoever's the workspace is. The tie goes before the cluster, which would leave it
behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import monitor

from ..documents import aks_addons as documents
from ..naming import AksNames
from ..settings.aks_addons import AddonsSettings
from .workspaces import Workspaces


@dataclass(frozen=True, kw_only=True)
class CollectionArgs:
    """Arguments of `Collection`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: The stack's, where workspaces lie unless the settings say another.
        cluster_id: Resource ID of the cluster.
        workspaces: Where it is sent to.
        settings: Which agents there are.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    cluster_id: pulumi.Input[str]
    workspaces: Workspaces
    settings: AddonsSettings
    tags: Mapping[str, str]


class Collection(pulumi.ComponentResource):
    """Rules, the endpoint that metrics go through, and their associations with the cluster."""

    def __init__(self, name: str, args: CollectionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Collection", name, {}, opts)
        self._stem = name
        self._args = args
        self._child = pulumi.ResourceOptions(parent=self)
        if args.settings.container_insights:
            self._logs()
        if args.settings.prometheus:
            self._metrics()
        self.register_outputs({})

    def _logs(self) -> None:
        args = self._args
        rule = monitor.DataCollectionRule(
            f"{self._stem}-logs",
            data_collection_rule_name=args.names.log_collection,
            resource_group_name=args.resource_group,
            location=args.settings.log_workspace_location or args.location,
            kind=monitor.KnownDataCollectionRuleResourceKind.LINUX,
            **documents.collected_logs(workspace_id=args.workspaces.logs),
            tags=args.tags,
            opts=self._child,
        )
        self._associate("logs", documents.LOG_ASSOCIATION, rule)

    def _metrics(self) -> None:
        args = self._args
        location = args.settings.metrics_workspace_location or args.location
        endpoint = monitor.DataCollectionEndpoint(
            f"{self._stem}-endpoint",
            data_collection_endpoint_name=args.names.metric_collection,
            resource_group_name=args.resource_group,
            location=location,
            kind=monitor.KnownDataCollectionEndpointResourceKind.LINUX,
            tags=args.tags,
            opts=self._child,
        )
        rule = monitor.DataCollectionRule(
            f"{self._stem}-metrics",
            data_collection_rule_name=args.names.metric_collection,
            resource_group_name=args.resource_group,
            location=location,
            kind=monitor.KnownDataCollectionRuleResourceKind.LINUX,
            data_collection_endpoint_id=endpoint.id,
            **documents.collected_metrics(workspace_id=args.workspaces.metrics),
            tags=args.tags,
            opts=self._child,
        )
        self._associate("metrics", documents.METRIC_ASSOCIATION, rule)

    def _associate(self, label: str, association: str, rule: monitor.DataCollectionRule) -> None:
        monitor.DataCollectionRuleAssociation(
            f"{self._stem}-{label}-of-cluster",
            association_name=association,
            resource_uri=self._args.cluster_id,
            data_collection_rule_id=rule.id,
            opts=self._child,
        )
