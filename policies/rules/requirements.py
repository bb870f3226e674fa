"""The requirements of NodePools as rules read them: resources may hold values that come later, or that nobody can read.

What requirements mean is `karpstack.karpenter.requirements`' matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from karpstack.karpenter import requirements as evaluator
from karpstack.karpenter.instance_types import ZONE, InstanceType, Region
from karpstack.karpenter.offers import Offers
from karpstack.karpenter.requirements import Requirement, RequirementError, UnknownLabelError

from .clouds import CLOUDS, Cloud
from .rule import NotKnownError, Properties, section
from .values import UnreadableError

# Of a value, the facts have few instance types if so many times as many are known by name alone.
_FEW = 10


def cloud_of(spec: Properties) -> Cloud:
    """The cloud whose nodes a NodePool's spec is about; NotKnownError where it is none that the pack knows."""
    path = ("template", "spec", "nodeClassRef")
    group = section(spec, *path).get("group")
    for cloud, traits in CLOUDS.items():
        if group == traits.group:
            return cloud
    raise NotKnownError(
        f"nodeClassRef.group is {group or 'not set'}, so it is not known whose nodes these are; known are "
        f"{', '.join(f'{traits.group} ({traits.title})' for traits in CLOUDS.values())}",
        "spec",
        *path,
        "group",
    )


def requirements(spec: Properties) -> list[Requirement]:
    """The requirements of a NodePool's spec; the labels that it gives to nodes are requirements too.

    Raises:
        UnknownValueError: A part comes later.
        UnreadableError: A part is none that Karpenter takes.
    """
    template = section(spec, "template")
    labels = section(template, "metadata", "labels")
    wanted = [evaluator.node_label_requirement(key, labels[key]) for key in labels]
    entries = section(template, "spec").get("requirements") or []
    for index in range(len(entries)):
        wanted.append(_requirement(entries[index], f"spec.template.spec.requirements[{index}]"))
    return wanted


def _requirement(entry: Properties, path: str) -> Requirement:
    values = entry.get("values") or []
    try:
        return evaluator.requirement(
            entry.get("key") or "",
            entry.get("operator") or "",
            [values[position] for position in range(len(values))],
            min_values=int(entry.get("minValues") or 0),
        )
    except RequirementError as error:
        raise UnreadableError(path, error.requirement, error.wanted) from error


def admitted(wanted: Iterable[Requirement], region: Region) -> tuple[InstanceType, ...]:
    """The instance types of a region that satisfy all requirements, in an offering at least.

    Raises:
        NotKnownError: A requirement is about a label that the facts lack.
    """
    try:
        return evaluator.admitted(wanted, region)
    except UnknownLabelError as error:
        raise NotKnownError(str(error), "facts", error.key) from error


def lacking(wanted: Sequence[Requirement], cloud: Cloud, region: Region) -> Iterator[Requirement]:
    """Requirements with only those values of which the facts lack nearly all instance types, or all.

    Such a type is known by its name alone, or it may be newer than the facts. A value that none can have is not given.
    """
    for one in wanted:
        if one.operator == "In" and one.key in region.labels - {ZONE}:
            left = (value for value in one.values if evaluator.allows(wanted, one.key, value))
            values = tuple(value for value in left if _lacks(one.key, value, cloud, region))
            if values:
                yield replace(one, values=values)


def _lacks(key: str, value: str, cloud: Cloud, region: Region) -> bool:
    offers = Offers.load(cloud)
    verdict = offers.value(key, value, region.name)
    there = sum(value in type_.values(key, region.name) for type_ in region.types)
    if there == 0 and verdict == "newer":
        return True
    named = [offer for offer in offers.sold_in(region.name) if not offer.described]
    labels = {label for offer in named for label in offer.labels}
    if key not in labels:  # then any of them may have the value
        return there == 0 and verdict != "wrong" and bool(named)
    return sum(value in offer.type.values(key, region.name) for offer in named) > there * _FEW


def ensure_facts(wanted: Sequence[Requirement], cloud: Cloud, region: Region) -> None:
    """Raise NotKnownError if the facts lack instance types for values that the requirements name."""
    if found := list(lacking(wanted, cloud, region)):
        raise NotKnownError(
            f"the facts lack all or nearly all instance types for {'; '.join(map(str, found))}, so it is known only in "
            "part which types the NodePool admits and what they cost",
            "facts",
            *(one.key for one in found),
        )
