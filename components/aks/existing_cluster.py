"""An AKS cluster that is there: looked at before anything is made, and left as it is.

Azure and the cluster are asked by calls that wait for their answers, at each preview and `up`: what is wrong is refused
while nothing has been created. Nothing here makes a resource.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi
from pulumi_azure_native import authorization, network
from pulumi_azure_native import containerservice as aks

from ..documents.kubeconfig import aks as aks_kubeconfig
from ..problems import warnings_only
from ..settings import ExistingAksSettings
from ..settings import existing_aks_cluster as judged
from ..settings.aks import names_of_network
from ..settings.existing_aks_cluster import FoundCluster, FoundPool
from ..workloads import aks as existing_workloads
from .existing_network import get_if_exists


@dataclass(frozen=True, kw_only=True)
class ExistingClusterArgs:
    """Arguments of `ExistingCluster`.

    Attributes:
        settings: The stack's.
    """

    settings: ExistingAksSettings


class ExistingCluster(pulumi.ComponentResource):
    """The cluster.

    Attributes:
        id, name, endpoint, issuer, kubeconfig, node_resource_group, node_identity_ids, kubelet_identity_client_id: As
            `Cluster` has them.
        subnet_id, subnets, vnet_guid: As `Network` has them; empty where AKS has made the network, or nobody could ask.
        identity_scopes: As `Cluster` has them.
        found: What was found.
    """

    id: pulumi.Output[str]
    name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    issuer: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    node_resource_group: pulumi.Output[str]
    node_identity_ids: pulumi.Output[str]
    kubelet_identity_client_id: pulumi.Output[str]
    identity_scopes: dict[str, str]
    subnet_id: str
    subnets: Mapping[str, str]
    vnet_guid: str
    found: FoundCluster

    def __init__(self, name: str, args: ExistingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:ExistingCluster", name, {}, opts)
        settings = args.settings
        ask = pulumi.InvokeOptions(parent=self)
        cluster = settings.cluster
        seen = get_if_exists(
            lambda: aks.get_managed_cluster(
                resource_group_name=cluster.resource_group, resource_name=cluster.existing, opts=ask
            )
        )
        if seen is None:
            raise judged.missing(settings)
        pools = [_pool(one) for one in seen.agent_pool_profiles or []]
        self.subnet_id = judged.subnet_of_nodes(settings, pools)
        vnet = _network(self.subnet_id, settings.subscription_id, ask)
        self.vnet_guid = str(vnet.resource_guid or "") if vnet else ""
        found = _found(seen, pools, [str(one.name).lower() for one in vnet.subnets or []] if vnet else None)
        kubeconfig = ""
        if found.answers and not any(judged.check_kubeconfig_access(settings, found)):
            kubeconfig = _kubeconfig(settings, seen.name, ask)
            workloads = existing_workloads.read_workloads(
                kubeconfig, settings.name, controller=settings.mode == "self-hosted"
            )
            found = replace(found, workloads=workloads)
        for doubt in warnings_only(judged.problems(settings, found)):
            pulumi.log.warn(str(doubt), self)

        kubelet = (seen.identity_profile or {}).get("kubeletidentity")
        kubelet_id = (kubelet.resource_id if kubelet else "") or ""
        is_foreign = f"/resourcegroups/{found.node_group}/".lower() not in kubelet_id.lower()
        of_addons = _addon_identities(seen)
        self.identity_scopes = {"kubelet": kubelet_id if is_foreign else ""}
        if is_foreign and of_addons:
            self.identity_scopes["addons"] = ""
        self.subnets = {"subnet": self.subnet_id} | {
            f"subnet-{one.rpartition('/')[2].lower()}": one
            for spec in settings.node_classes.values()
            if (one := str(spec.get("vnetSubnetID") or "")) and one.lower() != self.subnet_id.lower()
        }
        self.found = found
        self.id = pulumi.Output.from_input(seen.id)
        self.name = pulumi.Output.from_input(seen.name)
        self.endpoint = pulumi.Output.from_input(f"https://{seen.private_fqdn or seen.fqdn}:443")
        self.issuer = pulumi.Output.from_input(found.issuer)
        self.kubeconfig = pulumi.Output.secret(kubeconfig)
        self.node_resource_group = pulumi.Output.from_input(found.node_group)
        self.node_identity_ids = pulumi.Output.from_input(",".join(filter(None, (kubelet_id, *of_addons))))
        self.kubelet_identity_client_id = pulumi.Output.from_input((kubelet.client_id if kubelet else "") or "")
        self.register_outputs(
            {
                "id": self.id,
                "name": self.name,
                "endpoint": self.endpoint,
                "issuer": self.issuer,
                "kubeconfig": self.kubeconfig,
                "nodeResourceGroup": self.node_resource_group,
                "nodeIdentityIds": self.node_identity_ids,
                "kubeletIdentityClientId": self.kubelet_identity_client_id,
            }
        )


def _found(seen: aks.GetManagedClusterResult, pools: list[FoundPool], subnets: list[str] | None) -> FoundCluster:
    profile, provisioning = seen.network_profile, seen.node_provisioning_profile
    issuer, security, group = seen.oidc_issuer_profile, seen.security_profile, seen.node_resource_group_profile
    identity = seen.identity.type if seen.identity else None
    return FoundCluster(
        location=seen.location.replace(" ", "").lower(),
        state=seen.provisioning_state,
        stopped=seen.power_state is not None and seen.power_state.code == "Stopped",
        version=".".join((seen.current_kubernetes_version or seen.kubernetes_version or "").split(".")[:2]),
        managed_identity=identity not in (None, "None"),
        rbac=seen.enable_rbac is not False,
        provisioning=(provisioning.mode if provisioning else None) or "Manual",
        default_pools=((provisioning.default_node_pools if provisioning else None) or "Auto") == "Auto",
        plugin=(profile.network_plugin if profile else None) or "",
        overlay=profile is not None and profile.network_plugin_mode == "overlay",
        dataplane=(profile.network_dataplane if profile else None) or "",
        policy=(profile.network_policy if profile else None) or "",
        ipv6="IPv6" in ((profile.ip_families if profile else None) or []),
        entra=seen.aad_profile is not None,
        local_accounts=not seen.disable_local_accounts,
        issuer=(issuer.issuer_url if issuer and issuer.enabled else None) or "",
        workload_identity=bool(security and security.workload_identity and security.workload_identity.enabled),
        node_group=seen.node_resource_group or "",
        # Of the SDK's version of the API, which has no `enabled`, one that is switched off looks the same.
        proxied="no" if seen.http_proxy_config is None else "unknown",
        certified=bool(security and security.custom_ca_trust_certificates),
        group_locked=group is not None and group.restriction_level == "ReadOnly",
        subnets=subnets,
        pools=pools,
    )


def _pool(profile: Any) -> FoundPool:
    return FoundPool(
        name=profile.name,
        mode=profile.mode or "User",
        windows=profile.os_type == "Windows",
        autoscaled=bool(profile.enable_auto_scaling),
        subnet_id=profile.vnet_subnet_id or "",
        pod_subnet=bool(profile.pod_subnet_id),
    )


def _addon_identities(seen: aks.GetManagedClusterResult) -> list[str]:
    """Resource IDs of those that AKS has made for the add-ons that are on; the pools' nodes carry them."""
    on = [profile for profile in (seen.addon_profiles or {}).values() if profile.enabled and profile.identity]
    return sorted(profile.identity.resource_id or "" for profile in on)


