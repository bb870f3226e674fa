"""The configuration of an AKS environment (karpstack:cloud is `azure`), in both modes.

What AKS or Karpenter on AKS cannot do has no key here; where people look for one, the section's `REFUSED` answers
with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from .. import versions
from ..documents import charts, images
from ..documents.kubeconfig import KubeloginMode
from ..naming import RESERVED_AZURE_TAG_PREFIXES, AksNames
from ..problems import refuse
from .aks_addons import AddonsSettings, CiliumSettings
from .proxy import Certificates, ProxySettings
from .sections import (
    CHART_VERSION,
    AccessCidr,
    ClusterCidr,
    MirrorSettings,
    NetworkCidr,
    NodeClassSpecs,
    ResourceSettings,
    Section,
    StackSettings,
    Switches,
    TagValue,
    chart_gates,
    chart_settings,
    chart_version,
    fitting_name,
    kubernetes_version,
    refuse_alike,
    refused_keys,
    separate,
)

_GUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SUBNET_ID: Final = (
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/[^/]+"
    r"/subnets/[^/]+"
)
_ZONE_ID: Final = r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/privateDnsZones/[^/]+"
_WORKSPACE_ID: Final = (
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.OperationalInsights/workspaces/[^/]+"
)
#: AKS's log categories that tell something here. kube-audit holds kube-audit-admin, and every read: many times as much.
LogCategory = Literal[
    "kube-audit-admin",
    "kube-audit",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "cloud-controller-manager",
    "guard",
    "karpenter-events",
]
#: AKS uses these itself, or keeps pods and services off them.
_AKS_RANGES: Final = tuple(
    IPv4Network(cidr) for cidr in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
)
#: Which way nodes leave the network. Of the others AKS takes none here; `NetworkSettings` says why.
OutboundType = Literal["loadBalancer", "userAssignedNATGateway", "userDefinedRouting"]
#: Overlay: each node gets a /24 of the pods' range.
NODE_SHARE_PREFIX: Final = 24
#: Azure keeps five addresses of each subnet.
AZURE_ADDRESSES: Final = 5


def _guid(value: str) -> str:
    if not re.fullmatch(_GUID, value):
        refuse("guid-invalid")
    return value.lower()


def _tag_key(key: str) -> str:
    if key.lower().startswith(RESERVED_AZURE_TAG_PREFIXES):
        refuse("azure-tag-reserved", prefixes=RESERVED_AZURE_TAG_PREFIXES)
    if re.search(r"[<>%&\\?/]", key):
        refuse("azure-tag-character")
    return key


def _tags(tags: dict[str, str]) -> dict[str, str]:
    refuse_alike("tags-equal-for-azure", tags)
    return tags


def _location(location: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+", location):
        refuse("location-form", short=re.sub("[^a-z0-9]", "", location.lower()) or "westus2")
    return location


def is_subnet_id(given: str) -> bool:
    """Whether it is a resource ID of a subnet, in whatever case."""
    return re.fullmatch(_SUBNET_ID, given, re.IGNORECASE) is not None


def network_of(subnet_id: str) -> str:
    """Resource ID of a subnet's virtual network, as it is spelled there."""
    return subnet_id.rsplit("/", 2)[0]


def names_of_network(subnet_id: str) -> tuple[str, str, str]:
    """Subscription, resource group and name of a subnet's virtual network: what Karpenter compares of two IDs."""
    parts = subnet_id.split("/")
    return parts[2], parts[4], parts[8]


Guid = Annotated[str, AfterValidator(_guid)]
Tags = Annotated[
    dict[Annotated[str, StringConstraints(min_length=1, max_length=512), AfterValidator(_tag_key)], TagValue],
    Field(max_length=50),
    AfterValidator(_tags),
]


