"""The control plane's logs, in a Log Analytics workspace.

Best in one that is its owner's alone: what happened in a cluster is asked for after the cluster is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import monitor


@dataclass(frozen=True, kw_only=True)
class LogsArgs:
    """Arguments of `Logs`.

    Attributes:
        cluster_id: Resource ID of the cluster.
        workspace_id: Resource ID of the workspace.
        categories: Names of AKS's log categories.
    """

    cluster_id: pulumi.Input[str]
    workspace_id: pulumi.Input[str]
    categories: Sequence[str]


class Logs(pulumi.ComponentResource):
    """One diagnostic setting. It goes before its cluster, which would leave it behind in Azure's books."""

    def __init__(self, name: str, args: LogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Logs", name, {}, opts)
        monitor.DiagnosticSetting(
            f"{name}-control-plane",
            name="karpstack",
            resource_uri=args.cluster_id,
            workspace_id=args.workspace_id,
            # Tables of their own, which are cheaper and faster than AzureDiagnostics.
            log_analytics_destination_type="Dedicated",
            logs=[monitor.DiagnosticsLogSettingsArgs(category=category, enabled=True) for category in args.categories],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
