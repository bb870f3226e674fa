"""What is checked of a NodePool's requirements: that their values exist, and that they admit an instance type.

A value that goes on from those that are known may be newer than the facts: that is a warning and no error, and of such
a NodePool nothing more is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from karpstack.karpenter.findings import Finding
from karpstack.karpenter.instance_types import ARCHITECTURE, CAPACITY_TYPE, INSTANCE_TYPE, REGION, ZONE, Facts
from karpstack.karpenter.offers import LABELS, NUMBERS, Offer, Offers
from karpstack.karpenter.requirements import (
    Requirement,
    RequirementError,
    allows,
    contradiction,
    fits,
    node_label_requirement,
    requirement,
    values_of,
)

from ..documents import manifests
from ..problems import did_you_mean, finding, key_of, one_of

if TYPE_CHECKING:
    from .chart_checks import ChartSettings

_TITLES: Final = {
    INSTANCE_TYPE: "instance type",
    "karpenter.azure.com/sku-name": "VM size",
    "karpenter.k8s.aws/instance-family": "instance family",
    ZONE: "zone of {region}",
    REGION: "region of this stack",
}
#: Labels that name an instance type, or a few.
_NAMES: Final = (INSTANCE_TYPE, "karpenter.azure.com/sku-name", "karpenter.k8s.aws/instance-family")
_AZURE_FAMILY: Final = "karpenter.azure.com/sku-family"
_AT: Final = ("template", "spec", "requirements")
_EXAMPLE: Final = {"aws": "m5.large", "azure": "Standard_D4s_v5"}
#: Of labels that a provider alone gives its nodes.
_DOMAINS: Final = {"aws": ("karpenter.k8s.aws",), "azure": ("karpenter.azure.com", "kubernetes.azure.com")}
_PROVIDERS: Final = {"aws": "Karpenter for AWS", "azure": "Karpenter for Azure"}
_Place = tuple[str | int, ...]


def requirement_checks(
    cloud: str, known_region: str, name: str, spec: Mapping[str, Any], karpenter: ChartSettings | None = None
) -> Iterator[Finding]:
    """Problems of one NodePool's requirements, and of the labels that it gives its nodes.

    Args:
        cloud: `aws` or `azure`.
        known_region: A region that exists.
        name: Name of the NodePool.
        spec: Its spec.
        karpenter: Its chart's settings say whether it gives way where `minValues` cannot be had.
    """
    offers, region = Offers.load(cloud), known_region
    try:
        placed = list(_placed(spec))
    except RequirementError:
        return  # the schema's checks say what is wrong with it
    found = [
        problem
        for place, one in placed
        if one.operator in ("In", "NotIn")
        for problem in _values(offers, region, key_of("nodePools", name, *place), one)
    ]
    found += _of_another_cloud(cloud, name, placed)
    yield from found
    empty = any(one.operator in ("In", "NotIn") and not one.values for _, one in placed)  # the schema says so
    if not found and not empty and region in offers.zones:
        best_effort = karpenter is not None and karpenter.settings.get("minValuesPolicy") == "BestEffort"
        yield from _choice(offers, region, name, [one for _, one in placed], best_effort=best_effort)


def _of_another_cloud(cloud: str, name: str, placed: list[tuple[_Place, Requirement]]) -> Iterator[Finding]:
    """Requirements of labels that another cloud's provider gives its nodes."""
    for place, wanted in placed:
        domain = wanted.key.partition("/")[0]
        other = next((each for each, domains in _DOMAINS.items() if domain in domains), cloud)
        if other != cloud:
            yield finding(
                "label-of-other-cloud",
                ("nodePools", name, *(place if wanted.given else (*place[:-1], "key"))),
                wanted.key,
                provider=_PROVIDERS[other],
                domains=" or ".join(_DOMAINS[cloud]),
            )


