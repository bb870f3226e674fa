"""Which instance types the NodePools of a story may launch for its pods.

A requirement on a label that the facts do not list is skipped, for nothing can be said of it. So the types that
are found may be too many, never too few, and a lower bound on their cost stays one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from karpstack.karpenter.instance_types import CAPACITY_TYPE, ZONE, Facts, InstanceType
from karpstack.karpenter.requirements import Requirement, allows, contradiction, fits, requirement, requirements

# What is bought otherwise, capacity that is reserved, has no price of its own.
SOLD = ("on-demand", "spot")


@dataclass(frozen=True)
class Pool:
    """What of a NodePool decides which instance types it may launch.

    Attributes:
        requirements: Its requirements; the labels that it gives its nodes are some.
        max_pods: Pods on a node as its node class says; None if that does not say.
    """

    requirements: tuple[Requirement, ...]
    max_pods: int | None = None

    @classmethod
    def of(cls, spec: Mapping[str, Any], max_pods: int | None = None) -> Pool:
        """From the `spec` of a NodePool.

        Raises:
            RequirementError: Karpenter does not take one of its requirements.
        """
        return cls(tuple(requirements(spec)), max_pods)

    def narrowed(self, asked: Iterable[Requirement]) -> Pool | None:
        """The pool for pods that require something of their node; None if its nodes cannot have such labels."""
        narrowed = Pool((*self.requirements, *asked), self.max_pods)
        return None if contradiction(narrowed.requirements) else narrowed


@dataclass(frozen=True)
class Allowed:
    """An instance type that may be launched, in some of the capacity types it is sold in and some of its zones."""

    type: InstanceType
    capacity_types: tuple[str, ...]
    zones: tuple[str, ...]
    max_pods: int | None


def allowed(facts: Facts, region: str, pools: Iterable[Pool], selectors: Sequence[Mapping[str, str]]) -> list[Allowed]:
    """What may be launched for pods with any of the node selectors, by any of the pools."""
    asked = [[requirement(key, "In", (value,)) for key, value in selector.items()] for selector in selectors or [{}]]
    narrowed = (pool.narrowed(wanted) for pool in pools for wanted in asked)
    return [choice for pool in narrowed if pool is not None for choice in _of_pool(facts, region, pool)]


@lru_cache(maxsize=256)  # a record asks it of the same NodePools at each of its moments
def _of_pool(facts: Facts, region: str, pool: Pool) -> tuple[Allowed, ...]:
    wanted = pool.requirements
    found: list[Allowed] = []
    for type_ in facts.types.values():
        kinds = tuple(kind for kind in type_.capacity_types if kind in SOLD and allows(wanted, CAPACITY_TYPE, kind))
        everywhere = type_.zones.get(region, ())
        zones = tuple(zone for zone in everywhere if allows(wanted, ZONE, zone))
        # Of a region that the file does not know, nothing is known of the zones either.
        if kinds and (zones or not everywhere) and fits(wanted, type_, region, facts.labels - {CAPACITY_TYPE, ZONE}):
            found.append(Allowed(type_, kinds, zones, pool.max_pods or type_.max_pods))
    return tuple(found)
