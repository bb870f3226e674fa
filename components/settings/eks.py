"""The configuration of an EKS environment (karpstack:cloud is `aws`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from .. import versions
from ..documents import charts, endpoints, images, subnets
from ..documents.endpoints import EndpointService
from ..naming import RESERVED_TAG_PREFIXES, EksNames, principal_label
from ..problems import refuse
from .proxy import Certificates, ProxySettings
from .sections import (
    CHART_VERSION,
    WORLD,
    AccessCidr,
    Cidr,
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
    mirror,
    refuse_alike,
    separate,
)

_PRIVATE_RANGES: Final = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


#: What IAM takes in tags beside letters and digits ([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*).
_TAG_SIGNS: Final = " _.:/=+-@"
_MOST_TAGS: Final = 40


def _tag_key(key: str) -> str:
    if key.startswith(RESERVED_TAG_PREFIXES):
        refuse("aws-tag-reserved", reserved_tag_prefixes=RESERVED_TAG_PREFIXES)
    return key


def _tag_text(text: str) -> str:
    if wrong := sorted({each for each in text if not (each.isalpha() or each.isnumeric() or each in _TAG_SIGNS)}):
        refuse("iam-tag-character", wrong=" ".join(wrong), signs=_TAG_SIGNS.strip())
    return text


def _tags(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        refuse("too-many-tags", tags=len(tags), most_tags=_MOST_TAGS)
    refuse_alike("tags-equal-for-iam", tags)
    return tags


def _principal(arn: str) -> str:
    if not re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/[\w+=,.@/-]+", arn):
        refuse("principal-invalid")
    return arn


def _not_everybody(network: IPv4Network) -> IPv4Network:
    if network.prefixlen < WORLD:
        refuse("api-server-open-to-networks")
    return network


def _id_of(prefix: str, kind: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(rf"{prefix}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", value):
            refuse("aws-id-invalid", kind=kind, prefix=prefix)
        return value

    return check


def pod_shares(mask: int, pods: IPv4Network | None) -> int:
    """A prefix length of nodes' shares of a range for pods, where that is known."""
    if not 16 <= mask <= 28:
        refuse("pod-share-out-of-range", many="far more" if mask < 16 else "far fewer")
    if pods is not None and mask <= pods.prefixlen:
        refuse("pod-share-too-large", pods=pods, prefixlen=pods.prefixlen)
    return mask


def _registry(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.[a-z]+(:[0-9]+)?|localhost(:[0-9]+)?", name):
        refuse("registry-invalid")
    if name in ("index.docker.io", "hub.docker.com"):
        refuse("registry-alias")
    return name


def _open_mirror(prefix: str) -> str:
    if re.match(r"[0-9]+\.dkr[.-]ecr[.-]", prefix):
        refuse("node-mirror-needs-login")
    return mirror(prefix)


#: EKS's add-ons that an environment has.
AddonName = Literal["coredns", "eks-pod-identity-agent", "aws-ebs-csi-driver"]
#: Numbers of days that CloudWatch knows.
LogRetentionDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096]
#: How the controller's service account gets its role.
Identity = Literal["pod-identity", "irsa"]
VpcId = Annotated[str, AfterValidator(_id_of("vpc", "a VPC"))]
SubnetId = Annotated[str, AfterValidator(_id_of("subnet", "a subnet"))]
SecurityGroupId = Annotated[str, AfterValidator(_id_of("sg", "a security group"))]
Tags = Annotated[
    dict[
        Annotated[
            str, StringConstraints(min_length=1, max_length=128), AfterValidator(_tag_key), AfterValidator(_tag_text)
        ],
        Annotated[TagValue, AfterValidator(_tag_text)],
    ],
    AfterValidator(_tags),
]


class AssumedRole(Section):
    """One of aws:assumeRoles, of which `aws eks get-token` must be able to take the same."""

    REFUSED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("externalid", "policy", "policyarns", "sourceidentity", "tags", "transitivetagkeys"),
        "role-option-unknown-to-get-token",
    )

    role_arn: str = Field(description="ARN of the role")
    session_name: str = Field("", description="name of the session, for the provider only")
    duration: str = Field("", description="duration of the session, for the provider only")