class NetworkSettings(Section):
    """karpstack:network."""

    REFUSED: ClassVar[Mapping[str, str]] = refused_keys(
        {
            "ipv6-on-aks": "ipFamilies ipFamily ipv6 dualStack podCidrs serviceCidrs",
            "nat-gateway-profile": "natGatewayProfile natGateway",
            "load-balancer-profile": "loadBalancerSku loadBalancerProfile",
            "network-plugin-fixed": "networkPlugin networkPluginMode networkDataplane networkPolicy plugin pluginMode "
            "dataplane policy overlay",
            "pod-share-fixed-on-aks": "podCidrMaskSize",
        }
    )

    vnet_cidr: NetworkCidr = Field(description="range of the virtual network, also of an existing one")
    subnet_cidr: NetworkCidr | None = Field(None, description="range of the nodes' subnet, inside vnetCidr")
    subnet_id: str | None = Field(None, description="resource ID of an existing subnet, instead of subnetCidr")
    pod_cidr: ClusterCidr = Field(description="range of the overlay network, for pods")
    service_cidr: ClusterCidr = Field(description="range of Service addresses")
    outbound_type: OutboundType = Field(
        "loadBalancer",
        description="outbound path of nodes: loadBalancer (of AKS), userAssignedNATGateway (the stack creates it with "
        "subnetCidr; with subnetId, the subnet must have one) or userDefinedRouting (the subnet's route table)",
    )

    @field_validator("outbound_type", mode="before")
    @classmethod
    def _way_for_a_given_network(cls, way: object) -> object:
        known = str(way).lower()
        if known.startswith("managednatgateway"):
            refuse("gateway-of-aks-in-given-network")
        if known in ("none", "block"):
            refuse("no-way-out-on-aks")
        return way

    @field_validator("subnet_cidr")
    @classmethod
    def _inside(cls, subnet: IPv4Network | None, info: ValidationInfo) -> IPv4Network | None:
        vnet: IPv4Network | None = info.data.get("vnet_cidr")
        if subnet is not None and vnet is not None and not subnet.subnet_of(vnet):
            refuse("subnet-outside-vnet", vnet=vnet)
        return subnet

    @field_validator("subnet_id")
    @classmethod
    def _resource_id(cls, subnet_id: str | None) -> str | None:
        if subnet_id is not None and not is_subnet_id(subnet_id):
            refuse("subnet-id-invalid")
        return subnet_id

    @field_validator("pod_cidr")
    @classmethod
    def _shares_fit(cls, pods: IPv4Network) -> IPv4Network:
        if pods.prefixlen >= NODE_SHARE_PREFIX:
            refuse("pod-cidr-of-one-node", node_share_prefix=NODE_SHARE_PREFIX)
        return pods

    @field_validator("service_cidr")
    @classmethod
    def _aks_takes_it(cls, services: IPv4Network) -> IPv4Network:
        if not 12 < services.prefixlen <= 28:
            refuse("pod-cidr-refused-by-aks")
        return services

    @field_validator("vnet_cidr", "pod_cidr", "service_cidr")
    @classmethod
    def _separate(cls, cidr: IPv4Network, info: ValidationInfo) -> IPv4Network:
        for reserved in _AKS_RANGES:
            if cidr.overlaps(reserved):
                refuse("range-kept-by-aks", reserved=reserved, aks_ranges=_AKS_RANGES)
        others = () if info.field_name == "vnet_cidr" else ("vnet_cidr", "pod_cidr")
        return separate(cidr, info, *others)


class ClusterSettings(Section):
    """karpstack:cluster."""

    REFUSED: ClassVar[Mapping[str, str]] = refused_keys(
        {
            "windows-on-aks": "windowsProfile windows windowsNodes",
            "service-principal": "servicePrincipalProfile servicePrincipal clientId clientSecret",
            "disk-encryption-set": "diskEncryptionSetId diskEncryptionSet",
            "certificates-of-cluster": "customCaTrustCertificates customCaTrust caTrust",
            "cluster-stopped": "powerState stopped running stop",
            "proxy-of-cluster": "httpProxyConfig httpProxy proxy",
            "cluster-autoscaler-on-aks": "autoScalerProfile enableAutoScaling clusterAutoscaler",
            "ssh-of-system-nodes": "adminUsername sshPublicKey linuxProfile",
        }
    )

    version: str = Field(description='Kubernetes minor version, in quotes, for example "1.36"')
    tier: Literal["Free", "Standard", "Premium"] = Field(
        "Standard", description="Free, Standard or Premium, which brings Long-Term Support"
    )
    public_access_cidrs: list[AccessCidr] = Field(
        [], max_length=200, description="ranges that may reach the API server from outside; empty: a private cluster"
    )
    api_server_subnet_id: str | None = Field(
        None, description="resource ID of a subnet for the API server, which only AKS may use"
    )
    private_dns_zone: str = Field(
        "system",
        description="DNS zone of a private cluster: system (AKS creates one), none, or the resource ID of yours",
    )
    local_accounts: bool = Field(
        False, description="whether certificates give access to the cluster, in addition to Entra"
    )
    kubelogin: KubeloginMode = Field(
        "azurecli", description="how kubelogin signs in: azurecli, msi, workloadidentity or spn"
    )
    deployer_role: Literal["User", "ServicePrincipal", "existing"] = Field(
        "User",
        description="kind of the deployer, to which the stack assigns the role of a cluster administrator: User or "
        "ServicePrincipal; existing: the deployer already has this role",
    )
    admins: list[Guid] = Field([], description="object IDs of Entra groups that administer the cluster")
    log_workspace_id: str | None = Field(
        None, description="resource ID of the Log Analytics workspace for the control plane's logs"
    )
    log_categories: list[LogCategory] = Field(
        ["kube-audit-admin"], min_length=1, description="which logs: kube-audit-admin, kube-apiserver, guard and others"
    )
    deletion_protection: bool = Field(False, description="true: Pulumi refuses to delete or replace the cluster")

    @field_validator("api_server_subnet_id")
    @classmethod
    def _api_server_subnet(cls, subnet_id: str | None) -> str | None:
        if subnet_id is not None and not is_subnet_id(subnet_id):
            refuse("api-server-subnet-id-invalid")
        return subnet_id

    @field_validator("private_dns_zone")
    @classmethod
    def _zone(cls, zone: str) -> str:
        if zone not in ("system", "none") and not re.fullmatch(_ZONE_ID, zone, re.IGNORECASE):
            refuse("private-dns-zone-invalid")
        return zone

    @property
    def own_dns_zone(self) -> str | None:
        """Resource ID of the zone, where it is none that AKS makes."""
        return None if self.private_dns_zone in ("system", "none") else self.private_dns_zone

    @field_validator("log_workspace_id")
    @classmethod
    def _workspace(cls, workspace_id: str | None) -> str | None:
        if workspace_id is not None and not re.fullmatch(_WORKSPACE_ID, workspace_id, re.IGNORECASE):
            refuse("workspace-id-invalid")
        return workspace_id

    @field_validator("version", mode="before")
    @classmethod
    def _minor_version(cls, version: object) -> object:
        return kubernetes_version(version, "AKS")


