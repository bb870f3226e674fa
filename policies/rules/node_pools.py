"""Node pools: limits, taints and disruption, as they are written.

Does not judge machines (nodes.py), nor what needs to be computed from instance types (node_pool_types.py).
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

from karpstack.karpenter import budgets
from karpstack.karpenter.instance_types import ARCHITECTURE
from karpstack.karpenter.quantities import duration, quantity

from . import graph
from .inputs import INPUTS
from .requirements import requirements
from .rule import ADVICE, STRICTER_IN_PRODUCTION, Judgement, Properties, ResourceRule, section
from .tokens import EXISTING_CLUSTER, HELM_RELEASE, NODE_POOL, with_patch

# Reasons for which pods move; empty nodes may all go at once.
_MOVING: Final = ("Underutilized", "Drifted")
_NONE: Final = re.compile("0+%?")  # nodes that may go at a time: none, as Karpenter reads it
# No instance type has less: t4g.nano, the smallest, has 0.5 GiB, and t2.nano one CPU.
_LEAST: Final = (("cpu", 1), ("memory", 2**29))
# Of each month, the last days and the first of the next: what most schedules do in a year, they do in these weeks.
_WEEKS: Final = tuple(datetime(2026, month, 26, tzinfo=UTC) for month in range(1, 13))


def _limits(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    if spec.get("replicas") is not None:
        return  # a static pool has the size that it says, and takes no limits on cpu and memory
    limits = section(spec, "limits")
    wanted = judgement.settings["resources"]
    # `in` would read the value, which may be unknown, so it is asked of the set of names.
    named = [resource for resource in wanted if resource in set(limits)]
    if all(limits[resource] is None for resource in named):
        names = ", ".join(limits) or "nothing"
        judgement.violation(f"spec.limits sets {names}, and one of {', '.join(wanted)} is needed.")


def _startup_taint(node_pool: Properties, judgement: Judgement) -> None:
    if _network_is_anothers():
        return
    key, effect = judgement.settings["key"], judgement.settings["effect"]
    path = "spec.template.spec.startupTaints"
    taints = section(node_pool, "spec", "template", "spec").get("startupTaints") or []
    declared = False
    for index in range(len(taints)):
        with judgement.part():
            taint = taints[index]
            if taint.get("key") != key:
                continue
            declared = True
            if taint.get("effect") != effect:
                judgement.violation(f"{path}[{index}] has the effect {taint.get('effect')}, not {effect}.")
    if not declared and judgement.complete:
        judgement.violation(f"{path} has no {key} with the effect {effect}.")


def _network_is_anothers() -> bool:
    """Whether the stack has put Karpenter on a cluster that is there, and no Cilium into it."""
    releases = INPUTS.of(HELM_RELEASE)
    return any(True for _ in INPUTS.of(EXISTING_CLUSTER)) and not any(
        graph.is_chart(release.get("chart") or "", "cilium") for release in releases
    )


def _disruption_budgets(node_pool: Properties, judgement: Judgement) -> None:
    entries = section(node_pool, "spec", "disruption").get("budgets")
    if entries is None:
        return  # Karpenter's own: a tenth of the nodes at a time
    largest = float(judgement.settings["largestShare"])
    for index in range(len(entries)):
        with judgement.part():
            path = f"spec.disruption.budgets[{index}]"
            nodes = _nodes(entries[index])
            if _NONE.fullmatch(nodes) and not entries[index].get("schedule"):
                reasons = entries[index].get("reasons")
                what = ", ".join(reasons) if reasons else "any reason"
                judgement.violation(f"{path} lets no node go, at no time, for {what}.")
            if nodes.endswith("%") and float(nodes.rstrip("%")) > largest:
                judgement.violation(f"{path} lets {nodes} of the nodes go at a time, more than {largest:g}%.")
            # Karpenter rounds a share up.
            elif not nodes.endswith("%") and int(nodes) - 1 >= (most := _most_nodes(node_pool)) * largest / 100:
                judgement.violation(
                    f"{path} lets {nodes} nodes go at a time, more than {largest:g}% of {most:g}, which is the most "
                    "that the NodePool can have."
                )
    with judgement.part():
        _always_limited([_budget(entries[index]) for index in range(len(entries))], judgement)


def _most_nodes(node_pool: Properties) -> float:
    """Return a number of nodes that a NodePool never exceeds, by replicas or limits."""
    spec = section(node_pool, "spec")
    limits = section(spec, "limits")
    amounts = ((spec.get("replicas"), 1), (limits.get("nodes"), 1), *((limits.get(key), of) for key, of in _LEAST))
    return min((max(1, quantity(amount) // each) for amount, each in amounts if amount is not None), default=inf)


def _always_limited(entries: list[dict[str, Any]], judgement: Judgement) -> None:
    """A schedule says when its budget holds; at other times that budget is none, and Karpenter knows no other."""
    try:
        kept = budgets.budgets({"disruption": {"budgets": entries}})
    except budgets.BudgetError as error:
        judgement.violation(f"spec.disruption.budgets: {error}.")
        return
    gaps = {reason: _unlimited(kept, reason) for reason in _MOVING}
    for moment in dict.fromkeys(gap for gap in gaps.values() if gap):
        reasons = " and ".join(reason for reason, gap in gaps.items() if gap == moment)
        judgement.violation(
            f"spec.disruption.budgets limit nothing for {reasons} on {moment:%A at %H:%M} UTC in {moment:%B}, for "
            "example: all nodes may go at once."
        )
    closing = [each for each in kept if _NONE.fullmatch(each.nodes) and each.schedule]
    closed = [one for one in budgets.REASONS if not _unlimited(closing, one)]
    if closed:
        reasons = ", ".join(closed)
        judgement.violation(f"spec.disruption.budgets: the schedules of budgets of 0 leave no time for {reasons}.")


def _unlimited(kept: Sequence[budgets.Budget], reason: str) -> datetime | None:
    weeks = _WEEKS if any(each.schedule and not each.weekly for each in kept) else _WEEKS[:1]
    found = (budgets.unlimited(kept, reason, week, week + timedelta(days=7)) for week in weeks)
    return next(filter(None, found), None)


def _budget(entry: Properties) -> dict[str, Any]:
    reasons = entry.get("reasons")
    return {
        "nodes": _nodes(entry),
        "reasons": None if reasons is None else [reasons[index] for index in range(len(reasons))],
        "schedule": entry.get("schedule"),
        "duration": entry.get("duration"),
    }


def _nodes(entry: Properties) -> str:
    nodes = entry.get("nodes")
    return "10%" if nodes in (None, "") else str(nodes).removesuffix(".0")  # numbers arrive as floats


def _consolidation(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    if spec.get("replicas") is not None:
        return  # a static pool is not consolidated
    disruption = section(spec, "disruption")
    with judgement.part():
        policy = disruption.get("consolidationPolicy") or "WhenEmptyOrUnderutilized"
        allowed = judgement.settings["policies"]
        if policy not in allowed:
            judgement.violation(
                f"spec.disruption.consolidationPolicy is {policy}, which is none of {', '.join(allowed)}."
            )
    with judgement.part():
        if disruption.get("consolidateAfter") == "Never":
            judgement.violation("spec.disruption.consolidateAfter is Never: no node is ever consolidated.")


def _expire_after(node_pool: Properties, judgement: Judgement) -> None:
    path = "spec.template.spec.expireAfter"
    expire_after = section(node_pool, "spec", "template", "spec").get("expireAfter") or "720h"
    longest, shortest = (int(judgement.settings[key]) for key in ("longestHours", "shortestHours"))
    if expire_after == "Never":
        judgement.violation(f"{path} is Never, and at most {longest}h is wanted.")
        return
    try:
        lifetime = duration(str(expire_after))
    except ValueError:
        judgement.violation(f"{path} is {expire_after}, which is no duration such as 720h.")
        return
    if lifetime > timedelta(hours=longest):
        judgement.violation(f"{path} is {expire_after}, longer than {longest}h.")
    if lifetime < timedelta(hours=shortest):
        judgement.violation(
            f"{path} is {expire_after}, shorter than {shortest}h; no disruption budget slows expiry down."
        )


def _termination_grace(node_pool: Properties, judgement: Judgement) -> None:
    path = "spec.template.spec.terminationGracePeriod"
    period = section(node_pool, "spec", "template", "spec").get("terminationGracePeriod")
    if period is None:
        judgement.violation(f"{path} is not set: nothing bounds how long a node is drained.")
        return
    try:
        duration(period)
    except ValueError:
        judgement.violation(f"{path} is {period}, which is no duration such as 1h.")


def _architecture(node_pool: Properties, judgement: Judgement) -> None:
    wanted = requirements(section(node_pool, "spec"))
    if not any(requirement.key == ARCHITECTURE and requirement.operator == "In" for requirement in wanted):
        judgement.violation(f"spec.template.spec.requirements has no {ARCHITECTURE} In [...].")


# For rules that find what is said. Those that find what is missing can't tell from a patch, which leaves out the rest.
_POOLS_AND_PATCHES: Final = with_patch(NODE_POOL)

NODE_POOL_DISRUPTION_BUDGETS = ResourceRule(
    name="node-pool-disruption-budgets",
    settings={
        # In percent of the pool's nodes.
        "largestShare": {"type": "number", "minimum": 1, "maximum": 100, "default": 50},
    },
    production={"largestShare": 20},
    checks=dict.fromkeys(_POOLS_AND_PATCHES, _disruption_budgets),
)

NODE_POOL_CONSOLIDATION = ResourceRule(
    name="node-pool-consolidation",
    settings={
        "policies": {
            "type": "array",
            "items": {"type": "string", "enum": ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]},
            "minItems": 1,
            "default": ["WhenEmptyOrUnderutilized", "Balanced"],
        },
    },
    enforcement=STRICTER_IN_PRODUCTION,
    checks=dict.fromkeys(_POOLS_AND_PATCHES, _consolidation),
)

NODE_POOL_EXPIRE_AFTER = ResourceRule(
    name="node-pool-expire-after",
    settings={
        "longestHours": {"type": "integer", "minimum": 1, "default": 2160},
        "shortestHours": {"type": "integer", "minimum": 0, "default": 24},
    },
    production={"longestHours": 720},
    enforcement=STRICTER_IN_PRODUCTION,
    checks=dict.fromkeys(_POOLS_AND_PATCHES, _expire_after),
)

NODE_POOL_TERMINATION_GRACE = ResourceRule(
    name="node-pool-termination-grace",
    enforcement=ADVICE,
    checks={NODE_POOL: _termination_grace},
)

NODE_POOL_ARCHITECTURE = ResourceRule(name="node-pool-architecture", checks={NODE_POOL: _architecture})

NODE_POOL_LIMITS = ResourceRule(
    name="node-pool-limits",
    settings={
        # At least one of these must have a limit.
        "resources": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "default": ["cpu", "memory"],
        },
    },
    checks={NODE_POOL: _limits},
)

NODE_POOL_CILIUM_STARTUP_TAINT = ResourceRule(
    name="node-pool-cilium-startup-taint",
    settings={
        "key": {"type": "string", "minLength": 1, "default": "node.cilium.io/agent-not-ready"},
        "effect": {"type": "string", "enum": ["NoExecute", "NoSchedule"], "default": "NoExecute"},
    },
    checks={NODE_POOL: _startup_taint},
)
