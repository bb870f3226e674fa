"""Which instance types the requirements of NodePools admit, as Karpenter evaluates them.

Operators In, NotIn, Exists, DoesNotExist, Gt, Gte, Lt, Lte, and minValues. A label of a domain that the clouds own
and that the facts lack can't be judged, so that `admitted` raises NotKnownError; a label of the user's own narrows
no instance types.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from .clouds import CLOUDS, Cloud
from .facts import Facts, InstanceType
from .rule import NotKnownError, Properties, section
from .values import UnreadableError

ARCHITECTURE: Final = "kubernetes.io/arch"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
OPERATING_SYSTEM: Final = "kubernetes.io/os"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"

# Karpenter reads the old names as the new ones.
_ALIASES: Final = {
    "beta.kubernetes.io/arch": ARCHITECTURE,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "beta.kubernetes.io/os": OPERATING_SYSTEM,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
}
_OWNED: Final = (
    "karpenter.k8s.aws",
    "karpenter.azure.com",
    "kubernetes.azure.com",
    "kubernetes.io",
    "topology.k8s.aws",
)


@dataclass(frozen=True)
class Requirement:
    """One requirement on the label `key` of nodes; `given` is a label that the pool itself puts on each node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int = 0
    given: bool = False

    def admits(self, value: str | None) -> bool:
        """Whether a node may have this value of the label; None is a node without the label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number, bound = _number(value), _number(self.values[0]) if self.values else None
        if number is None or bound is None:
            return False
        match self.operator:
            case "Gt":
                return number > bound
            case "Gte":
                return number >= bound
            case "Lt":
                return number < bound
            case "Lte":
                return number <= bound
        return False

    def __str__(self) -> str:
        return " ".join((self.key, self.operator, *((f"[{', '.join(self.values)}]",) if self.values else ())))


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
    """The requirements of a NodePool's spec; the labels that it gives to nodes are requirements too."""
    template = section(spec, "template")
    given = section(template, "metadata", "labels")
    found = [Requirement(_ALIASES.get(key, key), "In", (str(given[key]),), given=True) for key in given]
    entries = section(template, "spec").get("requirements") or []
    for index in range(len(entries)):
        entry = entries[index]
        values = entry.get("values") or []
        requirement = Requirement(
            _ALIASES.get(entry.get("key"), entry.get("key") or ""),
            entry.get("operator") or "",
            tuple(str(values[position]) for position in range(len(values))),
            int(entry.get("minValues") or 0),
        )
        if lacking := _lacks(requirement):
            raise UnreadableError(f"spec.template.spec.requirements[{index}]", str(requirement), lacking)
        found.append(requirement)
    return found


def _lacks(requirement: Requirement) -> str:
    """What a requirement needs and has not; the API server refuses such a NodePool."""
    if not requirement.key or not requirement.operator:
        return "a requirement with key and operator"
    if requirement.operator in _BOUNDS and [_number(value) for value in requirement.values] in ([], [None]):
        return "a requirement with one number in its values"
    return ""


