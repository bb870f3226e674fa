"""The requirements of NodePools as rules read them: resources may hold values that come later, or that nobody can read.

What requirements mean is `karpstack.karpenter.requirements`' matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from karpstack.karpenter import requirements as evaluator
from karpstack.karpenter.instance_types import InstanceType, Region
from karpstack.karpenter.requirements import Requirement, RequirementError, UnknownLabelError

from .clouds import CLOUDS, Cloud
from .rule import NotKnownError, Properties, section
from .values import UnreadableError


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
