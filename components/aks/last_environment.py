"""What an AKS stack has, read from its last state for the rules of `settings.aks_identity`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..last_state import LastState
from ..settings.aks_identity import AksBefore


def before(last: LastState, stem: str) -> AksBefore:
    """Return what the environment of a name has; nothing before it is there.

    Args:
        last: The last state of the stack.
        stem: The environment's name in the program.
    """
    own = _outputs(last, "karpstack:aks:Cluster", f"{stem}-cluster")
    existing = _outputs(last, "karpstack:aks:ExistingCluster", f"{stem}-cluster")
    cluster = _outputs(last, "azure-native:containerservice:ManagedCluster", f"{stem}-cluster-control-plane")
    profile = cluster.get("networkProfile") or {}
    pools = {pool.get("name"): pool for pool in cluster.get("agentPoolProfiles") or []}
    return AksBefore(
        cluster_id=str((own or existing).get("id") or ""),
        is_own=bool(own),
        resource_group=str(_outputs(last, "azure-native:resources:ResourceGroup", f"{stem}-group").get("name") or ""),
        location=str(cluster.get("location") or "").replace(" ", "").lower(),
        pod_cidr=str(profile.get("podCidr") or ""),
        service_cidr=str(profile.get("serviceCidr") or ""),
        outbound_type=str(profile.get("outboundType") or ""),
        subnet_id=str((pools.get("system") or {}).get("vnetSubnetID") or ""),
        subnet_cidr=str(
            _outputs(last, "azure-native:network:Subnet", f"{stem}-network-nodes").get("addressPrefix") or ""
        ),
        self_hosted=last.find("kubernetes:helm.sh/v3:Release", f"{stem}-karpenter-charts-crd") is not None,
        log_days=int(
            _outputs(last, "azure-native:operationalinsights:Workspace", f"{stem}-workspaces-logs").get(
                "retentionInDays"
            )
            or 0
        ),
        metrics=last.find("azure-native:monitor:AzureMonitorWorkspace", f"{stem}-workspaces-metrics") is not None,
    )


def _outputs(last: LastState, type_: str, name: str) -> Mapping[str, Any]:
    found = last.find(type_, name)
    return found.outputs if found else {}
