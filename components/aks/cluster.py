"""The AKS cluster: overlay network with Cilium, Entra for people and pods, a tainted system pool over zones.

Azure's own choices are left alone where they are safe: upgrade channels, maintenance windows, add-ons. Nodes for
workloads are Karpenter's, run by AKS (`node_provisioning` Auto) or by the stack.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import pulumi
from pulumi_azure_native import authorization
from pulumi_azure_native import containerservice as aks

from ..documents.aks_addons import advanced_networking
from ..documents.aks_proxy import http_proxy_config, trusted
from ..documents.charts import SYSTEM_TAINT_KEY
from ..documents.kubeconfig import aks as aks_kubeconfig
from ..kubernetes import no_access_warning
from ..naming import AksNames
from ..replacement import Keeper
from ..settings.aks import ClusterSettings, NetworkSettings, NodeProvisioningSettings, SystemNodesSettings
from ..settings.aks_addons import CiliumSettings
from ..settings.proxy import ProxySettings
from .late_roles import retry
from .update_guards import guards

_NO_WAY: Final = (
    "set it to the range that you come from, for one address <address>/32, or name in network.subnetId a subnet of a "
    "network that you reach already; a private cluster stays private"
)


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """Arguments of `Cluster`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Location of the cluster.
        settings: How kubelogin finds who asks matters without local accounts only.
        identity_id: Identity of the control plane, which may join the subnet already.
        subnet_id: The subnet of the system nodes.
        egress: Public addresses by which nodes leave, and come to a public API server, where AKS does not know them.
        network: Ranges of pods, of which each node gets a /24, and of services, whose tenth address is DNS's.
        network_ranges: Those of the virtual network, which no proxy is asked for.
        proxy: Through which nodes and pods get out; both of its addresses are set.
        trusted_certificates: Those of authorities that nodes trust; None for a cluster that never had any.
        provisioning_mode: `Auto` where AKS runs Karpenter, `Manual` otherwise.
        node_provisioning: What AKS brings means nothing with `Manual`.
        system_nodes: The nodes that run what Karpenter needs in order to run; no autoscaler changes their number.
        addon_profiles: AKS's add-ons by its names, as `documents.aks_addons` has them; the others are not touched.
        prometheus: Whether Azure's managed Prometheus collects metrics; what and where to is another resource's.
        cilium: What Azure's Cilium does besides.
        keeper: Keeps the cluster.
        tags: For every resource, and for system nodes.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    settings: ClusterSettings
    identity_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    egress: Sequence[pulumi.Input[str]]
    network: NetworkSettings
    network_ranges: Sequence[str]
    proxy: ProxySettings | None
    trusted_certificates: Sequence[str] | None
    provisioning_mode: Literal["Auto", "Manual"]
    node_provisioning: NodeProvisioningSettings
    system_nodes: SystemNodesSettings
    addon_profiles: Mapping[str, Mapping[str, Any]]
    prometheus: bool
    cilium: CiliumSettings
    keeper: Keeper
    tags: Mapping[str, str]


