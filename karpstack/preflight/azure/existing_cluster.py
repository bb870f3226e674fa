"""What Azure says of an AKS cluster that is there, and the cluster of itself; `cluster` judges it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from karpstack.components.documents.kubeconfig import aks as aks_kubeconfig
from karpstack.components.documents.kubeconfig import aks_administrator
from karpstack.components.settings import ExistingAksSettings
from karpstack.components.settings import existing_aks_cluster as judging
from karpstack.components.settings.aks import names_of_network, network_of
from karpstack.components.settings.existing_aks_cluster import FoundCluster, FoundPool
from karpstack.components.settings.workloads import Workloads
from karpstack.components.workloads import aks as workloads

from ..finding import NotAskedError
from .api_versions import CONTAINER_SERVICE, NETWORK
from .asking import Azure

READS_CLUSTERS: Final = "Microsoft.ContainerService/managedClusters/read"
READS_NETWORKS: Final = "Microsoft.Network/virtualNetworks/read"
_OF_USERS: Final = "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"
_OF_ADMINISTRATORS: Final = "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action"


def identifier(settings: ExistingAksSettings) -> str:
    """Resource ID of the cluster that the settings name."""
    return (
        f"/subscriptions/{settings.subscription_id}/resourceGroups/{settings.cluster.resource_group}"
        f"/providers/Microsoft.ContainerService/managedClusters/{settings.cluster.existing}"
    )


def get_cluster(azure: Azure, settings: ExistingAksSettings) -> Mapping[str, Any] | None:
    """Return the cluster as Azure describes it; None if it does not exist.

    Raises:
        NotAskedError: Azure does not tell.
    """
    return azure.find(READS_CLUSTERS, identifier(settings), CONTAINER_SERVICE)


def pools(told: Mapping[str, Any]) -> list[FoundPool]:
    """The agent pools of what Azure says."""
    return [
        FoundPool(
            name=one["name"],
            mode=one.get("mode") or "User",
            windows=one.get("osType") == "Windows",
            autoscaled=bool(one.get("enableAutoScaling")),
            subnet_id=one.get("vnetSubnetID") or "",
            pod_subnet=bool(one.get("podSubnetID")),
        )
        for one in told["properties"].get("agentPoolProfiles") or ()
    ]


def found(azure: Azure, settings: ExistingAksSettings, told: Mapping[str, Any], tenant: str) -> FoundCluster:
    """The same as the program's rules take it, with what the cluster says itself, if it can be asked.

    Args:
        azure: The subscription.
        settings: The stack's.
        told: What Azure says of the cluster.
        tenant: Id of the subscription's tenant.

    Raises:
        NotAskedError: Azure does not tell. Of the cluster itself `Workloads.refusal` says it.
    """
    seen = _found(azure, settings, told)
    if not seen.answers or any(judging.check_kubeconfig_access(settings, seen)):
        return seen
    try:
        kubeconfig = _kubeconfig(azure, settings, tenant)
    except NotAskedError as error:
        return replace(seen, workloads=Workloads(refusal=f"{error.call}: {error}"))
    controller = settings.mode == "self-hosted"
    return replace(seen, workloads=workloads.read_workloads(kubeconfig, settings.name, controller=controller))


def _found(azure: Azure, settings: ExistingAksSettings, told: Mapping[str, Any]) -> FoundCluster:
    properties = told["properties"]

    def of(*path: str) -> Any:
        value: Any = properties
        for step in path:
            value = (value or {}).get(step)
        return value

    version = properties.get("currentKubernetesVersion") or properties.get("kubernetesVersion") or ""
    return FoundCluster(
        location=str(told["location"]).replace(" ", "").lower(),
        state=properties["provisioningState"],
        stopped=of("powerState", "code") == "Stopped",
        version=".".join(version.split(".")[:2]),
        managed_identity=(told.get("identity") or {}).get("type") not in (None, "None"),
        rbac=properties.get("enableRBAC") is not False,
        provisioning=of("nodeProvisioningProfile", "mode") or "Manual",
        default_pools=(of("nodeProvisioningProfile", "defaultNodePools") or "Auto") == "Auto",
        plugin=of("networkProfile", "networkPlugin") or "",
        overlay=of("networkProfile", "networkPluginMode") == "overlay",
        dataplane=of("networkProfile", "networkDataplane") or "",
        policy=of("networkProfile", "networkPolicy") or "",
        ipv6="IPv6" in (of("networkProfile", "ipFamilies") or ()),
        entra=properties.get("aadProfile") is not None,
        local_accounts=not properties.get("disableLocalAccounts"),
        issuer=(of("oidcIssuerProfile", "issuerURL") if of("oidcIssuerProfile", "enabled") else "") or "",
        workload_identity=bool(of("securityProfile", "workloadIdentity", "enabled")),
        node_group=properties.get("nodeResourceGroup") or "",
        group_locked=of("nodeResourceGroupProfile", "restrictionLevel") == "ReadOnly",
        proxied="yes" if (proxy := properties.get("httpProxyConfig")) and proxy.get("enabled") is not False else "no",
        certified=bool(of("securityProfile", "customCATrustCertificates")),
        subnets=_subnets(azure, settings, pools(told)),
        pools=pools(told),
    )


def _subnets(azure: Azure, settings: ExistingAksSettings, pools: list[FoundPool]) -> list[str] | None:
    """Names of the subnets of the nodes' network; None where AKS has made it, or it is of another subscription."""
    subnet = judging.subnet_of_nodes(settings, pools)
    if not subnet or names_of_network(subnet)[0].lower() != settings.subscription_id:
        return None
    network = azure.find(READS_NETWORKS, network_of(subnet), NETWORK)
    if network is None:
        return None
    return [str(one["name"]).lower() for one in network["properties"].get("subnets") or ()]


def _kubeconfig(azure: Azure, settings: ExistingAksSettings, tenant: str) -> str:
    """As the stack makes it: with local accounts the administrator's own, otherwise kubelogin's."""
    if settings.cluster.local_accounts:
        path = f"{identifier(settings)}/listClusterAdminCredential"
        admin = azure.credentials(_OF_ADMINISTRATORS, path, CONTAINER_SERVICE)
        return aks_administrator(cluster_name=settings.cluster.existing, credentials=_text(admin))
    user = azure.credentials(
        _OF_USERS, f"{identifier(settings)}/listClusterUserCredential", CONTAINER_SERVICE, format="exec"
    )
    return aks_kubeconfig(
        cluster_name=settings.cluster.existing,
        credentials=_text(user),
        login=settings.cluster.kubelogin,
        tenant_id=tenant,
    )


def _text(answer: Mapping[str, Any]) -> str:
    return base64.b64decode(answer["kubeconfigs"][0]["value"]).decode()