class NetworkSettings(Section):
    """karpstack:network."""

    vpc_id: VpcId | None = Field(None, description="ID of an existing VPC, instead of one of the stack's own")
    vpc_cidr: NetworkCidr = Field(description="range of the VPC, also of an existing one; for nodes, not for pods")
    pod_cidr: ClusterCidr = Field(description="range of the overlay network, for pods")
    pod_cidr_mask_size: int = Field(24, description="prefix length of each node's share of podCidr")
    service_cidr: Cidr = Field(description="range of Service addresses")
    zones: int | list[str] = Field(3, description="number of zones, 2 to 6, or a list of their names")
    nat_gateways: Literal["single", "per-zone", "none"] = Field(
        "single", description="single (cheap), per-zone, or none: no outbound access, so endpoints are needed"
    )
    endpoints: bool | list[EndpointService] = Field(
        False,
        description="VPC endpoints: true for those that the stack needs, or a list of services, for example [ecr.api]",
    )
    flow_log_retention_days: Literal[0, LogRetentionDays] = Field(
        0, description="days to keep the VPC's flow logs; 0: no flow logs"
    )
    subnet_ids: list[SubnetId] = Field([], description="IDs of subnets of the existing VPC for the nodes")
    subnet_tags: dict[str, str] = Field({}, description="tags of these subnets, instead of their IDs")
    tag_subnets: bool = Field(False, description="whether the subnets of subnetIds get Karpenter's discovery tag")
    control_plane_subnet_ids: list[SubnetId] = Field(
        [], description="IDs of subnets for the control plane's interfaces; those of the nodes if empty"
    )
    node_security_group_ids: list[SecurityGroupId] = Field(
        [], description="IDs of security groups for all nodes, in addition to the cluster's own"
    )

    @field_validator("vpc_cidr")
    @classmethod
    def _subnets_fit(cls, vpc: IPv4Network, info: ValidationInfo) -> IPv4Network:
        if (
            info.data.get("vpc_id") is None
            and not subnets.LARGEST_VPC_PREFIX <= vpc.prefixlen <= subnets.SMALLEST_VPC_PREFIX
        ):
            refuse(
                "vpc-size",
                prefixlen=vpc.prefixlen,
                largest_vpc_prefix=subnets.LARGEST_VPC_PREFIX,
                smallest_vpc_prefix=subnets.SMALLEST_VPC_PREFIX,
            )
        return vpc

    @field_validator("subnet_ids", "control_plane_subnet_ids", "node_security_group_ids")
    @classmethod
    def _each_once(cls, ids: list[str]) -> list[str]:
        if repeated := sorted(one for one, times in Counter(ids).items() if times > 1):
            refuse("names-twice", repeated=repeated)
        return ids

    @property
    def isolated(self) -> bool:
        """Whether nothing leads out of the stack's own VPC."""
        return self.vpc_id is None and self.nat_gateways == "none"

    @field_validator("endpoints")
    @classmethod
    def _each_service_once(cls, services: bool | list[EndpointService]) -> bool | list[EndpointService]:
        if isinstance(services, list) and (
            repeated := sorted(one for one, times in Counter(services).items() if times > 1)
        ):
            refuse("endpoints-twice", repeated=repeated)
        return services

    @field_validator("pod_cidr_mask_size")
    @classmethod
    def _shares_fit(cls, mask: int, info: ValidationInfo) -> int:
        return pod_shares(mask, info.data.get("pod_cidr"))

    @field_validator("service_cidr")
    @classmethod
    def _eks_takes_it(cls, services: IPv4Network) -> IPv4Network:
        if not (12 <= services.prefixlen <= 24 and any(map(services.subnet_of, _PRIVATE_RANGES))):
            refuse("service-cidr-refused-by-eks")
        return services

    @field_validator("pod_cidr", "service_cidr")
    @classmethod
    def _separate(cls, cidr: IPv4Network, info: ValidationInfo) -> IPv4Network:
        return separate(cidr, info, "vpc_cidr", "pod_cidr")

    @field_validator("zones", mode="before")
    @classmethod
    def _zones_fit(cls, zones: object) -> object:
        if isinstance(zones, list):
            count = len(zones)
            if len(set(map(str, zones))) < count:
                refuse("zones-twice")
        elif isinstance(zones, int):
            count = zones
        else:
            refuse("zones-form", max_zones=subnets.MAX_ZONES)
        if not 2 <= count <= subnets.MAX_ZONES:
            refuse("zones-count", max_zones=subnets.MAX_ZONES)
        return zones


