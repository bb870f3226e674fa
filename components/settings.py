"""The stack's configuration: typed, and refused as a whole before anything is created when it cannot work.

The only module that reads configuration. `load` is pure and takes the raw values; `read` takes them from the
Pulumi engine. Every error says which key, which value, what would happen, and what to do; all of them come at
once. Not checked here: what only the cloud knows (whether a role exists), and the fields of Karpenter's own specs
beyond those on which the environment depends, which the API server checks against the CRDs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Any, Final, Literal

from pulumi.runtime import config as runtime_config
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.alias_generators import to_camel

from . import versions
from .cross_checks import cross_checks
from .documents import subnets
from .documents.charts import KARPENTER_SETTINGS
from .naming import RESERVED_TAG_PREFIXES, EksNames
from .problems import NAMESPACE, Problem, SettingsError, from_pydantic, refuse

_REGION_KEY: Final = "aws:region"
_PRIVATE_RANGES: Final = tuple(IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_ROOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})


def _cidr(value: object) -> IPv4Network:
    try:
        if not isinstance(value, str) or "/" not in value:
            raise ValueError
        meant = ip_network(value, strict=False)
    except ValueError:
        refuse("is not an IPv4 range", "write it as address/prefix, for example 10.0.0.0/16")
    if not isinstance(meant, IPv4Network):
        refuse("is an IPv6 range, and the overlay, the VPC and the services are IPv4", "use an IPv4 range")
    if str(meant) != value:
        refuse("has bits beyond its prefix, so it is not the range that it seems to be", f"write {meant}")
    return meant


def _tag_key(key: str) -> str:
    if key.startswith(RESERVED_TAG_PREFIXES):
        refuse(
            "has a meaning for AWS, Kubernetes or Karpenter: on every resource it would, for example, offer "
            "public subnets to Karpenter",
            "choose a key that does not begin with " + ", ".join(RESERVED_TAG_PREFIXES),
        )
    return key


def _open_cidr(network: IPv4Network) -> IPv4Network:
    if network.prefixlen == 0:
        refuse(
            "opens the API server to the whole internet",
            "list the ranges of your offices, VPN and CI; an empty list closes the public endpoint",
        )
    return network


def _principal(arn: str) -> str:
    if not re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/[\w+=,.@/-]+", arn):
        refuse(
            "is not the ARN of an IAM role or user, the only principals that an access entry takes",
            "write arn:aws:iam::<account>:role/<name>; for IAM Identity Center, the role's ARN without its "
            "session name",
        )
    return arn


def _object_name(name: str) -> str:
    if len(name) > 63 or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
        refuse(
            "is no name that Kubernetes takes here, and it becomes a label's value",
            "use at most 63 lower-case letters, digits, '-' and '.'",
        )
    return name


def _spec(spec: dict[str, Any]) -> dict[str, Any]:
    if present := sorted(_ROOT_FIELDS & spec.keys()):
        refuse(
            f"is a whole manifest (it holds {', '.join(present)}); only what stands under `spec` belongs here",
            "move the contents of `spec` up to this key and drop the rest",
        )
    return spec


Cidr = Annotated[IPv4Network, BeforeValidator(_cidr)]
Tags = dict[
    Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_tag_key)],
    Annotated[str, StringConstraints(max_length=256)],
]
Specs = dict[Annotated[str, AfterValidator(_object_name)], Annotated[dict[str, Any], AfterValidator(_spec)]]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_default=True)


class NetworkSettings(_Section):
    """karpstack:network."""

    vpc_cidr: Cidr = Field(description="range of the VPC; nodes live here, pods do not")
    pod_cidr: Cidr = Field(description="range of the overlay network, for pods")
    pod_cidr_mask_size: int = Field(24, description="prefix length of each node's share of podCidr")
    service_cidr: Cidr = Field(description="range of Service addresses")
    zones: int | list[str] = Field(3, description="number of zones, 2 to 6, or a list of their names")
    nat_gateways: Literal["single", "per-zone"] = Field("single", description="single (cheap) or per-zone")

    @field_validator("vpc_cidr")
    @classmethod
    def _subnets_fit(cls, vpc: IPv4Network) -> IPv4Network:
        if not subnets.LARGEST_VPC_PREFIX <= vpc.prefixlen <= subnets.SMALLEST_VPC_PREFIX:
            refuse(
                f"is a /{vpc.prefixlen}: AWS makes no VPC larger than /16, and in one smaller than /22 the "
                "subnets do not fit (each zone takes an eighth, its public subnet an eighth of that)",
                f"choose a VPC from /{subnets.LARGEST_VPC_PREFIX} to /{subnets.SMALLEST_VPC_PREFIX}",
            )
        return vpc

    @field_validator("pod_cidr_mask_size")
    @classmethod
    def _shares_fit(cls, mask: int, info: ValidationInfo) -> int:
        pods: IPv4Network | None = info.data.get("pod_cidr")
        if not 16 <= mask <= 28:
            refuse(
                f"gives each node {'far more' if mask < 16 else 'far fewer'} pod addresses than it has pods",
                "choose 16 to 28; 24 holds the usual 110 pods",
            )
        if pods is not None and mask <= pods.prefixlen:
            refuse(
                f"leaves room for no second node in podCidr {pods}",
                f"choose more than {pods.prefixlen}, or a larger podCidr",
            )
        return mask

    @field_validator("service_cidr")
    @classmethod
    def _eks_takes_it(cls, services: IPv4Network) -> IPv4Network:
        if not (12 <= services.prefixlen <= 24 and any(map(services.subnet_of, _PRIVATE_RANGES))):
            refuse(
                "is refused by EKS when the cluster is created",
                "choose a /12 to /24 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
            )
        return services

    @field_validator("pod_cidr", "service_cidr")
    @classmethod
    def _separate(cls, cidr: IPv4Network, info: ValidationInfo) -> IPv4Network:
        for earlier in ("vpc_cidr", "pod_cidr"):
            other: IPv4Network | None = info.data.get(earlier)
            if other is not None and cidr.overlaps(other):
                refuse(
                    f"overlaps {to_camel(earlier)} {other}: traffic for one would be sent to the other, and "
                    "neither can be changed once the cluster exists",
                    f"choose a range outside {other}",
                )
        return cidr

    @field_validator("zones", mode="before")
    @classmethod
    def _zones_fit(cls, zones: object) -> object:
        if isinstance(zones, list):
            count = len(zones)
            if len(set(map(str, zones))) < count:
                refuse("names a zone twice, which would get two subnets and no more safety", "name each zone once")
        elif isinstance(zones, int):
            count = zones
        else:
            refuse("is neither a number nor a list of zones", f"choose 2 to {subnets.MAX_ZONES}, or name them")
        if not 2 <= count <= subnets.MAX_ZONES:
            refuse(
                "cannot be: EKS needs subnets in two zones at least, and the plan of subnets holds six",
                f"choose 2 to {subnets.MAX_ZONES}",
            )
        return zones


class ClusterSettings(_Section):
    """karpstack:cluster."""

    version: str = Field(description='Kubernetes minor version, in quotes, for example "1.36"')
    public_access_cidrs: list[Annotated[Cidr, AfterValidator(_open_cidr)]] = Field(
        [], description="ranges that may reach the API server from outside; empty: none"
    )
    admins: list[Annotated[str, AfterValidator(_principal)]] = Field(
        [], description="ARNs of IAM roles and users that administer the cluster, the deployer not among them"
    )
    log_types: list[Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]] = Field(
        ["api", "audit", "authenticator", "controllerManager", "scheduler"], description="control plane logs to keep"
    )
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096] = Field(
        30, description="days that control plane logs are kept"
    )

    @field_validator("version", mode="before")
    @classmethod
    def _karpenter_takes_it(cls, version: object) -> object:
        if isinstance(version, int | float):
            refuse("is a number, and YAML reads 1.30 as 1.3", f'put it in quotes: "{version}"')
        if not isinstance(version, str):
            return version
        if not re.fullmatch(r"1\.\d+", version):
            refuse("is not a Kubernetes minor version, and EKS chooses the patch itself", 'write it like "1.36"')
        low, high = versions.KARPENTER_KUBERNETES_MIN, versions.KARPENTER_KUBERNETES_MAX
        if not _minor(low) <= _minor(version) <= _minor(high):
            refuse(
                f"is not a version that Karpenter {versions.KARPENTER} takes: its controller would stop at "
                "start-up and no pod would ever get a node",
                f"choose {low} to {high}",
            )
        return version

    @field_validator("admins")
    @classmethod
    def _once(cls, admins: list[str]) -> list[str]:
        if repeated := sorted({admin for admin in admins if admins.count(admin) > 1}):
            refuse(f"names {', '.join(repeated)} twice, and EKS refuses a second access entry", "name each once")
        return admins


class SystemNodesSettings(_Section):
    """karpstack:systemNodes."""

    instance_type: str = Field("m5.large", description="instance type of the system nodes")
    ami_type: Literal["AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD"] = Field(
        "AL2023_x86_64_STANDARD", description="image of the system nodes; fits the instance type's architecture"
    )
    min_size: int = Field(2, ge=1, description="system nodes at least")
    desired_size: int = Field(2, ge=1, description="system nodes at first")
    max_size: int = Field(10, ge=1, description="system nodes at most")
    disk_size: int = Field(50, ge=20, description="GiB of each system node's disk, 20 at least")

    @field_validator("max_size")
    @classmethod
    def _ordered(cls, most: int, info: ValidationInfo) -> int:
        least, first = info.data.get("min_size", 1), info.data.get("desired_size", 1)
        if not least <= first <= most:
            refuse(
                f"does not go with minSize {least} and desiredSize {first}: EKS refuses the node group",
                "keep minSize <= desiredSize <= maxSize",
            )
        return most


class FeatureGates(_Section):
    """karpstack:karpenter.featureGates; the defaults are the chart's."""

    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_repair: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False