class Cluster(pulumi.ComponentResource):
    """The cluster, and the ways into it. `kubeconfig` is a secret.

    `node_identity_ids` are what AKS gives each node of its own pools, separated by commas: the kubelet's identity, and
    those of add-ons, whose pods take tokens from their node. `identity_scopes` say where these are, by short labels:
    empty for the node resource group.
    `endpoint` is what nodes are told; the address in `kubeconfig` is the one that AKS gives to users.
    """

    id: pulumi.Output[str]
    name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    issuer: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    node_resource_group: pulumi.Output[str]
    node_identity_ids: pulumi.Output[str]
    kubelet_identity_client_id: pulumi.Output[str]
    kubelet_identity_object_id: pulumi.Output[str]
    identity_scopes: Mapping[str, str] = MappingProxyType({"kubelet": ""})

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Cluster", name, {}, opts)
        cluster = self._control_plane(name, args)
        self.id = cluster.id
        self.name = cluster.name
        # Without a private zone the public name stands for the private address.
        named_privately = not args.settings.public_access_cidrs and args.settings.private_dns_zone != "none"
        self.endpoint = (cluster.private_fqdn if named_privately else cluster.fqdn).apply(
            lambda host: f"https://{host}:443"
        )
        self.issuer = cluster.oidc_issuer_profile.apply(lambda profile: (profile.issuer_url if profile else "") or "")
        self.node_resource_group = cluster.node_resource_group.apply(lambda group: group or "")
        self._addons = cluster.addon_profiles
        kubelet = cluster.identity_profile.apply(lambda profile: (profile or {})["kubeletidentity"])
        switched_on = [addon for addon, profile in args.addon_profiles.items() if profile["enabled"]]
        self.node_identity_ids = pulumi.Output.all(
            *(identity.apply(_resource_id) for identity in (kubelet, *map(self._addon_identity, switched_on)))
        ).apply(lambda known: ",".join(filter(None, known)))
        self.kubelet_identity_client_id = kubelet.apply(lambda identity: identity.client_id or "")
        self.kubelet_identity_object_id = kubelet.apply(lambda identity: identity.object_id or "")
        self.kubeconfig = self._kubeconfig(args, cluster)
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
                "kubeletIdentityObjectId": self.kubelet_identity_object_id,
            }
        )

    def _control_plane(self, name: str, args: ClusterArgs) -> aks.ManagedCluster:
        settings = args.settings
        private = not settings.public_access_cidrs
        return aks.ManagedCluster(
            f"{name}-control-plane",
            resource_name_=args.names.cluster,
            resource_group_name=args.resource_group,
            location=args.location,
            kubernetes_version=settings.version,
            dns_prefix=args.names.dns_prefix,
            node_resource_group=args.names.node_resource_group,
            sku=aks.ManagedClusterSKUArgs(name=aks.ManagedClusterSKUName.BASE, tier=settings.tier),
            # AKS enables and disables the two together; said both ways, for the way back from Premium.
            support_plan=aks.KubernetesSupportPlan.AKS_LONG_TERM_SUPPORT
            if settings.tier == "Premium"
            else aks.KubernetesSupportPlan.KUBERNETES_OFFICIAL,
            identity=aks.ManagedClusterIdentityArgs(
                type=aks.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[args.identity_id]
            ),
            enable_rbac=True,
            disable_local_accounts=not settings.local_accounts,
            aad_profile=aks.ManagedClusterAADProfileArgs(
                managed=True, enable_azure_rbac=True, admin_group_object_ids=settings.admins
            ),
            oidc_issuer_profile=aks.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
            security_profile=_security(args),
            http_proxy_config=_proxy(args),
            api_server_access_profile=_access(args),
            network_profile=_network(args),
            node_provisioning_profile=aks.ManagedClusterNodeProvisioningProfileArgs(
                mode=args.provisioning_mode, default_node_pools=args.node_provisioning.default_node_pools
            ),
            agent_pool_profiles=[_system_pool(args)],
            addon_profiles={
                name: aks.ManagedClusterAddonProfileArgs(**profile) for name, profile in args.addon_profiles.items()
            },
            azure_monitor_profile=aks.ManagedClusterAzureMonitorProfileArgs(
                metrics=aks.ManagedClusterAzureMonitorProfileMetricsArgs(enabled=args.prometheus)
            ),
            tags=args.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=settings.deletion_protection and not args.keeper.allowed,
                hooks=args.keeper.hooks(
                    f"{name}-control-plane",
                    lost="the cluster, with everything that runs in it,",
                    # Where the network is somebody else's, there may be a way into it.
                    before_create=[no_access_warning(f"{name}-no-way", fix=_NO_WAY)]
                    if private and args.network.subnet_id is None
                    else [],
                    before_update=[*guards(name, allow_stranded_nodes=args.node_provisioning.allow_stranded_nodes)],
                    on_error=[retry(f"{name}-late-roles")],
                ),
            ),
        )

    def addon_object_id(self, addon: str) -> pulumi.Output[str]:
        """Object ID of the identity that AKS makes for an add-on, in the node resource group."""
        return self._addon_identity(addon).apply(lambda identity: identity.object_id or "" if identity else "")

    def _addon_identity(self, addon: str) -> pulumi.Output[Any]:
        # At the preview of an update that switches it on, there is none yet.
        return self._addons.apply(lambda profiles: profiles[addon].identity if profiles and addon in profiles else None)

    def _kubeconfig(self, args: ClusterArgs, cluster: aks.ManagedCluster) -> pulumi.Output[str]:
        """With local accounts the administrator's own, which needs no plugin; otherwise kubelogin's."""
        invoke = pulumi.InvokeOutputOptions(parent=self)
        if args.settings.local_accounts:
            admin = aks.list_managed_cluster_admin_credentials_output(
                resource_group_name=args.resource_group, resource_name=cluster.name, opts=invoke
            )
            return pulumi.Output.secret(admin.kubeconfigs.apply(_text))
        user = aks.list_managed_cluster_user_credentials_output(
            resource_group_name=args.resource_group, resource_name=cluster.name, format="exec", opts=invoke
        )
        deployer = authorization.get_client_config_output(opts=invoke)
        return pulumi.Output.secret(
            pulumi.Output.all(credentials=user.kubeconfigs.apply(_text), tenant_id=deployer.tenant_id).apply(
                lambda known: aks_kubeconfig(cluster_name=args.names.cluster, login=args.settings.kubelogin, **known)
            )
        )