class ClusterSettings(Section):
    """karpstack:cluster."""

    version: str = Field(description='Kubernetes minor version, in quotes, for example "1.36"')
    # EKS User Guide, service-quotas: public endpoint access CIDR ranges per cluster, not adjustable.
    public_access_cidrs: list[AccessCidr] = Field(
        [], max_length=40, description="ranges that may reach the API server from outside; empty: none"
    )
    private_access_cidrs: list[Annotated[NetworkCidr, AfterValidator(_not_everybody)]] = Field(
        [], max_length=60, description="ranges that may reach the API server through the VPC, in addition to its nodes"
    )
    admins: list[Annotated[str, AfterValidator(_principal)]] = Field(
        [], description="ARNs of IAM roles and users that administer the cluster, except the deployer"
    )
    log_types: list[Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]] = Field(
        ["api", "audit", "authenticator", "controllerManager", "scheduler"], description="control plane logs to keep"
    )
    log_retention_days: LogRetentionDays = Field(30, description="days to keep control plane logs")
    addon_versions: dict[AddonName, Annotated[str, StringConstraints(pattern=r"^v\d+\.\d+\.\d+-[\w.-]+$")]] = Field(
        {},
        description="versions of EKS's add-ons by name, for example coredns: v1.13.2-eksbuild.1; for others, EKS's "
        "default for the cluster's version",
    )
    support_type: Literal["standard", "extended"] = Field(
        "extended",
        description="standard: EKS upgrades the cluster when standard support of its version ends; extended: it stays, "
        "at six times the price",
    )
    deletion_protection: bool = Field(False, description="true: Pulumi and EKS refuse to delete the cluster")

    @field_validator("version", mode="before")
    @classmethod
    def _minor_version(cls, version: object) -> object:
        return kubernetes_version(version, "EKS")

    @field_validator("admins")
    @classmethod
    def _once(cls, admins: list[str]) -> list[str]:
        if repeated := sorted(admin for admin, times in Counter(admins).items() if times > 1):
            refuse("access-entries-twice", repeated=repeated)
        for label, times in Counter(map(principal_label, admins)).items():
            if times > 1:
                refuse("access-entries-alike", alike=[admin for admin in admins if principal_label(admin) == label])
        return admins


class SystemNodesSettings(Section):
    """karpstack:systemNodes."""

    instance_type: str = Field("m5.large", description="instance type of the system nodes")
    ami_type: Literal["AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD"] = Field(
        "AL2023_x86_64_STANDARD", description="image of the system nodes; fits the instance type's architecture"
    )
    release_version: str = Field(
        "", description="release of that image, for example 1.36.2-20260714; empty: what AWS recommends at each update"
    )
    min_size: int = Field(2, ge=1, description="minimum number of system nodes")
    desired_size: int = Field(2, ge=1, description="initial number of system nodes")
    max_size: int = Field(10, ge=1, description="maximum number of system nodes")
    disk_size: int = Field(50, ge=20, le=65536, description="GiB of each system node's disk, 20 to 65536")

    @field_validator("max_size")
    @classmethod
    def _ordered(cls, most: int, info: ValidationInfo) -> int:
        least, first = info.data.get("min_size", 1), info.data.get("desired_size", 1)
        if not least <= first <= most:
            refuse("node-group-sizes", least=least, first=first)
        return most


