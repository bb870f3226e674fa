"""Changes of NodePools that people make to pay less or to move fewer pods: a table, applied to a snapshot's NodePools.

Not in the table: requests of pods, sizes of node classes and static capacity, which the objects alone do not decide;
and on-demand beside spot, whose use shows only when spot runs out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, NamedTuple

import yaml

from karpstack.karpenter.instance_types import ARCHITECTURE, CAPACITY_TYPE, INSTANCE_TYPE, Facts, InstanceType
from karpstack.karpenter.quantities import duration
from karpstack.karpenter.requirements import Requirement, fits, requirements
from karpstack.snapshot.model import Snapshot

Spec = dict[str, Any]
#: Name of each NodePool -> its `spec`.
Pools = dict[str, Spec]

_SOON: Final = timedelta(minutes=1)
_LATE: Final = timedelta(minutes=15)
_QUIET: Final = {"nodes": "0", "schedule": "0 8 * * mon-fri", "duration": "10h", "reasons": ["Underutilized"]}


class _Types(NamedTuple):
    """How a cloud's NodePools name instance types.

    Attributes:
        cloud: Name of the cloud.
        names: Labels by which single types or families are named.
        category: The label of general kinds of instances.
        general: The kinds of general use, which a candidate allows.
        also: Another kind that a NodePool keeps if it has it.
        letters: What of a type's or family's name is its kind.
        generation: The label of the generation.
        old: A generation above which all are usable.
        new: A generation above which all are recent.
        held: Label -> values that a candidate must not add to a NodePool. None stands for types without the label.
    """

    cloud: str
    names: tuple[str, ...]
    category: str
    general: tuple[str, ...]
    also: str
    letters: re.Pattern[str]
    generation: str
    old: int
    new: int
    held: Mapping[str, frozenset[str | None]]


_ARCHITECTURES: Final = frozenset(("amd64", "arm64"))
_CLOUDS: Final[Mapping[str, _Types]] = {
    "aws": _Types(
        "aws",
        ("karpenter.k8s.aws/instance-family", INSTANCE_TYPE),
        "karpenter.k8s.aws/instance-category",
        ("c", "m", "r"),
        "t",
        re.compile("([a-z]+)"),
        "karpenter.k8s.aws/instance-generation",
        2,
        5,
        {
            ARCHITECTURE: _ARCHITECTURES,
            "karpenter.k8s.aws/instance-category": frozenset(("t",)),
            "karpenter.k8s.aws/instance-hypervisor": frozenset(("",)),  # bare metal
            "karpenter.k8s.aws/instance-local-nvme": frozenset((None,)),
        },
    ),
    "azure": _Types(
        "azure",
        ("karpenter.azure.com/sku-name", INSTANCE_TYPE),
        "karpenter.azure.com/sku-family",
        ("D", "E", "F"),
        "B",
        re.compile("(?:Standard_)?([A-Z]+)"),
        "karpenter.azure.com/sku-version",
        2,
        4,
        {
            ARCHITECTURE: _ARCHITECTURES,
            "karpenter.azure.com/sku-storage-premium-capable": frozenset(("false",)),
        },
    ),
}


class Proposal(NamedTuple):
    """A kind of change.

    Attributes:
        name: Its name, also that of the files.
        why: What it may gain, and what it may cost, in a sentence.
        change: Changes NodePools in place.
        needs: `arm64` or `days` if it is made only with `--arm64` or `--for`.
    """

    name: str
    why: str
    change: Callable[[Pools, _Types], None]
    needs: str = ""


@dataclass(frozen=True)
class Candidate:
    """A proposal for one cluster.

    Attributes:
        name: Its name.
        why: What it may gain, and what it may cost.
        pools: All NodePools as they would be.
        changed: Names of those that differ.
        removed: Names of those that it removes.
    """

    name: str
    why: str
    pools: Pools
    changed: list[str]
    removed: list[str]

    @property
    def manifests(self) -> str:
        """The NodePools as YAML documents."""
        return manifests(self.pools)


def _each(change: Callable[[Spec, _Types], None]) -> Callable[[Pools, _Types], None]:
    """Return a change of every NodePool that is not static."""

    def of_all(pools: Pools, types: _Types) -> None:
        for spec in pools.values():
            if "replicas" not in spec:
                change(spec, types)

    return of_all


def _requirements(spec: Spec) -> list[dict[str, Any]]:
    node: Spec = spec.setdefault("template", {}).setdefault("spec", {})
    found: list[dict[str, Any]] = node.setdefault("requirements", [])
    return found


def _listed(spec: Spec, key: str) -> list[str]:
    """The values that a NodePool lists for a label; empty if it lists none."""
    return [value for one in _requirements(spec) if _is_list(one, key) for value in one.get("values") or ()]


def _is_list(requirement: Mapping[str, Any], *keys: str) -> bool:
    return requirement.get("key") in keys and requirement.get("operator") == "In"


def _add(spec: Spec, key: str, has: str, lacks: str) -> None:
    """Let a label have a second value where a NodePool lists the first one alone."""
    for one in _requirements(spec):
        if _is_list(one, key) and has in one["values"] and lacks not in one["values"]:
            one["values"] = [*one["values"], lacks]


def _spot(spec: Spec, _: _Types) -> None:
    _add(spec, CAPACITY_TYPE, "on-demand", "spot")


def _arm64(spec: Spec, _: _Types) -> None:
    _add(spec, ARCHITECTURE, "amd64", "arm64")


def _more_types(spec: Spec, types: _Types) -> None:
    _open(spec, types, newer=False)


def _newer_types(spec: Spec, types: _Types) -> None:
    _open(spec, types, newer=True)


def _open(spec: Spec, types: _Types, *, newer: bool) -> None:
    """Allow all kinds of general use above a generation, where a NodePool allows only such kinds."""
    named = [value for key in types.names for value in _listed(spec, key)]
    kinds = {match[1] for name in named if (match := types.letters.match(name))} | {*_listed(spec, types.category)}
    keys = [str(one.get("key")) for one in _requirements(spec)]
    if not kinds or kinds - {*types.general, types.also} or any("gpu" in key or "accelerator" in key for key in keys):
        return
    kept, above = [], [types.new if newer else types.old]
    for one in _requirements(spec):
        if one.get("key") == types.generation and one.get("operator") == "Gt":
            above += map(int, one["values"])
        if not _is_list(one, *types.names, types.category) and one.get("key") != types.generation:
            kept.append(one)
        elif "minValues" in one:
            kept.append({"key": one["key"], "operator": "Exists", "minValues": one["minValues"]})
    wanted = [*types.general, *({types.also} & kinds)]
    kept.append({"key": types.category, "operator": "In", "values": wanted})
    if newer or types.generation in keys:
        generation = max(above) if newer else min(above)
        kept.append({"key": types.generation, "operator": "Gt", "values": [str(generation)]})
    before = _admitted(spec, types)
    if not before:  # newer types than ours: their architecture is unknown
        return
    spec["template"]["spec"]["requirements"] = kept
    after = _admitted(spec, types)
    for key, held in types.held.items():
        had, has = ({one.labels.get(key) for one in some} for some in (before, after))
        new = (has - had) & held
        if None in new:
            kept.append({"key": key, "operator": "Exists"})
        elif new:
            kept.append({"key": key, "operator": "In", "values": sorted(map(str, has - new))})


def _admitted(spec: Spec, types: _Types) -> Sequence[InstanceType]:
    """The instance types, of any region, that a NodePool allows."""
    return _fitting(types.cloud, tuple(requirements(spec)))


@cache  # NodePools are compared with each other
def _fitting(cloud: str, wanted: tuple[Requirement, ...]) -> Sequence[InstanceType]:
    facts = Facts.load(cloud)
    return [one for one in facts.types.values() if fits(wanted, one, "", facts.known_labels(""))]


def _consolidate(spec: Spec, _: _Types) -> None:
    disruption = spec.setdefault("disruption", {})
    if disruption.get("consolidationPolicy") == "WhenEmpty":
        disruption["consolidationPolicy"] = "WhenEmptyOrUnderutilized"
    if disruption.get("consolidateAfter") == "Never":
        disruption["consolidateAfter"] = "1m"


def _after(spec: Spec) -> timedelta:
    """The `consolidateAfter` of a NodePool; the longest time for `Never`."""
    text = str(spec.get("disruption", {}).get("consolidateAfter", "0s"))
    return timedelta.max if text == "Never" else duration(text)


def _sooner(spec: Spec, _: _Types) -> None:
    if _SOON < _after(spec) < timedelta.max:
        spec["disruption"]["consolidateAfter"] = "1m"


def _later(spec: Spec, _: _Types) -> None:
    if _after(spec) < _LATE:
        spec.setdefault("disruption", {})["consolidateAfter"] = "15m"


def _quiet_hours(spec: Spec, _: _Types) -> None:
    disruption = spec.setdefault("disruption", {})
    budgets = disruption.get("budgets") or [{"nodes": "10%"}]  # Karpenter's own default
    if not any("schedule" in one for one in budgets):
        disruption["budgets"] = [*budgets, dict(_QUIET)]


def _merge(pools: Pools, types: _Types) -> None:
    """Make one NodePool of those whose nodes differ only in what their requirements list."""
    for name in list(pools):
        for other in [one for one in pools if one != name and name in pools]:
            if together := _merged(pools[name], pools[other], types):
                pools[name] = together
                del pools[other]


def _merged(one: Spec, other: Spec, types: _Types) -> Spec | None:
    """One NodePool for two; None if their nodes differ in more than what a requirement lists, or in architecture."""
    first, second = ({each["key"]: each for each in _requirements(spec)} for spec in (one, other))
    if len(first) < len(_requirements(one)) or len(second) < len(_requirements(other)) or {*first} != {*second}:
        return None
    if _rest(one) != _rest(other) or {"limits", "replicas"} & one.keys():  # one would stand for two
        return None
    differing = [key for key in first if first[key] != second[key]]
    if not differing:
        return deepcopy(one)
    # Of two requirements that differ, all pairs of values would be allowed: on-demand in the zone of spot.
    if len(differing) > 1 or not all(_is_list(each[differing[0]], differing[0]) for each in (first, second)):
        return None
    architectures = [{each.labels.get(ARCHITECTURE) for each in _admitted(spec, types)} for spec in (one, other)]
    if architectures[0] != architectures[1] or not architectures[0]:
        return None
    result = deepcopy(one)
    for requirement in _requirements(result):
        if requirement["key"] in differing:
            values = (*requirement["values"], *second[requirement["key"]]["values"])
            requirement["values"] = list(dict.fromkeys(values))
    return result


def _rest(spec: Spec) -> Spec:
    """A NodePool without its requirements, and without its weight, which only ranks NodePools."""
    rest = deepcopy(spec)
    rest.pop("weight", None)
    _requirements(rest).clear()
    return rest


def _together(*changes: Callable[[Pools, _Types], None]) -> Callable[[Pools, _Types], None]:
    def all_of(pools: Pools, types: _Types) -> None:
        for change in changes:
            change(pools, types)

    return all_of


#: In the order in which they are rehearsed, so that a limit of time reaches the most usual ones.
PROPOSALS: Final[Sequence[Proposal]] = (
    Proposal(
        "spot",
        "Spot instances cost less. The cloud can reclaim them at short notice; a rehearsal reclaims none.",
        _each(_spot),
    ),
    Proposal(
        "more-types",
        "More families and generations give Karpenter cheaper instances that fit.",
        _each(_more_types),
    ),
    Proposal(
        "newer-types",
        "Newer generations do more work for each dollar, and the dollars of an hour can rise.",
        _each(_newer_types),
    ),
    Proposal("arm64", "arm64 instances cost less. All images must exist for arm64.", _each(_arm64), "arm64"),
    Proposal(
        "consolidate",
        "Karpenter also removes nodes that are used little, not only empty ones.",
        _each(_consolidate),
    ),
    Proposal(
        "one-node-pool",
        "Pods of NodePools with equal labels and taints share nodes.",
        _merge,
    ),
    Proposal(
        "spot-and-more-types",
        "Spot instances of more families and generations: cheaper, and reclaimed less often.",
        _together(_each(_spot), _each(_more_types)),
    ),
    Proposal("later", "A longer consolidateAfter moves fewer pods, and nodes stay longer.", _each(_later), "days"),
    Proposal(
        "sooner", "A shorter consolidateAfter removes nodes earlier, and moves more pods.", _each(_sooner), "days"
    ),
    Proposal(
        "quiet-hours",
        "Karpenter removes no underutilized node from Monday to Friday, 8:00 to 18:00 UTC.",
        _each(_quiet_hours),
        "days",
    ),
)
_OPTIONS: Final = {"arm64": "--arm64", "days": "--for"}


class Derived(NamedTuple):
    """What the table gives for a cluster.

    Attributes:
        candidates: The candidates.
        dropped: Name of a proposal -> why it is no candidate.
    """

    candidates: list[Candidate]
    dropped: dict[str, str]


def pools_of(snapshot: Snapshot) -> Pools:
    """Return a copy of the NodePools of a snapshot."""
    return {one.name: deepcopy(one.spec) for one in snapshot.node_pools}


def derive(snapshot: Snapshot, given: Collection[str] = (), only: Collection[str] = ()) -> Derived:
    """Apply the table to a snapshot.

    Args:
        snapshot: The cluster.
        given: What proposals need and the user gave: `arm64`, `days`.
        only: Names of the proposals that are wanted; empty for all.

    Raises:
        ValueError: The snapshot has no NodePools or is of no cloud that is known, a NodePool is not as Karpenter has
            it, or a name is no proposal's.
    """
    names = [one.name for one in PROPOSALS]
    if unknown := [name for name in only if name not in names]:
        raise ValueError(f"--only {', '.join(unknown)}: no such candidate; choose from {', '.join(names)}")
    types = _CLOUDS.get(snapshot.cluster.cloud or "")
    if not snapshot.node_pools or not types:
        raise ValueError(
            "the snapshot has no NodePools of AWS or Azure, so there is nothing to change; take one of a cluster with "
            "Karpenter: karpstack snapshot take --output cluster.json.gz"
        )
    result = Derived([], {})
    for one in PROPOSALS:
        if only and one.name not in only:
            continue
        if one.needs and one.needs not in given:
            result.dropped[one.name] = f"needs {_OPTIONS[one.needs]}"
            continue
        pools, before = pools_of(snapshot), pools_of(snapshot)
        try:
            one.change(pools, types)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"a NodePool of the snapshot is not as Karpenter has it ({type(error).__name__}: {error}), so "
                f"{one.name} cannot be derived; take the snapshot again with `karpstack snapshot take`"
            ) from error
        changed = [name for name in pools if pools[name] != before[name]]
        same = next((other.name for other in result.candidates if other.pools == pools), None)
        if pools == before or same:
            result.dropped[one.name] = f"the same as {same}" if same else "changes nothing on this cluster"
            continue
        result.candidates.append(Candidate(one.name, one.why, pools, changed, sorted(before.keys() - pools.keys())))
    return result


def manifests(pools: Pools) -> str:
    """Return NodePools as YAML documents."""
    return yaml.safe_dump_all(_objects(pools), sort_keys=False, width=120, allow_unicode=True)


def _objects(pools: Pools) -> Iterator[dict[str, Any]]:
    for name, spec in pools.items():
        yield {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
