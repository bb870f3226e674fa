"""Node pools: what their requirements admit and what that may cost, computed from the facts of `karpenter`.

Does not judge what can be read off a single field (node_pools.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from pulumi_policy import PolicyResource

from karpstack.karpenter.instance_types import CAPACITY_TYPE, OPERATING_SYSTEM, ZONE, InstanceType, Region
from karpstack.karpenter.quantities import quantity
from karpstack.karpenter.requirements import Requirement, allows, contradiction, values_of

from . import graph
from .clouds import Cloud
from .facts import facts
from .requirements import admitted, cloud_of, ensure_facts, lacking, requirements
from .rule import STRICTER_IN_PRODUCTION, Judgement, NotKnownError, Properties, ResourceRule, StackRule, section
from .tokens import NODE_POOL


def _matches_types(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    wanted = requirements(spec)
    if against := contradiction(wanted):
        judgement.violation(f"spec.template.spec.requirements can't all hold: {'; '.join(map(str, against))}.")
        return
    cloud = cloud_of(spec)
    known = facts(cloud)
    types = admitted(wanted, known)
    # Reserved capacity is the account's own, of which no table knows.
    if not types and not (allows(wanted, CAPACITY_TYPE, "reserved") and not _purchasable(wanted)):
        unknown = {one.key for one in lacking(wanted, cloud, known)}
        if admitted([one for one in wanted if one.key not in unknown], known):
            ensure_facts(wanted, cloud, known)
        judgement.violation(
            f"spec.template.spec.requirements admit none of the {len(known.types)} instance types of {known.name}: "
            f"{'; '.join(map(str, wanted))}."
        )


def _purchasable(wanted: Sequence[Requirement]) -> bool:
    return any(allows(wanted, CAPACITY_TYPE, capacity) for capacity in ("on-demand", "spot"))


def _min_values(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    wanted = requirements(spec)
    demanding = [requirement for requirement in wanted if requirement.min_values]
    if not demanding:
        return
    known = facts(cloud_of(spec))
    types = admitted(wanted, known)
    for requirement in demanding:
        values = values_of(requirement.key, wanted, types, known.name)
        if len(values) < requirement.min_values:
            ensure_facts(wanted, cloud_of(spec), known)
            judgement.violation(
                f"the requirement {requirement} has minValues {requirement.min_values}, and the instance types that "
                f"the pool admits have {len(values)} values of it: {', '.join(sorted(values)) or 'none'}."
            )


def _spot_diversity(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    wanted = requirements(spec)
    if not allows(wanted, CAPACITY_TYPE, "spot") or contradiction(wanted):
        return
    spot = [*wanted, Requirement(CAPACITY_TYPE, "In", ("spot",))]
    known = facts(cloud_of(spec))
    types = admitted(spot, known)
    if not types:
        return  # the rule about that says so
    zones = values_of(ZONE, spot, types, known.name)
    least, fewest = int(judgement.settings["instanceTypes"]), int(judgement.settings["zones"])
    if len(types) < least or len(zones) < fewest:
        ensure_facts(spot, cloud_of(spec), known)
    if len(types) < least:
        names = ", ".join(sorted(instance_type.name for instance_type in types)) or "none"
        judgement.violation(f"{len(types)} instance types are admitted as spot, fewer than {least}: {names}.")
    if len(zones) < fewest:
        judgement.violation(f"spot is admitted in {len(zones)} zones, fewer than {fewest}: {', '.join(sorted(zones))}.")


def _pool_cost(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    bound = ceiling(spec)
    largest = float(judgement.settings["usdPerHour"])
    if bound is None:
        judgement.violation("spec.limits sets no cpu, memory or nodes, so nothing bounds the cost.")
    elif bound.usd > largest:
        judgement.violation(
            f"spec.limits let the pool cost up to {bound.usd:.2f} USD/h ({bound.of}), more than {largest:g}."
        )
    if bound is not None:
        _ensure_bound(spec)


def _ensure_bound(spec: Properties) -> None:
    """Raise NotKnownError if the facts lack what a pool may launch: its cost may then be above the ceiling."""
    cloud, wanted = cloud_of(spec), requirements(spec)
    ensure_facts(wanted, cloud, facts(cloud))
    is_named = any(one.key == OPERATING_SYSTEM for one in wanted)  # without it, Karpenter takes Linux
    if is_named and allows(wanted, OPERATING_SYSTEM, "windows"):
        raise NotKnownError(
            "the facts have prices with Linux alone, and nodes of the NodePool may have Windows, which costs more, so "
            "it is not known what they cost",
            "facts",
            OPERATING_SYSTEM,
        )


def _stack_cost(resources: list[PolicyResource], judgement: Judgement) -> None:
    ceilings = {}
    for pool in graph.of(resources, NODE_POOL):
        with judgement.part():
            spec = graph.output(pool, "spec")
            bound = ceiling(spec)
            if bound is not None:  # without one the rule about the pool speaks
                ceilings[pool.name] = bound.usd
                _ensure_bound(spec)
    total = sum(ceilings.values())
    largest = float(judgement.settings["usdPerHour"])
    if total > largest:
        parts = ", ".join(f"{name} {usd:.2f}" for name, usd in ceilings.items())
        judgement.violation(
            f"the NodePools together may cost up to {total:.2f} USD/h ({parts}), more than {largest:g}."
        )


@dataclass(frozen=True)
class Ceiling:
    """What a NodePool can cost at most: USD an hour, and what of, for people."""

    usd: float
    of: str


def ceiling(spec: Properties, known: Callable[[Cloud], Region] = facts) -> Ceiling | None:
    """The most that the limits let a pool cost, at on-demand prices, which spot prices do not exceed.

    None where the limits bound nothing. `known` gives what a cloud sells in the stack's region.

    Raises:
        UnknownValueError: The spec has a part that comes later, or the facts lack something (NotKnownError).
    """
    cpu, memory, nodes = (_limit(spec, name) for name in ("cpu", "memory", "nodes"))
    if spec.get("replicas") is not None:
        nodes = float(spec["replicas"]) if nodes is None else nodes
    if cpu is None and memory is None and nodes is None:
        return None
    types = launchable(spec, known)
    if not types:
        return Ceiling(0.0, "no instance type fits into the limits")
    region = known(cloud_of(spec)).name
    rows = [_Row(type_.on_demand[region], type_.vcpus, type_.memory / 2**30) for type_ in types]
    return Ceiling(_dearest(rows, cpu, memory, nodes), f"the dearest mix of {len(types)} instance types, on demand")


def launchable(spec: Properties, known: Callable[[Cloud], Region] = facts) -> list[InstanceType]:
    """The instance types that a pool may launch: its requirements admit them, and one fits into its limits.

    Raises:
        UnknownValueError: As for `ceiling`.
    """
    cpu, memory = _limit(spec, "cpu"), _limit(spec, "memory")
    return [
        instance_type
        for instance_type in admitted(requirements(spec), known(cloud_of(spec)))
        # Karpenter launches none that would exceed the limit by itself.
        if (cpu is None or instance_type.vcpus <= cpu) and (memory is None or instance_type.memory <= memory)
    ]


def _limit(spec: Properties, name: str) -> float | None:
    limit = section(spec, "limits").get(name)
    return None if limit is None else quantity(limit)


class _Row(NamedTuple):
    """One instance type: USD an hour on demand, CPUs, GiB."""

    price: float
    vcpus: float
    gib: float


def _dearest(types: Sequence[_Row], cpu: float | None, memory: float | None, nodes: float | None) -> float:
    """An upper bound of the price of any mix of types within the limits.

    Maximum of the sum of prices with the limits as constraints, fractions of machines allowed. By duality each
    price u of a resource, with the least prices of the others that still pay for every type, is a bound; the
    least of them is the maximum. With one limit that is the dearest type per unit of it.
    """
    gib = None if memory is None else memory / 2**30
    bounds = []
    if cpu is not None:
        bounds.append(cpu * max(row.price / row.vcpus for row in types))
    if gib is not None:
        bounds.append(gib * max(row.price / row.gib for row in types))
    if cpu is not None and gib is not None:
        bounds.append(_two_limits(types, cpu, gib))
    if nodes is not None:
        bounds.append(nodes * max(row.price for row in types))
    return min(bounds)


def _two_limits(rows: Sequence[_Row], cpu: float, memory: float) -> float:
    def bound(per_gib: float) -> float:
        return memory * per_gib + cpu * max(max((price - per_gib * gib) / vcpus for price, vcpus, gib in rows), 0.0)

    # Convex in the price of memory, so that thirds close in on the least; each value is a valid bound anyway.
    low, high = 0.0, max(price / gib for price, _, gib in rows)
    for _ in range(40):  # to a ten millionth of it
        third = (high - low) / 3
        if bound(low + third) < bound(high - third):
            high -= third
        else:
            low += third
    return bound((low + high) / 2)


@dataclass(frozen=True)
class _Pool:
    resource: PolicyResource
    wanted: list[Requirement]
    taints: frozenset[tuple[str, str, str]]
    weight: int
    cloud: Cloud


def _exclusive(resources: list[PolicyResource], judgement: Judgement) -> None:
    pools = []
    for resource in graph.of(resources, NODE_POOL):
        with judgement.part():
            spec = graph.output(resource, "spec")
            if spec.get("replicas") is not None:
                continue  # launched whatever pods there are
            pools.append(
                _Pool(resource, requirements(spec), _taints(spec), int(spec.get("weight") or 0), cloud_of(spec))
            )
    for first, second in combinations(pools, 2):
        if first.weight != second.weight or first.taints != second.taints or first.cloud != second.cloud:
            continue
        with judgement.part():
            together = [*first.wanted, *second.wanted]
            if contradiction(together):
                continue
            common = admitted(together, facts(first.cloud))
            if common:
                judgement.violation(
                    f"{first.resource.name} and {second.resource.name} both admit {len(common)} instance types, "
                    f"for example {common[0].name}, with the same taints and the weight {first.weight}.",
                    second.resource.urn,
                )


def _taints(spec: Properties) -> frozenset[tuple[str, str, str]]:
    taints = section(spec, "template", "spec").get("taints") or []
    return frozenset(
        (str(taints[index].get("key")), str(taints[index].get("value") or ""), str(taints[index].get("effect")))
        for index in range(len(taints))
    )


_DOLLARS = {"type": "number", "exclusiveMinimum": 0}

NODE_POOL_MATCHES_TYPES = ResourceRule(name="node-pool-matches-types", checks={NODE_POOL: _matches_types})

NODE_POOL_MIN_VALUES = ResourceRule(name="node-pool-min-values", checks={NODE_POOL: _min_values})

NODE_POOL_SPOT_DIVERSITY = ResourceRule(
    name="node-pool-spot-diversity",
    settings={
        "instanceTypes": {"type": "integer", "minimum": 1, "default": 15},
        "zones": {"type": "integer", "minimum": 1, "default": 2},
    },
    production={"instanceTypes": 30, "zones": 3},
    enforcement=STRICTER_IN_PRODUCTION,
    checks={NODE_POOL: _spot_diversity},
)

NODE_POOL_COST_CEILING = ResourceRule(
    name="node-pool-cost-ceiling",
    settings={"usdPerHour": {**_DOLLARS, "default": 500}},
    production={"usdPerHour": 250},
    checks={NODE_POOL: _pool_cost},
)

STACK_COST_CEILING = StackRule(
    name="stack-cost-ceiling",
    settings={"usdPerHour": {**_DOLLARS, "default": 1000}},
    production={"usdPerHour": 500},
    enforcement=STRICTER_IN_PRODUCTION,
    check=_stack_cost,
)

NODE_POOLS_EXCLUSIVE = StackRule(name="node-pools-exclusive", enforcement=STRICTER_IN_PRODUCTION, check=_exclusive)
