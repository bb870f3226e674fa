"""Which instance types a NodePool may launch: its requirements, held against what facts/ says of each type.

A requirement on a label that the facts do not list is passed over, for nothing can be said of it. So the types that
are found may be too many, never too few, and a lower bound on their cost stays one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .facts import Facts, InstanceType

CAPACITY_TYPE = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
# What is bought otherwise, capacity that is reserved, has no price of its own.
SOLD = ("on-demand", "spot")


@dataclass(frozen=True)
class Requirement:
    """One requirement, as a NodePool has them."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def allows(self, value: str | None) -> bool:
        """Whether a label may have a value; None: the label is not there.

        Raises:
            ValueError: Karpenter has no such operator.
        """
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt" | "Gte" | "Lte":
                return _compares(self.operator, value, self.values)
        raise ValueError(
            f"requirement on {self.key}: operator {self.operator!r} is not one, so no instance type can be judged; "
            "use In, NotIn, Exists, DoesNotExist, Gt, Gte, Lt or Lte"
        )


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    try:
        number, limit = float(value or ""), float(values[0])
    except (ValueError, IndexError):
        return False
    return {"Gt": number > limit, "Lt": number < limit, "Gte": number >= limit, "Lte": number <= limit}[operator]


@dataclass(frozen=True)
class Pool:
    """What of a NodePool decides which instance types it may launch.

    Attributes:
        requirements: Its requirements.
        labels: Labels that it gives its nodes.
        max_pods: Pods on a node as its node class says; None if that does not say.
    """

    requirements: tuple[Requirement, ...]
    labels: Mapping[str, str]
    max_pods: int | None = None

    @classmethod
    def of(cls, spec: Mapping[str, Any], max_pods: int | None = None) -> Pool:
        """From the `spec` of a NodePool."""
        template = spec.get("template") or {}
        requirements = (template.get("spec") or {}).get("requirements") or ()
        return cls(
            tuple(
                Requirement(found["key"], found["operator"], tuple(str(value) for value in found.get("values") or ()))
                for found in requirements
            ),
            (template.get("metadata") or {}).get("labels") or {},
            max_pods,
        )

    def narrowed(self, selector: Mapping[str, str]) -> Pool | None:
        """The pool for pods with a node selector; None if its nodes cannot have such labels."""
        if any(self.labels.get(key, value) != value for key, value in selector.items()):
            return None
        asked = tuple(Requirement(key, "In", (value,)) for key, value in selector.items() if key not in self.labels)
        return Pool((*self.requirements, *asked), self.labels, self.max_pods)


@dataclass(frozen=True)
class Allowed:
    """An instance type that may be launched, in some of the capacity types it is sold in and some of its zones."""

    type: InstanceType
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    max_pods: int | None


def allowed(facts: Facts, region: str, pools: Iterable[Pool], selectors: Sequence[Mapping[str, str]]) -> list[Allowed]:
    """What may be launched for pods with any of the node selectors, by any of the pools.

    Raises:
        ValueError: A requirement cannot be understood.
    """
    narrowed = [
        found for pool in pools for selector in (selectors or [{}]) if (found := pool.narrowed(selector)) is not None
    ]
    return [found for pool in narrowed for found in _of_pool(facts, region, pool)]


def _of_pool(facts: Facts, region: str, pool: Pool) -> Iterator[Allowed]:
    by_key: dict[str, list[Requirement]] = {}
    for requirement in pool.requirements:
        by_key.setdefault(requirement.key, []).append(requirement)

    def allows(key: str, value: str | None) -> bool:
        return all(requirement.allows(value) for requirement in by_key.get(key, ()))

    judged = by_key.keys() & facts.known_labels
    for found in facts.types.values():
        kinds = tuple(kind for kind in found.capacity_types if kind in SOLD and allows(CAPACITY_TYPE, kind))
        everywhere = found.zones.get(region, ())
        zones = tuple(zone for zone in everywhere if allows(ZONE, zone))
        # Of a region that the file does not know, nothing is known of the zones either.
        if kinds and (zones or not everywhere) and all(allows(key, found.labels.get(key)) for key in judged):
            yield Allowed(found, kinds, zones, pool.max_pods or found.max_pods)
