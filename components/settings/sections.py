"""What the configurations of both clouds have in common: types of values, sections, and their refusals.

A section that is forbidden something by its cloud says so in `REFUSED`: such a key is answered with the reason
instead of "is not a setting".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    StringConstraints,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.alias_generators import to_camel

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.ranges import NOT_PUBLIC, OWN, UNUSABLE, within

from ..documents.charts import release
from ..naming import AksNames, EksNames, worst
from ..problems import did_you_mean, finding, refuse
from .specs import NodeClassSpec, NodePoolSpec

#: Pattern of a chart's version.
CHART_VERSION: Final = r"^\d+\.\d+\.\d+(-[\w.]+)?$"
#: Length of the shortest prefix that is no large part of the world: two ranges of /1 are all of it.
WORLD: Final = 8
_ROOT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})


def _cidr(value: object) -> IPv4Network:
    try:
        if not isinstance(value, str | IPv4Network) or "/" not in str(value):
            raise ValueError
        meant = ip_network(value, strict=False)
    except ValueError:
        refuse("cidr-invalid")
    if not isinstance(meant, IPv4Network):
        refuse("cidr-ipv6")
    if str(meant) != str(value):
        refuse("cidr-with-host-bits", meant=meant)
    return meant


def _open_cidr(network: IPv4Network) -> IPv4Network:
    if network.prefixlen < WORLD:
        refuse("api-server-open-to-all")
    if reserved := within(network, NOT_PUBLIC):
        refuse("api-server-range-private", reserved=reserved)
    return network


def own_range(network: IPv4Network) -> IPv4Network:
    """A range whose addresses mean nobody else."""
    usable_range(network)
    if not within(network, NOT_PUBLIC):
        refuse("range-public", own=OWN)
    return network


def usable_range(network: IPv4Network) -> IPv4Network:
    """A range whose addresses hosts can have."""
    if reserved := within(network, UNUSABLE):
        refuse("range-unusable", reserved=reserved, own=OWN)
    return network


def public_network(section: str, key: str, network: IPv4Network) -> Iterator[Finding]:
    """A warning about a network that hides addresses of the internet; clouds take it."""
    if not within(network, NOT_PUBLIC):
        yield finding("range-of-network-public", (section, key), network, own=OWN)


def _object_name(name: str) -> str:
    if len(name) > 63 or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
        refuse("object-name-invalid")
    return name


def _no_manifest(spec: object) -> object:
    if isinstance(spec, dict) and (present := sorted(_ROOT_FIELDS & spec.keys())):
        refuse("whole-manifest", present=present)
    return spec


def _shaped_like(shape: Any) -> GetPydanticSchema:
    """Validate as `shape`, and stay a plain dict for those who read it: most of its keys are Karpenter's."""
    return GetPydanticSchema(lambda _, handler: handler(shape))


Cidr = Annotated[IPv4Network, BeforeValidator(_cidr)]
#: A range for a network of machines; it may be a public one of one's own.
NetworkCidr = Annotated[Cidr, AfterValidator(usable_range)]
#: A range for addresses that exist inside the cluster alone.
ClusterCidr = Annotated[Cidr, AfterValidator(own_range)]
#: A range that may reach the API server.
AccessCidr = Annotated[Cidr, AfterValidator(_open_cidr)]
TagValue = Annotated[str, StringConstraints(max_length=256)]
#: Specs of Kubernetes objects by the objects' names.
ObjectName = Annotated[str, AfterValidator(_object_name)]
NodePoolSpecs = dict[ObjectName, Annotated[dict[str, Any], _shaped_like(NodePoolSpec), BeforeValidator(_no_manifest)]]
NodeOverlaySpecs = dict[ObjectName, Annotated[dict[str, Any], BeforeValidator(_no_manifest)]]
NodeClassSpecs = dict[ObjectName, Annotated[dict[str, Any], _shaped_like(NodeClassSpec), BeforeValidator(_no_manifest)]]


def refused_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return what a section's `REFUSED` holds: of each code the keys, given in one text with spaces between them."""
    return {key.lower(): code for code, names in keys.items() for key in names.split()}


class Section(BaseModel):
    """A group of keys: in camelCase in the stack's file, by the names of the fields in a program."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_default=True,
        defer_build=True,  # a program uses the models of one cloud, and building those of all took a tenth of its time
    )

    #: Keys, in lower case, that will never be settings, with the code of the finding that says why.
    REFUSED: ClassVar[Mapping[str, str]] = {}


class Switches(Section):
    """Keys that are on or off."""

    @property
    def switched_on(self) -> list[str]:
        """Those that are on, as the stack's file calls them."""
        return [key for key, on in self.model_dump(by_alias=True).items() if on]

    def without(self, lacking: Collection[str]) -> dict[str, bool]:
        """All but some, as the stack's file calls them: what a chart does not have, it is not given."""
        return {key: on for key, on in self.model_dump(by_alias=True).items() if key not in lacking}