class CiliumSettings(Section):
    """karpstack:cilium."""

    chart_version: str = Field(versions.CILIUM, pattern=CHART_VERSION, description="version of Cilium's chart")
    hubble: bool = Field(False, description="Hubble's relay, which `hubble observe` asks for the flows of all nodes")
    encryption: Literal["none", "wireguard"] = Field(
        "none", description="wireguard: traffic between pods of different nodes is encrypted"
    )
    default_deny: bool = Field(
        False, description="true: pods outside kube-system can use only DNS, unless a network policy allows more"
    )

    @field_validator("encryption", mode="before")
    @classmethod
    def _needs_no_keys(cls, encryption: object) -> object:
        if encryption == "ipsec":
            refuse("encryption-needs-keys")
        return encryption

    @field_validator("chart_version")
    @classmethod
    def _its_chart_is_known(cls, version: str) -> str:
        return chart_version(version, versions.CILIUM_OLDEST, versions.CILIUM)


class AddonsSettings(Section):
    """karpstack:addons: what runs beside Karpenter."""

    ebs_csi: bool = Field(
        False, description="whether the EBS CSI driver runs, with gp3 as default StorageClass, encrypted"
    )
    metrics_server: bool = Field(
        False, description="whether the metrics server runs, for `kubectl top` and horizontal scaling"
    )
    load_balancer_controller: bool = Field(
        False,
        description="whether the AWS Load Balancer Controller runs, for Services and Ingresses that name its class",
    )

    @property
    def need_pod_identity(self) -> bool:
        """Whether one of them has a role of its own."""
        return self.ebs_csi or self.load_balancer_controller

    @property
    def wanted(self) -> bool:
        """Whether there is any."""
        return self.need_pod_identity or self.metrics_server


class FeatureGates(Switches):
    """karpstack:karpenter.featureGates; the defaults are the chart's."""

    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_repair: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False
    terminate_first_drift: bool = False
    terminate_first_repair: bool = False
    pod_deletion_cost_management: bool = False


class KarpenterSettings(Section):
    """karpstack:karpenter."""

    chart_version: str = Field(versions.KARPENTER_AWS, pattern=CHART_VERSION, description="version of both charts")
    identity: Identity = Field(
        "pod-identity", description="how the controller gets its permissions: pod-identity or irsa"
    )
    interruption_queue: bool = Field(True, description="whether interruption events reach Karpenter")
    service_monitor: bool = Field(
        False, description="a ServiceMonitor of its metrics; the CRDs of prometheus-operator must already exist"
    )
    replicas: int = Field(2, ge=1, description="number of controllers; one leads, each needs its own system node")
    feature_gates: FeatureGates = Field(FeatureGates(), description="switches of the chart's settings.featureGates")
    settings: dict[str, str | bool | int | float] = Field({}, description="further keys of the chart's settings")
    resources: ResourceSettings = Field(ResourceSettings(), description="requests and limits of the controller")

    @property
    def chart_gates(self) -> dict[str, bool]:
        """Every feature gate that the chart has, as it calls them."""
        return self.feature_gates.without(charts.karpenter_aws_lacks_gates(self.chart_version))

    @field_validator("chart_version")
    @classmethod
    def _its_chart_is_known(cls, version: str) -> str:
        return chart_version(version, versions.KARPENTER_AWS_OLDEST, versions.KARPENTER_AWS)

    @field_validator("feature_gates")
    @classmethod
    def _chart_has_them(cls, gates: FeatureGates, info: ValidationInfo) -> FeatureGates:
        version: str = info.data.get("chart_version", versions.KARPENTER_AWS)
        return chart_gates(gates, charts.karpenter_aws_lacks_gates(version), version, versions.KARPENTER_AWS)

    @field_validator("settings")
    @classmethod
    def _chart_knows_them(
        cls, settings: dict[str, str | bool | int | float], info: ValidationInfo
    ) -> dict[str, str | bool | int | float]:
        version: str = info.data.get("chart_version", versions.KARPENTER_AWS)
        return chart_settings(settings, charts.karpenter_aws_settings(version), version)


