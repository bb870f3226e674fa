"""Rules about what runs beside Karpenter on AKS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from karpstack.karpenter.findings import Finding

from ..problems import Judge, finding

if TYPE_CHECKING:
    from .aks import ClusterSettings
    from .aks_addons import AddonsSettings, CiliumSettings


def unassigned_permissions(say: Judge, addons: AddonsSettings) -> Iterator[Finding]:
    """Find vaults for an add-on that the stack does not install: without it, there is no identity for them."""
    if addons.vault_ids and not addons.secrets_provider:
        yield say("vaults-without-secrets-provider", "addons.vaultIds")


def workspaces(say: Judge, cluster: ClusterSettings, addons: AddonsSettings) -> Iterator[Finding]:
    """Two workspaces for the same, none where one is needed, and what is said of one that is not used."""
    if cluster.log_workspace_id is not None and addons.log_retention_days:
        yield say("two-log-workspaces", "addons.logRetentionDays")
    if addons.container_insights and cluster.log_workspace_id is None and not addons.log_retention_days:
        yield say("container-insights-without-workspace", "addons.containerInsights")
    metrics = addons.metrics_workspace_id
    for key, value, used, needed in (
        ("logWorkspaceLocation", addons.log_workspace_location, cluster.log_workspace_id, "cluster.logWorkspaceId"),
        ("metricsWorkspaceLocation", addons.metrics_workspace_location, metrics, "addons.metricsWorkspaceId"),
        ("metricsWorkspaceId", metrics, addons.prometheus or None, "addons.prometheus"),
    ):
        if value is not None and used is None:
            yield say("setting-of-missing-addon", f"addons.{key}", needed=needed)


def dns_on_the_node(name: str, spec: Mapping[str, Any], cilium: CiliumSettings) -> Iterator[Finding]:
    """A node class whose pods ask a DNS server of their node, which policies that name DNS names may not see.

    Policies must then allow DNS to 169.254.10.0/24 and to the node, as `manifests.default_deny` does
    (https://learn.microsoft.com/azure/aks/localdns-custom). Whether policies that name DNS names see what is asked
    there, Microsoft does not say.
    """
    mode = (spec.get("localDNS") or {}).get("mode")
    if mode != "Required" or cilium.advanced_policies == "none":
        return
    yield finding("local-dns-with-advanced-policies", ("nodeClasses", name, "localDNS", "mode"), mode)
