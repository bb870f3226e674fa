"""Rules about what runs beside Karpenter on AKS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..problems import Problem, key_of, shown

if TYPE_CHECKING:
    from .aks import ClusterSettings
    from .aks_addons import AddonsSettings, CiliumSettings


def rights_of_nobody(addons: AddonsSettings) -> Iterator[Problem]:
    """Vaults for an add-on that the stack does not have: its identity comes and goes with it."""
    if addons.vault_ids and not addons.secrets_provider:
        yield Problem(
            key_of("addons", "vaultIds"),
            shown(addons.vault_ids),
            "is for the identity of an add-on that this stack does not have: nobody would get a role",
            "set karpstack:addons.secretsProvider to true, or remove it",
        )


def workspaces(cluster: ClusterSettings, addons: AddonsSettings) -> Iterator[Problem]:
    """Two workspaces for the same, none where one is needed, and what is said of one that is not used."""
    if cluster.log_workspace_id is not None and addons.log_retention_days:
        yield Problem(
            key_of("addons", "logRetentionDays"),
            shown(addons.log_retention_days),
            "makes a workspace beside the one of karpstack:cluster.logWorkspaceId, and nothing would be sent to it",
            "remove one of the two",
        )
    if addons.container_insights and cluster.log_workspace_id is None and not addons.log_retention_days:
        yield Problem(
            key_of("addons", "containerInsights"),
            shown(addons.container_insights),
            "needs a Log Analytics workspace, and this stack has none",
            "set karpstack:cluster.logWorkspaceId, or karpstack:addons.logRetentionDays for one of the stack's own",
        )
    for key, value, used, needed in (
        ("logWorkspaceLocation", addons.log_workspace_location, cluster.log_workspace_id, "cluster.logWorkspaceId"),
        (
            "metricsWorkspaceLocation",
            addons.metrics_workspace_location,
            addons.metrics_workspace_id,
            "addons.metricsWorkspaceId",
        ),
        ("metricsWorkspaceId", addons.metrics_workspace_id, addons.prometheus or None, "addons.prometheus"),
    ):
        if value is not None and used is None:
            yield Problem(
                key_of("addons", key),
                shown(value),
                f"says something of what this stack does not have: karpstack:{needed} is not set, so it would change "
                "nothing",
                f"set karpstack:{needed}, or remove it",
            )


def dns_on_the_node(name: str, spec: Mapping[str, Any], cilium: CiliumSettings) -> Iterator[Problem]:
    """A node class whose pods ask a DNS server of their node, which policies that name DNS names may not see.

    Policies must then allow DNS to 169.254.10.0/24 and to the node, as `manifests.default_deny` does
    (https://learn.microsoft.com/azure/aks/localdns-custom). Whether policies that name DNS names see what is asked
    there, Microsoft does not say.
    """
    mode = (spec.get("localDNS") or {}).get("mode")
    if mode != "Required" or cilium.advanced_policies == "none":
        return
    yield Problem(
        key_of("nodeClasses", name, "localDNS", "mode"),
        shown(mode),
        "has pods ask a DNS server on their node, which karpstack:cilium.advancedPolicies does not reckon with: names "
        "may not be found, or found past the policies",
        "set it to Disabled, or allow DNS to the node by a policy of your own, as "
        "learn.microsoft.com/azure/aks/localdns-custom says, or take karpstack:cilium.advancedPolicies out",
        warning=True,
    )