def _security(args: ClusterArgs) -> aks.ManagedClusterSecurityProfileArgs:
    return aks.ManagedClusterSecurityProfileArgs(
        workload_identity=aks.ManagedClusterSecurityProfileWorkloadIdentityArgs(enabled=True),
        custom_ca_trust_certificates=None if args.trusted_certificates is None else trusted(args.trusted_certificates),
    )


def _network(args: ClusterArgs) -> aks.ContainerServiceNetworkProfileArgs:
    """Azure CNI's overlay with Cilium."""
    return aks.ContainerServiceNetworkProfileArgs(
        network_plugin=aks.NetworkPlugin.AZURE,
        network_plugin_mode=aks.NetworkPluginMode.OVERLAY,
        network_dataplane=aks.NetworkDataplane.CILIUM,
        network_policy=aks.NetworkPolicy.CILIUM,
        pod_cidr=str(args.network.pod_cidr),
        service_cidr=str(args.network.service_cidr),
        dns_service_ip=str(args.network.service_cidr[10]),
        load_balancer_sku=aks.LoadBalancerSku.STANDARD,
        outbound_type=args.network.outbound_type,
        advanced_networking=aks.AdvancedNetworkingArgs(
            **advanced_networking(hubble=args.cilium.hubble, policies=args.cilium.advanced_policies)
        ),
    )


def _system_pool(args: ClusterArgs) -> aks.ManagedClusterAgentPoolProfileArgs:
    pool = args.system_nodes
    return aks.ManagedClusterAgentPoolProfileArgs(
        name="system",
        mode=aks.AgentPoolMode.SYSTEM,
        type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
        os_type=aks.OSType.LINUX,
        os_sku=pool.os_sku,
        vm_size=pool.vm_size,
        count=pool.count,
        enable_auto_scaling=False,
        availability_zones=[str(zone) for zone in pool.zones],
        os_disk_size_gb=pool.disk_size,
        orchestrator_version=args.settings.version,
        vnet_subnet_id=args.subnet_id,
        node_taints=[f"{SYSTEM_TAINT_KEY}=true:NoSchedule"],
        tags=args.tags,
    )


def _access(args: ClusterArgs) -> aks.ManagedClusterAPIServerAccessProfileArgs:
    """How the API server is reached. Said only where it is asked for: what AKS would do by itself stays unsaid."""
    settings = args.settings
    subnet, zone = settings.api_server_subnet_id, settings.private_dns_zone
    integrated = None if subnet is None else True
    if not settings.public_access_cidrs:
        return aks.ManagedClusterAPIServerAccessProfileArgs(
            enable_private_cluster=True,
            private_dns_zone=None if zone == "system" else zone,
            enable_vnet_integration=integrated,
            subnet_id=subnet,
        )
    return aks.ManagedClusterAPIServerAccessProfileArgs(
        enable_private_cluster=False,
        # Without ranges AKS would let the whole internet in.
        authorized_ip_ranges=[
            *map(str, settings.public_access_cidrs),
            *(pulumi.Output.concat(address, "/32") for address in args.egress),
        ],
        enable_vnet_integration=integrated,
        subnet_id=subnet,
    )


def _proxy(args: ClusterArgs) -> aks.ManagedClusterHTTPProxyConfigArgs | None:
    if args.proxy is None or args.proxy.http is None or args.proxy.https is None:
        return None
    return aks.ManagedClusterHTTPProxyConfigArgs(
        **http_proxy_config(
            http=args.proxy.http,
            https=args.proxy.https,
            no_proxy=args.proxy.no_proxy,
            ranges=args.network_ranges,
            certificates=args.trusted_certificates or (),
        )
    )


def _resource_id(identity: Any) -> str:
    return (identity.resource_id or "") if identity else ""


def _text(kubeconfigs: Sequence[Any]) -> str:
    return base64.b64decode(kubeconfigs[0].value).decode()