class SystemNodesSettings(Section):
    """karpstack:systemNodes."""

    REFUSED: ClassVar[Mapping[str, str]] = refused_keys(
        {
            "autoscaled-system-nodes": "minSize maxSize minCount maxCount desiredSize enableAutoScaling autoscaling",
            "windows-system-nodes": "osType windows",
        }
    )

    vm_size: str = Field("Standard_D4s_v5", description="VM size, like Standard_D4s_v5")
    count: int = Field(2, ge=1, le=1000, description="number of system nodes")
    zones: list[Literal[1, 2, 3]] = Field([1, 2, 3], description="zones of the system nodes; [] if the region has none")
    # Of the API version that is pinned: Ubuntu2404 came later, and is what Ubuntu means from Kubernetes 1.35 on.
    os_sku: Literal["Ubuntu", "Ubuntu2204", "AzureLinux"] = Field(
        "Ubuntu", validation_alias="osSKU", description="Ubuntu, Ubuntu2204 or AzureLinux"
    )
    disk_size: int = Field(128, ge=30, le=2048, description="GiB of each system node's disk, 30 to 2048")


class NodeProvisioningSettings(Section):
    """karpstack:nodeProvisioning."""

    default_node_pools: Literal["Auto", "None"] = Field(
        "Auto",
        description="Auto: AKS creates the NodePools default and system-surge; None: only this stack's NodePools exist",
    )
    allow_stranded_nodes: bool = Field(
        False,
        description="true lets each `up` disable node auto provisioning although its nodes may still exist",
    )


class FeatureGates(Switches):
    """karpstack:karpenter.featureGates; the defaults are the chart's."""

    reserved_capacity: bool = False
    spot_to_spot_consolidation: bool = False
    node_repair: bool = False
    node_overlay: bool = False
    static_capacity: bool = False