class ImagesSettings(MirrorSettings):
    """karpstack:images on EKS."""

    REGISTRIES: ClassVar[Sequence[str]] = images.registries(
        images.CILIUM, images.KARPENTER_AWS, images.METRICS_SERVER, images.LOAD_BALANCER_CONTROLLER
    )

    node_mirrors: dict[Annotated[str, AfterValidator(_registry)], Annotated[str, AfterValidator(_open_mirror)]] = Field(
        {},
        description="registry -> the mirror that nodes ask first, for all pods: docker.io: mirror.example.com/hub",
    )


class EksStackSettings(StackSettings):
    """What an environment on EKS says whether its cluster is there already or not."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "spotservicelinkedrole": "spot-role-not-needed",
        **dict.fromkeys(
            (
                *("aws:accesskey", "aws:secretkey", "aws:token"),
                *("aws:sharedconfigfiles", "aws:sharedcredentialsfiles", "aws:assumerolewithwebidentity"),
            ),
            "credentials-unknown-to-get-token",
        ),
    }

    region: str = Field(validation_alias="aws:region", description="the AWS region, for example us-east-1")
    profile: str = Field("", validation_alias="aws:profile", description="profile of the AWS CLI; kubectl uses it too")
    assume_roles: list[AssumedRole] = Field(
        [],
        validation_alias="aws:assumeRoles",
        description="role that the deployer assumes, at most one; kubectl uses it too",
    )
    cloud: Literal["aws"] = Field("aws", description="aws")
    tags: Tags = Field({}, description="tags of every resource")
    karpenter: KarpenterSettings = Field(KarpenterSettings(), description="the controller")
    images: ImagesSettings = Field(ImagesSettings(), description="where images come from")
    proxy: ProxySettings | None = Field(None, description="HTTP proxy of nodes and controllers")
    trusted_certificates: Certificates = Field(
        [],
        description="certificates of authorities, in PEM, for nodes and controllers, in addition to the public ones",
    )
    node_classes: NodeClassSpecs = Field(description="EC2NodeClass specs by name")

    @field_validator("assume_roles")
    @classmethod
    def _one_role(cls, roles: list[AssumedRole]) -> list[AssumedRole]:
        if len(roles) > 1:
            refuse("role-chain")
        return roles

    @field_validator("name")
    @classmethod
    def _name_fits(cls, name: str) -> str:
        return fitting_name(name, EksNames(name), "AWS")


def needed_endpoints(karpenter: KarpenterSettings, addons: AddonsSettings) -> tuple[EndpointService, ...]:
    """Services that a stack reaches by endpoints where nothing leads out."""
    return endpoints.needed(
        interruption_queue=karpenter.interruption_queue,
        pod_identity=karpenter.identity == "pod-identity" or addons.need_pod_identity,
        load_balancer_controller=addons.load_balancer_controller,
    )


def unreached_registries(
    addons: AddonsSettings, settings: ImagesSettings, proxy: ProxySettings | None
) -> tuple[str, ...]:
    """Registries of the stack's charts that no node reaches where nothing leads out: without a mirror or a proxy."""
    if proxy is not None and proxy.https is not None:
        return ()
    used = images.registries(
        images.CILIUM,
        images.KARPENTER_AWS,
        *([images.METRICS_SERVER] if addons.metrics_server else []),
        *([images.LOAD_BALANCER_CONTROLLER] if addons.load_balancer_controller else []),
    )
    return tuple(registry for registry in used if registry not in settings.mirrors)


class EksSettings(EksStackSettings):
    """The whole configuration, and the arguments of `eks.Environment`; `eks_existing` has a cluster that is there."""

    network: NetworkSettings = Field(description="address ranges and zones")
    cluster: ClusterSettings = Field(description="the control plane")
    system_nodes: SystemNodesSettings = Field(SystemNodesSettings(), description="the managed node group")
    cilium: CiliumSettings = Field(CiliumSettings(), description="Cilium, the network plugin")
    addons: AddonsSettings = Field(AddonsSettings(), description="optional add-ons")

    @property
    def endpoints(self) -> tuple[EndpointService, ...]:
        """Services to which the VPC has endpoints."""
        if isinstance(self.network.endpoints, list):
            return tuple(self.network.endpoints)
        return needed_endpoints(self.karpenter, self.addons) if self.network.endpoints else ()
