"""Workspaces that the stack makes: for logs, and for metrics. One of somebody else is used as it is.

They are the stack's, and go with it: what must outlast the cluster belongs in a workspace of somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import monitor, operationalinsights

from ..naming import AksNames
from ..replacement import Keeper
from ..settings.aks_addons import AddonsSettings


@dataclass(frozen=True, kw_only=True)
class WorkspacesArgs:
    """Arguments of `Workspaces`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Of what is made.
        log_workspace_id: Resource ID of a Log Analytics workspace that is there.
        settings: Which there are to be.
        keeper: Keeps what is in them.
        tags: For every resource.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    log_workspace_id: str | None
    settings: AddonsSettings
    keeper: Keeper
    tags: Mapping[str, str]


class Workspaces(pulumi.ComponentResource):
    """Resource IDs of the workspaces, made or given; None where there is none."""

    logs: pulumi.Input[str] | None
    metrics: pulumi.Input[str] | None

    def __init__(self, name: str, args: WorkspacesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Workspaces", name, {}, opts)
        self.logs = args.log_workspace_id
        if args.settings.log_retention_days:
            self.logs = operationalinsights.Workspace(
                f"{name}-logs",
                workspace_name=args.names.log_workspace,
                resource_group_name=args.resource_group,
                location=args.location,
                # By the gigabyte, as all new workspaces are.
                sku=operationalinsights.WorkspaceSkuArgs(name=operationalinsights.WorkspaceSkuNameEnum.PER_GB2018),
                retention_in_days=args.settings.log_retention_days,
                tags=args.tags,
                opts=self._kept(args.keeper, f"{name}-logs", "the audit logs of the cluster"),
            ).id
        self.metrics = args.settings.metrics_workspace_id
        if args.settings.prometheus and self.metrics is None:
            self.metrics = monitor.AzureMonitorWorkspace(
                f"{name}-metrics",
                azure_monitor_workspace_name=args.names.metrics_workspace,
                resource_group_name=args.resource_group,
                location=args.location,
                tags=args.tags,
                opts=self._kept(args.keeper, f"{name}-metrics", "the metrics of the cluster"),
            ).id
        self.register_outputs({"logs": self.logs, "metrics": self.metrics})

    def _kept(self, keeper: Keeper, name: str, lost: str) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, hooks=keeper.hooks(name, lost=lost))