_Gates = TypeVar("_Gates", bound=Switches)


class ResourceSettings(Section):
    """karpstack:karpenter.resources."""

    requests: dict[str, str | int] = Field(
        {"cpu": "1", "memory": "1Gi"}, description="CPU and memory that are reserved"
    )
    limits: dict[str, str | int] = Field(
        {"cpu": "1", "memory": "1Gi"}, description="CPU and memory that are never exceeded"
    )


def mirror(prefix: str) -> str:
    """What an image's name may begin with."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", prefix):
        refuse("mirror-invalid")
    return prefix


class MirrorSettings(Section):
    """karpstack:images: where images of charts come from."""

    #: Those from which a stack's charts take images.
    REGISTRIES: ClassVar[Sequence[str]] = ()

    mirrors: dict[str, Annotated[str, AfterValidator(mirror)]] = Field(
        {},
        description="registry -> its replacement in image names, for example mcr.microsoft.com: "
        "registry.example.com/mcr on AKS, quay.io: registry.example.com/quay on EKS",
    )

    @field_validator("mirrors")
    @classmethod
    def _of_registries_in_use(cls, mirrors: dict[str, str]) -> dict[str, str]:
        if unused := sorted(mirrors.keys() - set(cls.REGISTRIES)):
            refuse("mirror-unused", unused=unused, registries=cls.REGISTRIES)
        return mirrors


class StackSettings(Section):
    """A stack's whole configuration: what it has on either cloud."""

    name: str = Field(
        description="prefix of all resource names; also the name of a cluster that the stack creates, not of an "
        "existing one"
    )
    allow_replacement: list[Literal["cluster"]] = Field(
        [], description="[cluster]: each `up` may delete the cluster and everything in it, until you remove this key"
    )
    accept_old_facts: bool = Field(False, description="true: accept facts that are older than 180 days")
    node_pools: NodePoolSpecs = Field(description="NodePool specs by name")
    node_overlays: NodeOverlaySpecs = Field({}, description="NodeOverlay specs by name")

    @field_validator("*", mode="wrap")
    @classmethod
    def _remember(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Hand what is valid to the caller even if something else is not: `load` cross-checks it."""
        valid = handler(value)
        if info.context is not None and info.field_name is not None:
            info.context[info.field_name] = valid
        return valid


def fitting_name(name: str, names: EksNames | AksNames, cloud: str) -> str:
    """A name from which all the others can be made."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
        refuse("name-invalid")
    longest = worst(names)
    if longest.excess > 0:
        refuse(
            "name-too-long",
            cloud=cloud,
            kind=longest.kind,
            longest=longest.name,
            longest2=len(longest.name),
            limit=longest.limit,
            most=len(name) - longest.excess,
        )
    return name


def refuse_alike(code: str, keys: Collection[str]) -> None:
    """Refuse keys of which some differ only by upper and lower case."""
    lowered = Counter(key.lower() for key in keys)
    if twice := sorted(key for key in keys if lowered[key.lower()] > 1):
        refuse(code, twice=twice)


def separate(cidr: IPv4Network, info: ValidationInfo, *others: str) -> IPv4Network:
    """A range that overlaps none of the fields `others` before it."""
    for earlier in others:
        other: IPv4Network | None = info.data.get(earlier)
        if other is not None and cidr.overlaps(other):
            refuse("ranges-overlap", field=to_camel(earlier), other=other)
    return cidr


def kubernetes_version(version: object, service: str) -> object:
    """A Kubernetes minor version, as `1.36`; whether `service` offers it is another question."""
    if isinstance(version, int | float):
        refuse("version-is-number", version=version)
    if isinstance(version, str) and not re.fullmatch(r"1\.[0-9]{1,3}", version, re.ASCII):
        refuse("version-with-patch", service=service)
    return version


def chart_version(version: str, oldest: str, newest: str) -> str:
    """A version of a chart of which is known what it takes."""
    if release(version) < release(oldest):
        refuse("chart-too-old", oldest=oldest, newest=newest)
    return version


def chart_gates(gates: _Gates, lacking: Collection[str], version: str, newest: str) -> _Gates:
    """Feature gates, of which none is on that the chart does not have."""
    if unknown := sorted({*gates.switched_on} & {*lacking}):
        refuse("feature-gate-unknown", unknown=unknown, version=version, newest=newest)
    return gates


def chart_settings(
    settings: dict[str, str | bool | int | float], known: frozenset[str], chart_version: str
) -> dict[str, str | bool | int | float]:
    """Keys for the chart's `settings` that it knows and that are not the environment's."""
    if unknown := sorted(settings.keys() - known):
        refuse(
            "chart-setting-unknown",
            unknown=unknown,
            chart_version=chart_version,
            meant=did_you_mean(unknown[0], known),
            known=sorted(known),
        )
    return settings
