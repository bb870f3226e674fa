"""Which nodes the requirements of NodePools admit, as Karpenter evaluates them.

All requirements on a label hold together; a label on which there is none is free. The labels that a NodePool gives to
its nodes are requirements too, and Karpenter reads the old names of labels as the new ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from .instance_types import ARCHITECTURE as ARCHITECTURE
from .instance_types import INSTANCE_TYPE, OPERATING_SYSTEM, REGION, ZONE, InstanceType, Region

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Gte", "Lt", "Lte")
_BOUNDS: Final = frozenset({"Gt", "Gte", "Lt", "Lte"})

_ALIASES: Final = {
    "beta.kubernetes.io/arch": ARCHITECTURE,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "beta.kubernetes.io/os": OPERATING_SYSTEM,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
}
# Whose labels say what an instance type is. A label of any other domain is the user's own and narrows none of them.
_OWNED: Final = (
    "karpenter.k8s.aws",
    "karpenter.azure.com",
    "kubernetes.azure.com",
    "kubernetes.io",
    "topology.k8s.aws",
)


class RequirementError(ValueError):
    """A requirement that Karpenter does not take.

    Attributes:
        path: Where it stands in the NodePool; empty where that is not known.
        requirement: What is there, for people.
        wanted: What a requirement has to be.
    """

    def __init__(self, requirement: str, wanted: str, path: str = "") -> None:
        """As the attributes."""
        super().__init__(
            f"{path or 'the requirement'} is {requirement!r}, which the API server refuses, so no instance type can "
            f"be judged; write {wanted}"
        )
        self.path, self.requirement, self.wanted = path, requirement, wanted


class UnknownLabelError(LookupError):
    """A requirement on a label of which the facts say nothing, so that it is not known what it admits.

    Attributes:
        key: The label.
    """

    def __init__(self, requirement: Requirement) -> None:
        """`requirement` is the one on it."""
        super().__init__(
            f"the requirement {requirement} is on a label of which the facts know nothing, so the instance types that "
            "it admits are not known"
        )
        self.key = requirement.key


@dataclass(frozen=True)
class Requirement:
    """One requirement on the label `key` of nodes.

    Attributes:
        key: The label, by its present name.
        operator: One of `OPERATORS`.
        values: Those that the operator compares with; one number for Gt, Gte, Lt, Lte.
        min_values: How many different values must be left to choose from.
        given: Whether it is a label that the NodePool itself puts on each node.

    Raises:
        RequirementError: Karpenter does not take it.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int = 0
    given: bool = False

    def __post_init__(self) -> None:
        if not self.key or not self.operator:
            raise RequirementError(str(self), "a requirement with key and operator")
        if self.operator not in OPERATORS:
            raise RequirementError(str(self), f"a requirement with one of the operators {', '.join(OPERATORS)}")
        if self.operator in _BOUNDS and (len(self.values) != 1 or _number(self.values[0]) is None):
            raise RequirementError(str(self), "a requirement with one number in its values")

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
        number, bound = _number(value), int(self.values[0])
        if number is None:
            return False
        return {"Gt": number > bound, "Gte": number >= bound, "Lt": number < bound, "Lte": number <= bound}[
            self.operator
        ]

    def __str__(self) -> str:
        return " ".join((self.key, self.operator, *((f"[{', '.join(self.values)}]",) if self.values else ())))


def requirement(
    key: str, operator: str, values: Iterable[Any] = (), *, min_values: int = 0, given: bool = False
) -> Requirement:
    """One requirement as a NodePool has it, with the label's present name.

    Raises:
        RequirementError: Karpenter does not take it.
    """
    return Requirement(_ALIASES.get(key, key), operator, tuple(map(str, values)), min_values, given)


def requirements(spec: Mapping[str, Any]) -> list[Requirement]:
    """The requirements of a NodePool's spec, those first that its labels are.

    Raises:
        RequirementError: Karpenter does not take one of them.
    """
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = [node_label_requirement(key, value) for key, value in labels.items()]
    for index, entry in enumerate((template.get("spec") or {}).get("requirements") or ()):
        try:
            wanted.append(
                requirement(
                    entry.get("key") or "",
                    entry.get("operator") or "",
                    entry.get("values") or (),
                    min_values=_count(entry.get("minValues")),
                )
            )
        except RequirementError as error:
            path = f"spec.template.spec.requirements[{index}]"
            raise RequirementError(error.requirement, error.wanted, path) from error
    return wanted


def _count(least: Any) -> int:
    if isinstance(least, int | None):
        return least or 0
    raise RequirementError(f"minValues {least}", "a whole number as minValues")


def node_label_requirement(key: str, value: Any) -> Requirement:
    """Return a label as a requirement that a NodePool puts on each of its nodes."""
    return requirement(key, "In", (value,), given=True)


def contradiction(wanted: Iterable[Requirement]) -> list[Requirement]:
    """Requirements on one label that no value satisfies together; empty where there are none."""
    for together in _by_key(wanted).values():
        if not _satisfiable(together):
            return together
    return []