def _network(subnet_id: str, subscription_id: str, ask: pulumi.InvokeOptions) -> network.GetVirtualNetworkResult | None:
    """The network of a subnet; None without one, or where it is of another subscription than this provider's."""
    if not subnet_id:
        return None
    subscription, group, name = names_of_network(subnet_id)
    if subscription.lower() != subscription_id:
        return None
    return get_if_exists(
        lambda: network.get_virtual_network(resource_group_name=group, virtual_network_name=name, opts=ask)
    )


def _kubeconfig(settings: ExistingAksSettings, name: str, ask: pulumi.InvokeOptions) -> str:
    """With local accounts the administrator's own, which needs no plugin; otherwise kubelogin's."""
    named: Mapping[str, Any] = {"resource_group_name": settings.cluster.resource_group, "resource_name": name}
    if settings.cluster.local_accounts:
        admin = aks.list_managed_cluster_admin_credentials(**named, opts=ask)
        return _text(admin.kubeconfigs)
    user = aks.list_managed_cluster_user_credentials(**named, format="exec", opts=ask)
    return aks_kubeconfig(
        cluster_name=name,
        credentials=_text(user.kubeconfigs),
        login=settings.cluster.kubelogin,
        tenant_id=authorization.get_client_config(opts=ask).tenant_id,
    )


def _text(kubeconfigs: Any) -> str:
    return base64.b64decode(kubeconfigs[0].value).decode()