class KarpenterSettings(Section):
    """karpstack:karpenter, self-hosted only."""

    REFUSED: ClassVar[Mapping[str, str]] = refused_keys(
        {
            "controller-identity-fixed": "identity clientSecret servicePrincipal",
            "interruption-queue-on-azure": "interruptionQueue",
            "bootstrap-token-given": "bootstrapToken kubeletBootstrapToken",
            "disk-encryption-set-of-controller": "diskEncryptionSetId diskEncryptionSet",
        }
    )

    chart_version: str = Field(versions.KARPENTER_AZURE, pattern=CHART_VERSION, description="version of both charts")
    ssh_public_key: str = Field(
        description="SSH public key for every node, for example 'ssh-rsa AAAA...'; Azure documents only RSA keys"
    )
    bootstrap_token_generation: int = Field(1, ge=1, description="raise it by one to have a new bootstrap token")
    bootstrap_token_days: int = Field(365, ge=1, le=3650, description="days for which a new bootstrap token is valid")
    replicas: int = Field(2, ge=1, description="number of controllers; one leads, each needs its own system node")
    feature_gates: FeatureGates = Field(FeatureGates(), description="switches of the chart's settings.featureGates")
    settings: dict[str, str | bool | int | float] = Field({}, description="further keys of the chart's settings")
    resources: ResourceSettings = Field(ResourceSettings(), description="requests and limits of the controller")

    @property
    def chart_gates(self) -> dict[str, bool]:
        """Every feature gate that the chart has, as it calls them."""
        return self.feature_gates.without(charts.karpenter_azure_lacks_gates(self.chart_version))

    @field_validator("ssh_public_key")
    @classmethod
    def _public(cls, key: str) -> str:
        if not re.fullmatch(r"(ssh-rsa|ssh-ed25519) [A-Za-z0-9+/]{50,}={0,3}( [^\n]*)?", key.strip()):
            refuse("ssh-key-invalid")
        return key.strip()

    @field_validator("chart_version")
    @classmethod
    def _its_chart_is_known(cls, version: str) -> str:
        return chart_version(version, versions.KARPENTER_AZURE_OLDEST, versions.KARPENTER_AZURE)

    @field_validator("feature_gates")
    @classmethod
    def _chart_has_them(cls, gates: FeatureGates, info: ValidationInfo) -> FeatureGates:
        version: str = info.data.get("chart_version", versions.KARPENTER_AZURE)
        return chart_gates(gates, charts.karpenter_azure_lacks_gates(version), version, versions.KARPENTER_AZURE)

    @field_validator("settings")
    @classmethod
    def _chart_knows_them(
        cls, settings: dict[str, str | bool | int | float], info: ValidationInfo
    ) -> dict[str, str | bool | int | float]:
        version: str = info.data.get("chart_version", versions.KARPENTER_AZURE)
        return chart_settings(settings, charts.karpenter_azure_settings(version), version)


class ImagesSettings(MirrorSettings):
    """karpstack:images on AKS, in mode self-hosted."""

    REFUSED: ClassVar[Mapping[str, str]] = refused_keys(
        {
            "node-mirrors-on-aks": "nodeMirrors",
        }
    )
    REGISTRIES: ClassVar[Sequence[str]] = images.registries(images.KARPENTER_AZURE)


class AksStackSettings(StackSettings):
    """What an environment on AKS says whether its cluster is there already or not.

    `karpenter` is there exactly in mode self-hosted; the checks between sections see to it.
    """

    region: Annotated[str, AfterValidator(_location)] = Field(
        validation_alias="azure-native:location", description="the Azure location, for example westus2"
    )
    subscription_id: Guid = Field(
        validation_alias="azure-native:subscriptionId",
        description="ID of the subscription; without it Karpenter's controller stops at start-up, again and again",
    )
    cloud: Literal["azure"] = Field("azure", description="azure")
    mode: Literal["nap", "self-hosted"] = Field(description="nap (AKS runs Karpenter) or self-hosted")
    tags: Tags = Field({}, description="tags of every resource")
    karpenter: KarpenterSettings | None = Field(None, description="the controller, in mode self-hosted")
    images: ImagesSettings = Field(ImagesSettings(), description="where images come from, in mode self-hosted")
    node_classes: NodeClassSpecs = Field(description="AKSNodeClass specs by name")

    @field_validator("name")
    @classmethod
    def _name_fits(cls, name: str) -> str:
        return fitting_name(name, AksNames(name), "Azure")


class AksSettings(AksStackSettings):
    """The whole configuration, and the arguments of `aks.Environment`; `aks_existing` has a cluster that is there."""

    network: NetworkSettings = Field(description="address ranges")
    cluster: ClusterSettings = Field(description="the control plane")
    system_nodes: SystemNodesSettings = Field(SystemNodesSettings(), description="the system pool")
    node_provisioning: NodeProvisioningSettings = Field(
        NodeProvisioningSettings(), description="node auto provisioning"
    )
    cilium: CiliumSettings = Field(CiliumSettings(), description="optional features of Azure's Cilium")
    addons: AddonsSettings = Field(AddonsSettings(), description="optional add-ons")
    proxy: ProxySettings | None = Field(None, description="HTTP proxy of nodes and pods, in mode nap")
    trusted_certificates: Certificates = Field(
        [],
        description="certificates of authorities, in PEM, that nodes trust in addition to the public ones, in mode nap",
    )

    @property
    def further_subnet_ids(self) -> list[str]:
        """Resource IDs of the subnets that node classes name beside the cluster's own, each once."""
        own = (self.network.subnet_id or "").lower()
        named = [spec["vnetSubnetID"] for spec in self.node_classes.values() if spec.get("vnetSubnetID")]
        return list({subnet.lower(): subnet for subnet in named if subnet.lower() != own}.values())

    @property
    def existing_subnet_ids(self) -> list[str]:
        """Resource IDs of all subnets that are there, also the API server's; none where the stack makes one."""
        own, api_server = self.network.subnet_id, self.cluster.api_server_subnet_id
        return [] if own is None else [own, *self.further_subnet_ids, *([api_server] if api_server else [])]