def unmet(of_nodes: Iterable[Requirement], asked: Iterable[Requirement]) -> list[Requirement]:
    """What pods ask for, and no node of a NodePool can have; empty where that is not certain.

    As `Requirements.Compatible` of sigs.k8s.io/karpenter: a label that is the users' own must be known of the NodePool,
    one that follows from the instance type may be free.

    Args:
        of_nodes: The NodePool's, with its labels.
        asked: The pods'.
    """
    known = _by_key(of_nodes)
    return [
        one
        for one in asked
        if contradiction([*known.get(one.key, ()), one])
        or (one.key not in known and own(one.key) and not one.admits(None))
    ]


def allows(wanted: Iterable[Requirement], key: str, value: str | None) -> bool:
    """Whether the requirements leave room for a value of a label."""
    return _admit((requirement for requirement in wanted if requirement.key == key), value)


def value_for(wanted: Iterable[Requirement], key: str) -> str | None:
    """A value of a label that the requirements leave; None where they leave none, or there is no requirement on it.

    Of values that are named, the first. Else the least number, where Karpenter takes one at random: `Requirement.Any`
    of sigs.k8s.io/karpenter, pkg/scheduling.
    """
    together = [requirement for requirement in wanted if requirement.key == key]
    if not together:
        return None
    tried = next((requirement.values for requirement in together if requirement.operator == "In"), None)
    if tried is None:
        bounds = [int(one.values[0]) + (one.operator == "Gt") for one in together if one.operator in ("Gt", "Gte")]
        excluded = sum(len(requirement.values) for requirement in together if requirement.operator == "NotIn")
        least = max((0, *bounds))
        tried = tuple(map(str, range(least, least + excluded + 1)))  # one of so many is not excluded
    return next((value for value in tried if _admit(together, value)), None)


def allowed(wanted: Iterable[Requirement], key: str, instance_type: InstanceType, region: str) -> list[str | None]:
    """The values of a label that an instance type may have in a region and that the requirements leave."""
    together = [requirement for requirement in wanted if requirement.key == key]
    return [value for value in instance_type.values(key, region) if _admit(together, value)]


def values_of(key: str, wanted: Iterable[Requirement], types: Iterable[InstanceType], region: str) -> set[str]:
    """The values of a label among instance types that the requirements admit."""
    together = tuple(wanted)
    return {value for type_ in types for value in allowed(together, key, type_, region) if value is not None}


def admitted(wanted: Iterable[Requirement], region: Region) -> tuple[InstanceType, ...]:
    """The instance types of a region that satisfy all requirements, in an offering at least.

    Raises:
        UnknownLabelError: A requirement is about a label of the clouds that the facts lack.
    """
    return _admitted(tuple(wanted), region)


@cache  # half a dozen rules ask it of each NodePool
def _admitted(wanted: tuple[Requirement, ...], region: Region) -> tuple[InstanceType, ...]:
    if contradiction(wanted):
        return ()
    for key, together in _by_key(wanted).items():
        if key not in region.labels and _owned(key):
            # What is given to every node of the pool narrows nothing: it is no property of the instance type.
            asked = [requirement for requirement in together if not requirement.given]
            if asked:
                raise UnknownLabelError(asked[0])
    return tuple(type_ for type_ in region.types if fits(wanted, type_, region.name, region.labels))


def fits(wanted: Sequence[Requirement], instance_type: InstanceType, region: str, known: Iterable[str]) -> bool:
    """Whether an instance type satisfies the requirements on those labels that are known, in an offering at least."""
    keys = {requirement.key for requirement in wanted}.intersection(known)
    return all(allowed(wanted, key, instance_type, region) for key in keys)


def own(key: str) -> bool:
    """Whether a label is the users' own: neither Kubernetes', nor a cloud's, nor Karpenter's."""
    return not _owned(key) and key.partition("/")[0] != "karpenter.sh"


def _satisfiable(together: Sequence[Requirement]) -> bool:
    """Whether a value, or the absence of the label, satisfies all of these requirements on one label."""
    if _admit(together, None):
        return True
    named = [requirement.values for requirement in together if requirement.operator == "In"]
    if named:
        return any(_admit(together, value) for value in named[0])
    bounds = [int(requirement.values[0]) for requirement in together if requirement.operator in _BOUNDS]
    if bounds:
        # Somewhere beside a bound, unless NotIn has eaten what lies there.
        excluded = sum(len(requirement.values) for requirement in together if requirement.operator == "NotIn")
        tried = {bound + step for bound in bounds for step in range(-1 - excluded, 2 + excluded)}
        return any(_admit(together, str(value)) for value in tried if value >= 0)
    return not any(requirement.operator == "DoesNotExist" for requirement in together)


def _admit(together: Iterable[Requirement], value: str | None) -> bool:
    return all(requirement.admits(value) for requirement in together)


def _by_key(wanted: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    by_key: dict[str, list[Requirement]] = defaultdict(list)
    for requirement in wanted:
        by_key[requirement.key].append(requirement)
    return by_key


def _owned(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == end or domain.endswith("." + end) for end in _OWNED)


def _number(text: str | None) -> int | None:
    """The number that a label's value is; None where it is none."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text) else None