class ResourceSettings(_Section):
    """karpstack:karpenter.resources."""

    requests: dict[str, str | int] = Field({"cpu": "1", "memory": "1Gi"}, description="what is set aside")
    limits: dict[str, str | int] = Field({"cpu": "1", "memory": "1Gi"}, description="what is never exceeded")


class KarpenterSettings(_Section):
    """karpstack:karpenter."""

    identity: Literal["pod-identity", "irsa"] = Field("pod-identity", description="pod-identity or irsa")
    interruption_queue: bool = Field(True, description="whether interruption events reach Karpenter")
    replicas: int = Field(2, ge=1, description="controllers; one leads, each needs a system node of its own")
    feature_gates: FeatureGates = Field(FeatureGates(), description="switches of the chart's settings.featureGates")
    settings: dict[str, str | bool | int | float] = Field({}, description="further keys of the chart's settings")
    resources: ResourceSettings = Field(ResourceSettings(), description="requests and limits of the controller")

    @field_validator("settings")
    @classmethod
    def _chart_knows_them(cls, settings: dict[str, str | bool | int | float]) -> dict[str, str | bool | int | float]:
        if unknown := sorted(settings.keys() - KARPENTER_SETTINGS):
            refuse(
                f"holds {', '.join(unknown)}: the chart {versions.KARPENTER} does not know it, and Helm would "
                "ignore it without a word, or it follows from the environment",
                "use only " + ", ".join(sorted(KARPENTER_SETTINGS)),
            )
        return settings