def _number(text: str | None) -> int | None:
    """The number that a label's value is; None where it is none."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text) else None


def contradiction(wanted: Iterable[Requirement]) -> list[Requirement]:
    """Requirements on one label that no value satisfies together; empty where there are none."""
    for together in _by_key(wanted).values():
        if not _satisfiable(together):
            return together
    return []


def _satisfiable(together: Sequence[Requirement]) -> bool:
    """Whether a value, or the absence of the label, satisfies all of these requirements on one label."""
    if all(requirement.admits(None) for requirement in together):
        return True
    named = [requirement.values for requirement in together if requirement.operator == "In"]
    if named:
        return any(all(requirement.admits(value) for requirement in together) for value in named[0])
    bounds = [int(requirement.values[0]) for requirement in together if requirement.operator in _BOUNDS]
    if bounds:
        # Somewhere beside a bound, unless NotIn has eaten what lies there.
        excluded = sum(len(requirement.values) for requirement in together if requirement.operator == "NotIn")
        tried = {bound + step for bound in bounds for step in range(-1 - excluded, 2 + excluded)}
        return any(all(requirement.admits(str(value)) for requirement in together) for value in tried if value >= 0)
    return not any(requirement.operator == "DoesNotExist" for requirement in together)


_BOUNDS: Final = frozenset({"Gt", "Gte", "Lt", "Lte"})


def admitted(wanted: Iterable[Requirement], facts: Facts) -> tuple[InstanceType, ...]:
    """The instance types of the region that satisfy all requirements, in an offering at least.

    Raises:
        NotKnownError: A requirement is about a label that the facts lack.
    """
    return _admitted(tuple(wanted), facts)


@cache  # half a dozen rules ask it of each NodePool
def _admitted(wanted: tuple[Requirement, ...], facts: Facts) -> tuple[InstanceType, ...]:
    by_key = _by_key(wanted)
    if contradiction(wanted):
        return ()
    for key, together in by_key.items():
        _known(key, together, facts)
    return tuple(instance_type for instance_type in facts.types if _fits(by_key, instance_type, facts))


def offered_zones(wanted: Iterable[Requirement], instance_type: InstanceType) -> set[str]:
    """The zones in which the requirements admit an instance type."""
    together = _by_key(wanted).get(ZONE, ())
    return {zone for zone in instance_type.zones if all(requirement.admits(zone) for requirement in together)}


def values_of(key: str, wanted: Iterable[Requirement], types: Iterable[InstanceType]) -> set[str]:
    """The values of a label among instance types that the requirements admit."""
    together = _by_key(wanted).get(key, ())
    return {
        value
        for instance_type in types
        for value in _values(key, instance_type)
        if value is not None and all(requirement.admits(value) for requirement in together)
    }


def allows(wanted: Iterable[Requirement], key: str, value: str) -> bool:
    """Whether the requirements leave room for a value of a label."""
    return all(requirement.admits(value) for requirement in wanted if requirement.key == key)


def _by_key(wanted: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = defaultdict(list)
    for requirement in wanted:
        found[requirement.key].append(requirement)
    return found


def _known(key: str, together: Sequence[Requirement], facts: Facts) -> None:
    if key in facts.labels or key in _OF_TYPES:
        return
    domain = key.partition("/")[0]
    if not any(domain == end or domain.endswith("." + end) for end in _OWNED):
        return
    # What is given to every node of the pool narrows nothing: it is no property of the instance type.
    if all(requirement.given for requirement in together):
        return
    raise NotKnownError(
        f"the requirement {together[0]} is on a label of which facts/ knows nothing, so the instance types that it "
        "admits are not known",
        "facts",
        key,
    )


_OF_TYPES: Final = frozenset({CAPACITY_TYPE, INSTANCE_TYPE, OPERATING_SYSTEM, REGION, ZONE})


def _fits(by_key: dict[str, list[Requirement]], instance_type: InstanceType, facts: Facts) -> bool:
    for key, together in by_key.items():
        if key == REGION:
            values: Iterable[str | None] = (facts.region,)
        elif key in facts.labels or key in _OF_TYPES:
            values = _values(key, instance_type)
        else:
            continue
        if not any(all(requirement.admits(value) for requirement in together) for value in values):
            return False
    return True


def _values(key: str, instance_type: InstanceType) -> Iterable[str | None]:
    match key:
        case "karpenter.sh/capacity-type":
            return instance_type.capacity_types
        case "node.kubernetes.io/instance-type":
            return (instance_type.name,)
        case "topology.kubernetes.io/zone":
            return instance_type.zones
        case "kubernetes.io/os":
            return ("linux", "windows") if instance_type.labels.get(ARCHITECTURE) == "amd64" else ("linux",)
    return (instance_type.labels.get(key),)
