"""The AKS cluster: overlay network with Cilium, Entra for people and pods, a tainted system pool over zones.

Azure's own choices are left alone where they are safe: upgrade channels, maintenance windows, add-ons. Nodes for
workloads are Karpenter's, run by AKS (`node_provisioning` Auto) or by the stack.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Literal

import pulumi
from pulumi_azure_native import containerservice as aks

from ..documents.charts import SYSTEM_TAINT_KEY
from ..documents.kubeconfig import KubeloginMode
from ..documents.kubeconfig import aks as aks_kubeconfig
from ..naming import AksNames
from .provisioning_guard import guard


@dataclass(frozen=True, kw_only=True)
class SystemPool:
    """The nodes that run what Karpenter needs in order to run.

    Attributes:
        vm_size: For example `Standard_D4s_v5`.
        count: Number of nodes; no autoscaler changes it.
        zones: Zones to spread over; empty in a region without zones.
        os_sku: Image family.
        disk_size: GiB of each disk.
    """

    vm_size: str = "Standard_D4s_v5"
    count: int = 2
    zones: Sequence[int] = (1, 2, 3)
    os_sku: str = "Ubuntu"
    disk_size: int = 128


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """Arguments of `Cluster`.

    Attributes:
        names: Physical names.
        resource_group: Name of the stack's resource group.
        location: Location of the cluster.
        version: Kubernetes minor version, for example `1.36`.
        tier: `Free`, `Standard` or `Premium`.
        identity_id: Identity of the control plane, which may join the subnet already.
        subnet_id: The subnet of nodes.
        pod_cidr: Range of the overlay; each node gets a /24 of it.
        service_cidr: Range of service addresses; its tenth is DNS's.
        public_access_cidrs: Who may reach the API server from outside; empty makes a private cluster.
        local_accounts: Whether a certificate opens the cluster too.
        kubelogin: How kubelogin finds who asks; without local accounts.
        admins: Object IDs of Entra groups.
        node_provisioning: `Auto` where AKS runs Karpenter, `Manual` otherwise.
        default_node_pools: `Auto` or `None`: whether AKS brings NodePools; means nothing with `Manual`.
        allow_stranded_nodes: Lets a change of the two above pass.
        system_pool: The system nodes.
        tags: For every resource, and for system nodes.
    """

    names: AksNames
    resource_group: pulumi.Input[str]
    location: str
    version: str
    tier: str = "Standard"
    identity_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    pod_cidr: str
    service_cidr: str
    public_access_cidrs: Sequence[str] = ()
    local_accounts: bool = False
    kubelogin: KubeloginMode = "azurecli"
    admins: Sequence[str] = ()
    node_provisioning: Literal["Auto", "Manual"]
    default_node_pools: Literal["Auto", "None"] = "Auto"
    allow_stranded_nodes: bool = False
    system_pool: SystemPool
    tags: Mapping[str, str]


class Cluster(pulumi.ComponentResource):
    """The cluster, and the ways into it. `kubeconfig` is a secret.

    `endpoint` is what nodes are told; the address in `kubeconfig` is the one that AKS gives to users.
    """

    name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    issuer: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    node_resource_group: pulumi.Output[str]
    kubelet_identity_id: pulumi.Output[str]
    kubelet_identity_client_id: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:aks:Cluster", name, {}, opts)
        private = not args.public_access_cidrs
        cluster = aks.ManagedCluster(
            f"{name}-control-plane",
            resource_name_=args.names.cluster,
            resource_group_name=args.resource_group,
            location=args.location,
            kubernetes_version=args.version,
            dns_prefix=args.names.dns_prefix,
            node_resource_group=args.names.node_resource_group,
            sku=aks.ManagedClusterSKUArgs(name=aks.ManagedClusterSKUName.BASE, tier=args.tier),
            identity=aks.ManagedClusterIdentityArgs(
                type=aks.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[args.identity_id]
            ),
            enable_rbac=True,
            disable_local_accounts=not args.local_accounts,
            aad_profile=aks.ManagedClusterAADProfileArgs(
                managed=True, enable_azure_rbac=True, admin_group_object_ids=list(args.admins)
            ),
            oidc_issuer_profile=aks.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
            security_profile=aks.ManagedClusterSecurityProfileArgs(
                workload_identity=aks.ManagedClusterSecurityProfileWorkloadIdentityArgs(enabled=True)
            ),
            # Without ranges AKS would let the whole internet in.
            api_server_access_profile=aks.ManagedClusterAPIServerAccessProfileArgs(enable_private_cluster=True)
            if private
            else aks.ManagedClusterAPIServerAccessProfileArgs(
                enable_private_cluster=False, authorized_ip_ranges=list(args.public_access_cidrs)
            ),
            network_profile=aks.ContainerServiceNetworkProfileArgs(
                network_plugin=aks.NetworkPlugin.AZURE,
                network_plugin_mode=aks.NetworkPluginMode.OVERLAY,
                network_dataplane=aks.NetworkDataplane.CILIUM,
                network_policy=aks.NetworkPolicy.CILIUM,
                pod_cidr=args.pod_cidr,
                service_cidr=args.service_cidr,
                dns_service_ip=str(IPv4Network(args.service_cidr)[10]),
                load_balancer_sku=aks.LoadBalancerSku.STANDARD,
                outbound_type=aks.OutboundType.LOAD_BALANCER,
            ),
            node_provisioning_profile=aks.ManagedClusterNodeProvisioningProfileArgs(
                mode=args.node_provisioning, default_node_pools=args.default_node_pools
            ),
            agent_pool_profiles=[
                aks.ManagedClusterAgentPoolProfileArgs(
                    name="system",
                    mode=aks.AgentPoolMode.SYSTEM,
                    type=aks.AgentPoolType.VIRTUAL_MACHINE_SCALE_SETS,
                    os_type=aks.OSType.LINUX,
                    os_sku=args.system_pool.os_sku,
                    vm_size=args.system_pool.vm_size,
                    count=args.system_pool.count,
                    enable_auto_scaling=False,
                    availability_zones=[str(zone) for zone in args.system_pool.zones],
                    os_disk_size_gb=args.system_pool.disk_size,
                    orchestrator_version=args.version,
                    vnet_subnet_id=args.subnet_id,
                    node_taints=[f"{SYSTEM_TAINT_KEY}=true:NoSchedule"],
                    tags=args.tags,
                )
            ],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, hooks=None if args.allow_stranded_nodes else guard()),
        )
        self.name = cluster.name
        self.endpoint = (cluster.private_fqdn if private else cluster.fqdn).apply(lambda host: f"https://{host}:443")
        self.issuer = cluster.oidc_issuer_profile.apply(lambda profile: (profile.issuer_url if profile else "") or "")
        self.node_resource_group = cluster.node_resource_group.apply(lambda group: group or "")
        kubelet = cluster.identity_profile.apply(lambda profile: (profile or {})["kubeletidentity"])
        self.kubelet_identity_id = kubelet.apply(lambda identity: identity.resource_id or "")
        self.kubelet_identity_client_id = kubelet.apply(lambda identity: identity.client_id or "")
        self.kubeconfig = self._kubeconfig(args, cluster)
        self.register_outputs(
            {
                "name": self.name,
                "endpoint": self.endpoint,
                "issuer": self.issuer,
                "kubeconfig": self.kubeconfig,
                "nodeResourceGroup": self.node_resource_group,
                "kubeletIdentityId": self.kubelet_identity_id,
                "kubeletIdentityClientId": self.kubelet_identity_client_id,
            }
        )

    def _kubeconfig(self, args: ClusterArgs, cluster: aks.ManagedCluster) -> pulumi.Output[str]:
        """With local accounts the administrator's own, which needs no plugin; otherwise kubelogin's."""
        invoke = pulumi.InvokeOutputOptions(parent=self)
        if args.local_accounts:
            admin = aks.list_managed_cluster_admin_credentials_output(
                resource_group_name=args.resource_group, resource_name=cluster.name, opts=invoke
            )
            return pulumi.Output.secret(admin.kubeconfigs.apply(_text))
        user = aks.list_managed_cluster_user_credentials_output(
            resource_group_name=args.resource_group, resource_name=cluster.name, format="exec", opts=invoke
        )
        return pulumi.Output.secret(
            user.kubeconfigs.apply(
                lambda kubeconfigs: aks_kubeconfig(
                    cluster_name=args.names.cluster, credentials=_text(kubeconfigs), login=args.kubelogin
                )
            )
        )


def _text(kubeconfigs: Sequence[Any]) -> str:
    return base64.b64decode(kubeconfigs[0].value).decode()