class Settings(_Section):
    """A stack's whole configuration. Field names are the keys of namespace karpstack, in camelCase there."""

    region: str = Field(alias=_REGION_KEY, description="the AWS region, for example us-east-1")
    cloud: Literal["aws"] = Field(description="aws")
    name: str = Field(description="name of the cluster and stem of every physical name")
    tags: Tags = Field({}, description="tags of every resource")
    network: NetworkSettings = Field(description="address ranges and zones")
    cluster: ClusterSettings = Field(description="the control plane")
    system_nodes: SystemNodesSettings = Field(SystemNodesSettings(), description="the managed node group")
    spot_service_linked_role: Literal["create", "existing"] = Field(
        description="create, or existing in an account that has ever used spot instances"
    )
    karpenter: KarpenterSettings = Field(KarpenterSettings(), description="the controller")
    node_classes: Specs = Field(description="EC2NodeClass specs by name")
    node_pools: Specs = Field(description="NodePool specs by name")

    @field_validator("name")
    @classmethod
    def _name_fits(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
            refuse(
                "cannot name a cluster and all that is named after it",
                "use lower-case letters, digits and '-', none at either end",
            )
        worst = max(EksNames(name).limited(), key=lambda limited: limited.excess)
        if worst.excess > 0:
            refuse(
                f"makes names that AWS refuses: the {worst.kind} {worst.name} has {len(worst.name)} characters of "
                f"{worst.limit} that are allowed",
                f"choose a name of at most {len(name) - worst.excess} characters",
            )
        return name

    @field_validator("*", mode="wrap")
    @classmethod
    def _remember(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Hand what is valid to the caller even if something else is not: `load` cross-checks it."""
        valid = handler(value)
        if info.context is not None and info.field_name is not None:
            info.context[info.field_name] = valid
        return valid


def read() -> Settings:
    """The configuration of the stack that the engine runs.

    All keys of the namespace are read, not only the known ones: `pulumi.Config` cannot list them.

    Raises:
        SettingsError: It cannot work.
    """
    # The engine's Python host hands the configuration over in the environment, the inline host through CONFIG.
    raw = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}
    secret = {*runtime_config.get_config_secret_keys_env(), *filter(runtime_config.is_config_secret, raw)}
    return load(raw, secret_keys=secret)


def load(raw: Mapping[str, str], *, secret_keys: Iterable[str] = ()) -> Settings:
    """Check raw configuration.

    Args:
        raw: Full keys (`karpstack:network`, `aws:region`) to values as the engine gives them: strings, with
            objects and lists as JSON. Other namespaces are ignored.
        secret_keys: Full keys whose values no message may show.

    Raises:
        SettingsError: It cannot work; holds every problem that was found.
    """
    values = {
        key.removeprefix(f"{NAMESPACE}:"): _structured(value)
        for key, value in raw.items()
        if key.startswith(f"{NAMESPACE}:") or key == _REGION_KEY
    }
    hidden = {key.removeprefix(f"{NAMESPACE}:") for key in secret_keys}
    valid: dict[str, Any] = {}
    problems: list[Problem] = []
    settings = None
    try:
        settings = Settings.model_validate(values, context=valid)
    except ValidationError as error:
        found = [from_pydantic(details, Settings, hidden) for details in error.errors()]
        # A value that fits no branch of a union is reported once a branch; once is enough.
        problems += {problem.key: problem for problem in reversed(found)}.values()
    problems = [*reversed(problems), *cross_checks(valid)]
    if settings is None or problems:
        raise SettingsError(problems)
    return settings


def _structured(value: str) -> object:
    try:
        return json.loads(value) if value[:1] in ("{", "[") else value
    except json.JSONDecodeError:
        return value


def _minor(version: str) -> int:
    return int(version.split(".")[1])
