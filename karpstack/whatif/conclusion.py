"""The first line of an answer: whether the change can be merged, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from karpstack.scale_test.reports import units
from karpstack.snapshot.objects import LACKING, UNREAD
from karpstack.text.shown import listed

from . import wording
from .answer import Accuracy, Answer, BlastRadius, Inventory, Limit, RemainingNode, SimulatedPeriod
from .wording import plural

_NAMED = 3  # workloads
_COMPARED = ("nodes", "dollars an hour", "dollars an hour without spot")
_NEAR = 0.1  # how far these may be from the cluster's for "safe"
_MORE = "not all of the change is rehearsed, so more may change"
_SHORT = 60.0  # seconds that a pod may be without a node before that is called a cost


def conclusion(answer: Answer) -> str:
    """What to do: `Safe to merge: −$0.25 (−20 %) an hour; 24 pods move`."""  # noqa: RUF002
    radius, after = answer.blast_radius, answer.after
    if answer.refused or radius is None or after is None:
        return "Do not merge: the change is refused"
    if broken := [limit for limit in answer.limits if not limit.within_limit]:
        more = f", and {plural(len(broken) - 1, 'more limit')} exceeded" if len(broken) > 1 else ""
        return f"Do not merge yet: {_reason(broken[0], radius)}{more}"
    more = f"; {_MORE}" if answer.unseen else ""
    if radius.applied == []:
        return f"Changes nothing{more}"
    costs = list(_costs(radius))
    harmless = not costs and radius.unschedulable <= 0 and not radius.pods_killed
    if harmless and not radius.replaced and not radius.created and (until := _later(answer.remaining)):
        return f"Does nothing before {units.moment(until)}, when a disruption budget allows it{more}"
    waiting = wording.drifted(answer.remaining)
    effects = [
        _pods(radius, answer.simulated),
        f"{plural(waiting, 'drifted node')} not replaced yet" if waiting else "",
        *costs,
        "another run may end with other nodes" if wording.by_chance(radius) else "",
    ]
    dollars = None if any(one.gave_up for one in answer.moments) else _dollars(answer.before, after)
    far = differs(answer.accuracy)
    said = "; ".join(filter(None, (dollars, *effects, far and f"but {far}")))
    if dollars is None:
        return f"Can be merged, but what it costs in the end is not known: {said}"
    long = radius.longest_without_node > (0.0 if answer.simulated else _SHORT)  # boot times of a fake are short
    dearer = wording.direction(answer.before, after) == "dearer"
    if dearer or long or not harmless:
        return f"Can be merged, at a cost: {said}"
    if not far and (doubt := _unsure(answer)):
        return f"No limit is exceeded: {said}; not called safe: {doubt}"
    if far or waiting or not wording.is_limited(answer) or _is_troubled(answer.simulated_period):
        return f"No limit is exceeded: {said}"
    return f"Safe to merge: {said}"


def _costs(radius: BlastRadius) -> Iterator[str]:
    """What stays wrong for good, although the limits may allow it."""
    if again := len(radius.not_schedulable_again):
        yield f"{plural(again, 'workload')} that no NodePool fits any more"
    if never := sum(one.never for one in radius.replaced):
        yield f"{plural(never, 'node')} that never {'goes' if never == 1 else 'go'}"
    if short := wording.short_lives(radius):
        yield f"nodes of {listed([f'NodePool {one.pool}' for one in short], _NAMED)} live less than a day"
    if over := len(wording.over_limits(radius)):
        yield f"{plural(over, 'NodePool')} over {'its' if over == 1 else 'their'} own limits"


def _reason(limit: Limit, radius: BlastRadius) -> str:
    """Why a limit says no, in words of the cluster where there are any."""
    match limit.name:
        case "maxPodsUnschedulable":
            left = [
                f"{one.namespace}/{one.workload}"
                for one in radius.workloads_without_node
                if one.at_the_end > one.before
            ]
            said = f"{plural(radius.unschedulable, 'pod')} would stay without a node ({listed(left, _NAMED)})"
            return (
                f"{said}, and {more} more when their nodes are gone" if (more := _without_node_later(radius)) else said
            )
        case "maxWorkloadsWithoutNodePool":
            none = [f"{one.namespace}/{one.workload}" for one in radius.not_schedulable_again]
            return f"no NodePool would fit {listed(none, _NAMED)} any more"
        case "maxPodsKilled":
            are = "that a PodDisruptionBudget or do-not-disrupt protects would be deleted"
            return f"{plural(radius.pods_killed, 'pod')} {are}"
        case "maxNodesNeverReplaced":
            return f"{limit.measured} would never be replaced"
        case "mustSettle":
            return "the cluster had not settled when the rehearsal ended, so the end is not known"
    return f"{limit.name} is exceeded ({limit.measured}; {limit.limit})"


def _without_node_later(radius: BlastRadius) -> int:
    """How many pods run on nodes that must go, until Karpenter deletes or evicts them, and no NodePool fits them."""
    none = {(one.namespace, one.workload) for one in radius.not_schedulable_again}
    return sum(
        one.pods
        for one in radius.blocked_evictions
        if (one.deleted_at or one.until) and not one.done and (one.namespace, one.workload) in none
    )


def _later(stayed: Sequence[RemainingNode]) -> str | None:
    """When the first of the drifted nodes may be replaced, if nothing but disruption budgets keeps all of them."""
    drifted = [one for one in stayed if one.drifted and not one.drifted_before]
    ends = [
        max(cause.until or "" for cause in one.causes)
        for one in drifted
        if one.causes and all(cause.why == "disruption budget" and cause.until for cause in one.causes)
    ]
    return min(ends, key=datetime.fromisoformat) if ends and len(ends) == len(drifted) else None


def _dollars(before: Inventory, after: Inventory) -> str | None:
    """What is said of dollars; None where prices are missing or the end is open."""
    old, new = before.usd_per_hour, after.usd_per_hour
    if old is None or new is None or after.open_end or after.launching:
        return None
    if (change := wording.change(old, new)) == "none":
        return "as dear as before"
    return f"{change} an hour" if wording.direction(before, after) else None


def _pods(radius: BlastRadius, simulated: bool) -> str:
    move = f"{plural(radius.pods_moved, 'pod')} {'moves' if radius.pods_moved == 1 else 'move'}"
    if not radius.pods_without_node:
        return move if radius.pods_moved else "no pod moves"
    waits = f"{plural(radius.pods_without_node, 'pod')} without a node, {wording.for_how_long(radius, simulated)}"
    return f"{move}, {waits}" if radius.pods_moved else waits


def differs(found: Accuracy) -> str:
    """How the rehearsed base differs from the cluster, where an answer for the one says little of the other."""
    if found.empty_pools:
        return f"the base has no node of {listed([f'NodePool {name}' for name in found.empty_pools], _NAMED)}"
    for one in found.figures:
        if one.what in _COMPARED and one.difference is not None and one.difference > _NEAR:
            return f"the base is not like the cluster ({one.what}: {one.rehearsed:.4g} instead of {one.real:.4g})"
    return ""


def _unsure(answer: Answer) -> str:
    """Why it is not known whether the base is like a real cluster, and the change as a whole; empty where it is."""
    found = answer.accuracy
    if answer.unseen:
        return _MORE
    for said in (UNREAD, LACKING):
        if kinds := [text.partition(said)[2].partition(";")[0].strip() for text in answer.unknown if said in text]:
            return f"{said}{'s' if len(kinds) > 1 else ''} {listed(kinds, _NAMED)}"
    if not found.compared:
        return "no real cluster was compared"
    if found.made_up:
        return "the snapshot is made up"
    unknown = [one for one in found.figures if one.what in _COMPARED and one.difference is None]
    return f"{unknown[0].what} of the cluster are not known ({unknown[0].note})" if unknown else ""


def _is_troubled(lived: SimulatedPeriod | None) -> bool:
    """Whether the days of the changed cluster had what would be a cost of the change itself."""
    return lived is not None and (lived.longest_without_node > _SHORT or bool(lived.drifted_nodes))