def _placed(spec: Mapping[str, Any]) -> Iterator[tuple[_Place, Requirement]]:
    """Each requirement with its place in the spec; a label's, and that of a list of values."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key, value in labels.items():
        yield ("template", "metadata", "labels", key), node_label_requirement(key, value)
    for index, entry in enumerate(manifests.node_template(spec).get("requirements") or ()):
        yield (
            (*_AT, index, "values"),
            requirement(
                entry.get("key") or "",
                entry.get("operator") or "",
                entry.get("values") or (),
                min_values=_number(entry.get("minValues")),
            ),
        )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0  # the schema's checks say that it is none


def _values(offers: Offers, region: str, key: str, one: Requirement) -> Iterator[Finding]:
    title = _TITLES.get(one.key, f"value of {one.key}").format(region=region)
    for index, value in enumerate(one.values):
        verdict = offers.value(one.key, value, region)
        place = key if one.given else f"{key}[{index}]"
        if verdict == "wrong":
            known = offers.values(one.key, region) or ()
            code = "requirement-excludes-nothing" if one.operator == "NotIn" else "requirement-value-wrong"
            meant = did_you_mean(value, known) + ("write a number" if one.key in NUMBERS else one_of(known))
            yield finding(code, place, value, title=title, meant=meant)
        elif verdict == "newer":
            yield finding("requirement-value-unknown", place, value, title=title)


def _choice(
    offers: Offers, region: str, name: str, wanted: list[Requirement], *, best_effort: bool
) -> Iterator[Finding]:
    """Whether instance types are left to choose from, and as many as are asked for."""
    if allows(wanted, CAPACITY_TYPE, "reserved"):
        # Whether a capacity reservation exists, and of which type, is known to the account alone.
        wanted = [one for one in wanted if one.key != CAPACITY_TYPE]
    sold = offers.sold_in(region)
    left = _admitted(tuple(wanted), offers, region)
    if sold and not left:
        yield finding(
            "no-instance-type-admitted",
            ("nodePools", name, *_AT),
            [str(one) for one in wanted],
            region=region,
            reason=_reason(wanted, offers, region),
        )
        return
    if not left or not all(offer.described for offer in left):
        return
    yield from _architectures(region, name, wanted, left)
    if best_effort:
        return
    for one in wanted:
        there = len(values_of(one.key, wanted, [offer.type for offer in left], region)) if one.min_values else 0
        if one.min_values > there and one.key in left[0].labels:
            yield finding(
                "min-values-too-high",
                ("nodePools", name, *_AT),
                str(one),
                min_values=one.min_values,
                there=there,
                region=region,
            )


def _architectures(region: str, name: str, wanted: list[Requirement], left: Sequence[Offer]) -> Iterator[Finding]:
    """Architectures that are asked for beside others, and that none of the types has."""
    there = values_of(ARCHITECTURE, wanted, [offer.type for offer in left], region)
    asked = {value for each in wanted if each.key == ARCHITECTURE and each.operator == "In" for value in each.values}
    for value in sorted(asked - set(there)) if there else ():
        yield finding(
            "architecture-without-type",
            ("nodePools", name, *_AT),
            [str(each) for each in wanted],
            value=value,
            architecture=ARCHITECTURE,
        )


def _reason(wanted: Sequence[Requirement], offers: Offers, region: str) -> str:
    """Which requirement it is, if it is one."""
    for one in wanted:
        if not _admitted((one,), offers, region):
            return f" ({one} alone admits none)"
    for one in wanted:
        if _admitted(tuple(other for other in wanted if other is not one), offers, region):
            return f" (without {one} they would)"
    return ""


@cache  # settings are checked when they are read and again when they are used, and most NodePools ask for the same
def _admitted(wanted: tuple[Requirement, ...], offers: Offers, region: str) -> tuple[Offer, ...]:
    if contradiction(wanted):
        return ()
    return tuple(
        offer
        for offer in offers.sold_in(region)
        if fits(wanted, offer.type, region, offer.labels) and _judged(wanted, offer)
    )


def _judged(wanted: Sequence[Requirement], offer: Offer) -> bool:
    """Whether a type that fits as far as is known may be counted; one that is only a name, if it is asked for by it."""
    keys = {one.key for one in wanted if one.key in LABELS}
    return offer.described or keys <= offer.labels or any(one.operator == "In" and _names(one) for one in wanted)


def _names(one: Requirement) -> bool:
    """Whether a requirement names instance types, or a family of which the facts describe none."""
    if one.key == _AZURE_FAMILY:
        return not _described_families().issuperset(one.values)
    return one.key in _NAMES


@cache
def _described_families() -> frozenset[str | None]:
    return frozenset(found.labels.get(_AZURE_FAMILY) for found in Facts.load("azure").types.values())


def instance_type(offers: Offers, key: str, name: str, region: str) -> Iterator[Finding]:
    """Problems of an instance type that is chosen by name."""
    verdict = offers.types.verdict(name)
    title = _TITLES[INSTANCE_TYPE] if offers.cloud == "aws" else "VM size"
    if verdict == "wrong":
        known = offers.types.values[INSTANCE_TYPE]
        yield finding(
            "instance-type-wrong",
            key,
            name,
            title=title,
            meant=did_you_mean(name, known),
            example=_EXAMPLE[offers.cloud],
        )
    elif verdict == "newer":
        yield finding("instance-type-unknown", key, name, title=title)
    elif (sold := offers.sold_in(region)) and name not in {offer.type.name for offer in sold}:
        yield finding("instance-type-not-sold", key, name, region=region, title=title)
