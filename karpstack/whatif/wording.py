"""The words of an answer, where Markdown, page and terminal use the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from karpstack.karpenter.instance_types import REGIONAL, zone_words
from karpstack.scale_test.reports import units
from karpstack.scale_test.reports.units import plural as plural
from karpstack.text.shown import cut, listed

from .answer import (
    Answer,
    BlastRadius,
    BlockedEviction,
    CreatedNode,
    Delay,
    FullPool,
    Group,
    Inventory,
    Node,
    RemainingNode,
    ReplacedNode,
    Settings,
    ShorterLife,
    SimulatedPeriod,
    Week,
    WorkloadWithoutNode,
)
from .limits import times_bound

#: Kinds of causes for which a node stays, in words.
WHY = {
    "price": "nothing cheaper would do",
    "pods": "its pods have no other place",
    "pod disruption budget": "a PodDisruptionBudget",
    "do-not-disrupt": "do-not-disrupt",
    "policy": "the NodePool's policy",
    "disruption budget": "the NodePool's disruption budget",
    "replacement": "nothing can replace it",
    "limits": "the NodePool's limits",
    "not replaced yet": "Karpenter's own pace",
    "not settled": "nodes come and go",
    "spot to spot": "from spot to spot",
    "waiting": "it waits",
    "other": "another cause",
    "unknown": "the controller did not say why",
}
_NAMED = 4  # NodePools in the sentence, and names of pods for one cause
_GIST = 300  # characters of why a change was refused, in the sentence
_TELLING = re.compile(r"\bmandatory\b|\berror\b|refus|denied|forbidden", re.IGNORECASE)
# Names of pods in the controller's words, by which nodes differ that stay for the same cause.
_POD = re.compile(r"(?<=\bPod=)[^\s,)]+|(?<=-disrupt on pod )[^\s,;)]+|(?<![\w.-])[\w.-]+/[\w.-]+(?= =>)")
_MINUS = "\N{MINUS SIGN}"
_BOOTS = " with simulated boot times"


def signed_dollars(usd: float) -> str:
    """`+$0.12`, `−$0.12`."""  # noqa: RUF002
    return f"{_MINUS if usd < 0 else '+' if usd > 0 else ''}{units.dollars(abs(usd))}"


def change(before: float | None, after: float | None) -> str:
    """The difference of two amounts of dollars, with its share: `−$0.25 (−20 %)`; empty where one is not known."""  # noqa: RUF002
    if before is None or after is None:
        return ""
    if _alike(before, after):
        return "none"
    share = f" ({_sign(after - before)}{_percent(abs(after - before) / before)})" if before else ""
    return f"{signed_dollars(round(after - before, 6))}{share}"


def _percent(share: float) -> str:
    """`5 %`, or `0.4 %` of what would be none."""
    return f"{100 * share:.1g} %" if 0 < share < 0.005 else units.share(share)


def counted(before: int, after: int) -> str:
    """The difference of two counts: `+2`, `−2`, `none`."""  # noqa: RUF002
    return f"{_sign(after - before)}{abs(after - before)}" if after != before else "none"


def _sign(number: float) -> str:
    return _MINUS if number < 0 else "+"


def sentence(
    before: Inventory,
    after: Inventory | None,
    radius: BlastRadius | None,
    refused: str | None,
    stayed: Sequence[RemainingNode] = (),
    prices_of: str | None = None,
    being_deleted: Sequence[str] = (),
    simulated: bool = False,
    jobs: bool = False,
) -> str:
    """The answer in one sentence; `jobs` tells whether pods of Jobs hold nodes in the cluster, and not here."""
    if refused or after is None or radius is None:
        return (
            f"The change was refused, and what of it was applied is not judged: {_gist(refused or 'nobody said why')}"
        )
    early = sum(one.drifted_before for one in stayed)
    nothing = radius.applied == []
    told = [_nothing(before)] if nothing else [_dollars(before, after, stayed, prices_of), _went(radius, before)]
    if early:
        told.append(f"{plural(early, 'node')} had drifted before the change and {'stays' if early == 1 else 'stay'}")
    told += _drain_for_ever(stayed)
    if being_deleted:
        pools = listed([f"NodePool {name}" for name in being_deleted], _NAMED)
        told.append(f"{pools} cannot be deleted before the last node is gone, and `pulumi up` waits for that")
    if not nothing:
        told.append(_homes(radius, before, simulated))
    if jobs and radius.replaced:
        told.append(
            "in the cluster, nodes with do-not-disrupt pods of Jobs go only when these end, and cost money until then"
        )
    if radius.pods_killed:
        told.append(_killed(radius))
    told += [full_pool(one) for one in radius.full_pools if not one.before]
    told += map(shorter_life, short_lives(radius))
    told += _without_node_pool(radius)
    old, new = (sum(one.nodes for one in side.by_zone if one.name == REGIONAL) for side in (before, after))
    if new > old:
        told.append(f"{plural(new, 'node')} in no availability zone, {old} before")
    return f"{'; '.join(told)}."


def _without_node_pool(radius: BlastRadius) -> Iterator[str]:
    """The workloads that no NodePool fits any more: those that run, and those that wait."""
    running = {(one.namespace, one.workload) for one in radius.not_schedulable_again}
    waiting = {(one.namespace, one.workload) for one in radius.workloads_without_node if one.no_node_pool}
    if not running and not waiting:
        return
    few = f"pods of {len(running)} of them run, and " if running and len(running | waiting) > 1 else ""
    pods = f": {few}pods of {len(waiting) if len(running | waiting) > 1 else 'it'} wait for a node in vain"
    yield (
        f"{plural(len(running | waiting), 'workload')} could not be scheduled again, because no NodePool fits any more"
        f"{pods if waiting else ''}"
    )


def _nothing(before: Inventory) -> str:
    """What is said of a change that updates no resource; what moves then would move without it, too."""
    usd = "" if before.usd_per_hour is None else f", {units.dollars(before.usd_per_hour)} an hour"
    stay = f"{plural(before.nodes, 'node')} {'stays' if before.nodes == 1 else 'stay'}"
    told = [f"Nothing: the change updates no resource, and {stay} as before{usd}"]
    moving = ((before.draining, "out"), (before.launching, "in"))
    if ways := [f"{plural(count, 'node')} on the way {way}" for count, way in moving if count]:
        told.append(f"{' and '.join(ways)}, with or without the change")
    if before.waiting:
        told.append(f"{plural(before.waiting, 'pod')} without a node, as before")
    return "; ".join([*told, "only the base was rehearsed, as both sides are the same"])


def _killed(radius: BlastRadius) -> str:
    first = min(
        (one for one in radius.blocked_evictions if one.deleted_at and not one.before),
        key=lambda one: one.deleted or 0.0,
    )
    are = "is" if radius.pods_killed == 1 else "are"
    when = units.moment(first.deleted_at)
    jobs = sum(
        one.pods for one in radius.blocked_evictions if one.job and one.deleted_at and not one.before and not one.done
    )
    which = "" if radius.pods_killed == 1 else f"{units.count(jobs)} of them "
    unless = f", {which}only if {'its Job still runs' if jobs == 1 else 'their Jobs still run'}"
    return (
        f"{plural(radius.pods_killed, 'pod')} {are} deleted although a PodDisruptionBudget or do-not-disrupt forbids "
        f"it, {'at' if radius.pods_killed == 1 else 'the first at'} {when}{unless if jobs else ''}"
    )


def held_pod_outcome(one: BlockedEviction) -> str:
    """What becomes of pods that something keeps: `held until 14:20, then deleted although ... forbids it`."""
    if one.deleted_at is None and one.until:
        return f"held until {units.moment(one.until)} by {one.details}, then evicted"
    if one.deleted_at is None:
        ends = "" if one.never else ", until its Job has ended" if one.job else ", until more of its pods are ready"
        return f"held for as long as {one.details} forbids it{ends}"
    when = units.moment(one.deleted_at)
    if one.preempted:
        return f"preempted at {when} by pods of a higher priority although {one.details} forbids it"
    if one.done:
        return f"deleted at {when} although {one.details} forbids it"
    after = units.duration(one.deleted)
    ended = ", unless its Job has ended before" if one.job else ""
    if one.earliest:
        return f"deleted at {when} at the earliest ({after}) although {one.details} forbids it{ended}"
    return f"held until {when} ({after}), then deleted although {one.details} forbids it{ended}"


def life(lived: SimulatedPeriod, before: Inventory) -> str:
    """Return what the days that the changed cluster lived were like, in one sentence.

    Args:
        lived: The days.
        before: The nodes before the change; with a curve of replicas, their dollars are not comparable.
    """
    usd = "costs that are not known" if lived.usd_per_day is None else f"{units.dollars(lived.usd_per_day)} a day"
    if lived.usd_per_day is not None and before.usd_per_hour is not None and not lived.curve:
        usd += f" ({units.dollars(24 * before.usd_per_hour)} before the change)"
    gone = sum(lived.disruptions.values())
    why = ", ".join(f"{count} {reason}" for reason, count in lived.disruptions.items())
    told = [f"{span(lived)} of the changed cluster: {usd}", f"{plural(gone, 'node')} to go{f' ({why})' if why else ''}"]
    longest = f", {units.duration(lived.longest_without_node)} at most{_BOOTS}" if lived.pods_without_node else ""
    told.append(f"{plural(lived.pods_without_node, 'pod')} unschedulable for a while{longest}")
    if lived.drifted_nodes:
        told.append(f"{plural(len(lived.drifted_nodes), 'node')} drifted and still there at the end")
    return f"{'; '.join(told)}."


def span(lived: SimulatedPeriod) -> str:
    """Return how long a life was: `7 days`, `36 hours`."""
    hours = (datetime.fromisoformat(lived.ends) - datetime.fromisoformat(lived.begins)).total_seconds() / 3600
    if hours < 2:
        return plural(round(hours * 60), "minute")
    return plural(round(hours), "hour") if hours % 24 > 0.5 or hours < 24 else plural(round(hours / 24), "day")


def pace(lived: SimulatedPeriod) -> str:
    """Return how the days of a life went by."""
    return (
        f"The {span(lived)} took {units.duration(lived.real_seconds)}; {units.duration(lived.skipped_seconds)} of them "
        "were skipped, in which nothing moved. Moments are exact to half an hour."
    )


def drifted(stayed: Sequence[RemainingNode]) -> int:
    """How many nodes are to be replaced for the change, and were not."""
    return sum(one.drifted and not one.drifted_before for one in stayed)


def _gist(refused: str) -> str:
    """The line that says why, of all that was said."""
    lines = [line.strip() for line in refused.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return cut((telling or lines[-1:] or [""])[0], _GIST)


def _dollars(before: Inventory, after: Inventory, stayed: Sequence[RemainingNode], prices_of: str | None) -> str:
    """What the change costs when it is at its end; where it is not, both figures and the nodes in each."""
    never = sum(one.drifted and not one.drifted_before and one.never for one in stayed)
    later = drifted(stayed) - never
    so_far = f", {plural(later, 'drifted node')} not replaced yet" if later else ""
    so_far += f", {plural(never, 'drifted node')} not replaced until {_ends_of_never(stayed)}" if never else ""
    if before.usd_per_hour is None or after.usd_per_hour is None:
        return f"What it costs is not known, because prices are missing{so_far}"
    marked = f", at prices of {prices_of}" if prices_of else ""
    marked += ", with simulated spot prices" if before.spot_simulated or after.spot_simulated else ""
    if after.open_end and not after.draining:
        both = f"{units.dollars(before.usd_per_hour)} an hour before and {units.dollars(after.usd_per_hour)} so far"
        return f"{both}{end_range(after)}{so_far}{marked}"
    if not after.draining:
        if _alike(before.usd_per_hour, after.usd_per_hour):
            return f"As dear as before, {units.dollars(after.usd_per_hour)} an hour{so_far}{marked}"
        both = f"{units.dollars(before.usd_per_hour)} before and {units.dollars(after.usd_per_hour)} after"
        if after.launching:
            return f"{both}, {plural(after.launching, 'node')} not launched yet{so_far}{marked}"
        by = units.dollars(round(abs(after.usd_per_hour - before.usd_per_hour), 6))
        share = abs(after.usd_per_hour / before.usd_per_hour - 1) if before.usd_per_hour else None
        much = f" ({_percent(share)})" if share is not None else ""
        return f"{by}{much} an hour {direction(before, after)}, {both}{so_far}{marked}"
    either = direction(before, after)
    return (
        f"{units.dollars(before.usd_per_hour)} an hour before with {plural(before.nodes, 'node')}, {draining(after)}"
        f"{f', {either} in both cases' if either else end_range(after)}{so_far}{marked}"
    )


def end_range(after: Inventory) -> str:
    """Between which sums the end state is, where Karpenter may still remove or consolidate nodes; else empty."""
    ends = after.open_end
    if not ends:
        return ""
    if not ends.empty:
        used_up = any(cause.used_up for cause in ends.causes)
        return ", and Karpenter may consolidate further when its disruption budget allows it" if used_up else ""
    names = listed([one.node_claim for one in ends.empty], _NAMED)
    runs = "runs" if len(ends.empty) == 1 else "run"
    since = min((one.removable_from for one in ends.empty if one.removable_from), default=None)
    when = f"from {units.moment(since)} on at the latest" if since else "when its disruption budget allows it"
    low = "an unknown sum" if ends.usd_per_hour is None else units.dollars(ends.usd_per_hour)
    return (
        f", in the end between {low} ({plural(ends.nodes, 'node')}) and {units.dollars(after.usd_per_hour or 0.0)} "
        f"({plural(after.nodes, 'node')}): {names} {runs} only DaemonSet pods, and Karpenter may remove "
        f"{'it' if len(ends.empty) == 1 else 'them'} {when}"
    )


def open_end(after: Inventory) -> str:
    """Why the end state is not known, as a sentence; empty where it is."""
    if not after.open_end:
        return ""
    causes = [
        f"{cause.details}{f', until {units.moment(cause.until)} at the latest' if cause.until else ''}"
        for cause in after.open_end.causes
    ]
    return f"The end state is not known yet: {'; '.join(dict.fromkeys(causes))}."


def _ends_of_never(stayed: Sequence[RemainingNode]) -> str:
    """What ends the stay of drifted nodes that nothing replaces."""
    ends = [one for one in stayed if one.drifted and not one.drifted_before and one.never]
    expiring = [one for one in ends if one.expires and not one.drains_forever]
    if not expiring:
        return "somebody changes something"
    first = min(expiring, key=lambda one: datetime.fromisoformat(one.expires or ""))
    which = "it expires" if len(ends) == 1 else "the first one expires"
    return f"somebody changes something or {which}, {expiration(first)}"


def expiration(one: RemainingNode) -> str:
    """When a node expires that nothing replaces, and what becomes of its pods then; empty where it does not."""
    if not one.expires:
        return ""
    if one.drains_forever:
        return (
            f"on {units.moment(one.expires)} at the latest (Karpenter then evicts its other pods without a "
            f"replacement; no terminationGracePeriod ends the drain, so the node drains for ever and {_budget(one)})"
        )
    homeless = any(cause.why in ("replacement", "limits") for cause in one.causes)
    pods = ", and its evicted pods get no node" if homeless else ""
    return f"on {units.moment(one.expires)} at the latest (Karpenter then deletes it without a replacement{pods})"


def _budget(one: RemainingNode, *, several: bool = False) -> str:
    """What a node that drains for ever does to the disruption budget of its NodePool."""
    uses = (
        ("use up" if several else "uses up") if one.uses_up_budget else ("count" if several else "counts") + " against"
    )
    return f"{uses} the disruption budget of NodePool {one.pool}"


def _drain_for_ever(stayed: Sequence[RemainingNode]) -> Iterator[str]:
    """What becomes of drifted nodes that expire and still cannot go, by NodePool."""
    pools: dict[str, list[RemainingNode]] = {}
    for one in stayed:
        if one.drains_forever and not one.drifted_before:
            pools.setdefault(one.pool, []).append(one)
    for nodes in pools.values():
        first = min(nodes, key=lambda one: datetime.fromisoformat(one.expires or ""))
        several = len(nodes) > 1
        why = listed(list(dict.fromkeys(one.drains_forever or "" for one in nodes)), _NAMED)
        drain, expire = ("drain", "they expire, the first") if several else ("drains", "it expires,")
        yield (
            f"{plural(len(nodes), 'drifted node')} {drain} for ever after {expire} on {units.moment(first.expires)} at "
            f"the latest, and then {_budget(first, several=several)}: {why} {'forbid' if ', ' in why else 'forbids'} "
            "an eviction, and no terminationGracePeriod ends the drain"
        )


def draining(after: Inventory) -> str:
    """Dollars while nodes are on their way out, and when they are gone: `$1.13 while 2 nodes drain (11 nodes), ...`."""
    during = during_usd(after)
    drain = f"{plural(after.draining, 'node')} {'drains' if after.draining == 1 else 'drain'}"
    gone = "it is gone" if after.draining == 1 else "they are gone"
    return (
        f"{'an unknown sum' if during is None else units.dollars(during)} while {drain} "
        f"({plural(after.nodes + after.draining, 'node')}), {units.dollars(after.usd_per_hour or 0.0)} when {gone} "
        f"({plural(after.nodes, 'node')})"
    )


def during_usd(after: Inventory) -> float | None:
    """Dollars an hour with the nodes that are on their way out; None where a price is not known."""
    if after.usd_per_hour is None or after.draining_usd_per_hour is None:
        return None
    return after.usd_per_hour + after.draining_usd_per_hour


def direction(before: Inventory, after: Inventory) -> str:
    """`dearer` or `cheaper`; empty where that depends on the moment, or on what Karpenter may still do."""
    signs = {
        None if usd is None or before.usd_per_hour is None else _direction(before.usd_per_hour, usd)
        for usd in (after.usd_per_hour, during_usd(after))
    }
    return (signs.pop() or "") if len(signs) == 1 and not after.launching and not after.open_end else ""


def _direction(before: float, after: float) -> str:
    if _alike(before, after):
        return ""
    return "dearer" if after > before else "cheaper"


def _alike(before: float, after: float) -> bool:
    """Whether nobody would call two amounts of dollars different: less than a thousandth is."""
    return abs(after - before) <= 0.001 * before


def constant(hours: Sequence[Sequence[int]]) -> bool:
    """Whether a week has the same number at each hour."""
    return len({number for row in hours for number in row}) == 1


def _went(radius: BlastRadius, before: Inventory) -> str:
    if not radius.replaced:
        return f"none of {plural(before.nodes, 'node')} goes" if before.nodes else "there was no node"
    goes = "goes" if len(radius.replaced) == 1 else "go"
    many = f"{units.count(len(radius.replaced))} of {plural(before.nodes, 'node')} {goes}"
    if radius.last is None:
        left = sum(one.gone is None for one in radius.replaced)
        stuck = sum(one.never for one in radius.replaced)
        alone = len(radius.replaced) == 1
        why = f", {'and' if alone else f'{units.count(stuck)} of them'} never unless somebody changes something"
        which = (
            "not" if alone else "none of them" if left == len(radius.replaced) else f"{units.count(left)} of them not"
        )
        return f"{many}, {which} gone when the record ends{why if stuck else ''}"
    duration = units.duration(radius.last - (radius.first or 0.0))
    return f"{many} within {duration}, {radius.disrupted_at_once} at once at most"


def _homes(radius: BlastRadius, before: Inventory, simulated: bool) -> str:
    if not radius.pods_without_node and before.waiting:
        return f"no further pod is unschedulable, {plural(before.waiting, 'pod')} had no node before"
    if not radius.pods_without_node:
        return "no pod is unschedulable"
    is_are = "pod is" if radius.pods_without_node == 1 else "pods are"
    return f"{units.count(radius.pods_without_node)} {is_are} unschedulable, {for_how_long(radius, simulated)}"


def for_how_long(radius: BlastRadius, simulated: bool) -> str:
    """Return how long pods were unschedulable: `3 of them 12 s at most, and 2 still have no node`.

    Args:
        radius: The nodes that went, and their pods.
        simulated: Whether boot times are simulated, and with them how long pods wait for a new node.
    """
    boots = _BOOTS if simulated else ""
    if not radius.unschedulable:
        return f"{units.duration(radius.longest_without_node)} at most{boots}"
    left = f"still {'has' if radius.unschedulable == 1 else 'have'} no node"
    others = radius.pods_without_node - radius.unschedulable
    if others <= 0:
        return f"and {left}"
    longest = units.duration(radius.longest_until_node)
    return f"{units.count(others)} of them {longest} at most{boots}, and {units.count(radius.unschedulable)} {left}"


def unschedulable_reason(one: WorkloadWithoutNode) -> str:
    """Return why pods are unschedulable."""
    return "; ".join(filter(None, ("no NodePool fits any more" if one.no_node_pool else "", one.details)))


def verdict(answer: Answer) -> str:
    """The verdict in words."""
    if answer.verdict == "refused":
        return "refused"
    broken = [limit for limit in answer.limits if not limit.within_limit]
    if broken:
        return f"{plural(len(broken), 'limit')} of {len(answer.limits)} exceeded"
    if not is_limited(answer):
        return "no limit is set"
    over = over_limits(answer.blast_radius)
    pools = f", with a warning: {listed([f'NodePool {one.pool}' for one in over], _NAMED)} over its own limits"
    return f"within its limits{pools if over else ''}"


def over_limits(radius: BlastRadius | None) -> list[FullPool]:
    """The NodePools that are over their own limits since the change."""
    return [one for one in radius.full_pools if one.over and not one.before] if radius else []


def short_lives(radius: BlastRadius | None) -> list[ShorterLife]:
    """The NodePools whose nodes live for less than a day since the change."""
    return [one for one in radius.shorter_lives if one.short] if radius else []


def notices(radius: BlastRadius | None) -> list[tuple[str, bool]]:
    """What follows from the NodePools' own settings, and whether the change brings it; a sentence each."""
    if radius is None:
        return []
    found = [(full_pool(one), not one.before) for one in radius.full_pools]
    found += [(shorter_life(one), one.short) for one in radius.shorter_lives]
    return [(capital(text), serious) for text, serious in found]


def shorter_life(one: ShorterLife) -> str:
    """What follows for a NodePool whose nodes expire earlier."""
    often = one.expiring_per_day
    rate = f"about {plural(round(often), 'node')} a day" if often >= 1 else f"about one node in {1 / often:.0f} days"
    return (
        f"nodes of NodePool {one.pool} live {one.after} instead of {one.before}: Karpenter deletes expired nodes "
        f"even if budgets forbid it, and before replacements are ready ({rate})"
    )


def full_pool(one: FullPool) -> str:
    """What follows for a NodePool from its own limits."""
    amounts, since = ", ".join(one.amounts), ", as before the change" if one.before else ""
    if not one.over:
        return (
            f"NodePool {one.pool} has no room for another node within its own limits ({amounts}{since}), so Karpenter "
            "launches none from it for pending pods"
        )
    return (
        f"NodePool {one.pool} is over its own limits ({amounts}{since}), so Karpenter launches no node from it until "
        "it is within them: none for pending pods, and none in place of drifted or expired nodes"
    )


def is_limited(answer: Answer) -> bool:
    """Whether there is any limit that it keeps or breaks, or somebody refused it."""
    return answer.verdict != "within limits" or any(limit.name != "mustSettle" for limit in answer.limits)


def title(answer: Answer) -> str:
    """What was asked."""
    named = f"What if {answer.candidate} on {answer.stack}" if answer.candidate else f"A what-if on {answer.stack}"
    return f"{named}, from {answer.base}" if answer.base else named


def moved(radius: BlastRadius) -> str:
    """How many pods moved: `310, of which 24 preempted`."""
    preempted = f", of which {units.count(radius.pods_preempted)} preempted" if radius.pods_preempted else ""
    return units.count(radius.pods_moved) + preempted


def bound(inventory: Inventory) -> str:
    """What the nodes cost against the lower bound: `$0.80, 1.25×`."""  # noqa: RUF002
    if inventory.lower_bound_usd_per_hour is None:
        return "not known"
    times = times_bound(inventory)
    told = units.dollars(inventory.lower_bound_usd_per_hour)
    return f"{told}, {units.times(times)}" if times is not None else told


def overhead(inventory: Inventory) -> str:
    """What DaemonSets take."""
    if inventory.daemon_sets is None:
        return "none"
    daemons = inventory.daemon_sets
    shares = f"{units.share(daemons.cpu_share)} of CPU, {units.share(daemons.memory_share)} of memory"
    usd = "not known" if daemons.usd_per_hour is None else units.dollars(daemons.usd_per_hour)
    return f"{usd} ({shares})"


def node(one: Node) -> str:
    """A node: what it is."""
    zone = zone_words(one.zone) if one.zone else None
    what = " ".join(part for part in (one.instance_type or "not launched", one.capacity_type, zone) if part)
    return f"{one.node_claim}{f' ({one.name})' if one.name else ''}: {what}"


def cause(one: ReplacedNode) -> str:
    """Why a node went."""
    why = one.reason or ("" if one.details else "nobody said why")
    return ": ".join(part for part in (why, one.details) if part)


def purpose(one: CreatedNode) -> str:
    """What a node came for."""
    if one.reason:
        return f"replacement ({one.reason})"
    if one.for_draining:
        return f"for pods still on draining nodes: {listed(one.for_draining, _NAMED)}"
    return "for pods that waited"


def by_chance(radius: BlastRadius | None) -> bool:
    """Whether new nodes are not one for each that went: how many come depends on the order in which pods move."""
    if radius is None or not radius.replaced:
        return False
    odd = any(one.gone_reason or not (one.reason or one.for_draining) for one in radius.created)
    return odd or len(radius.created) > len(radius.replaced)


def removal_text(one: CreatedNode) -> str:
    """Return when and why a new node was removed; empty if it stayed."""
    if one.gone is None:
        return f"on its way out ({one.gone_reason})" if one.gone_reason else ""
    return f"{units.duration(one.gone)} ({one.gone_reason or 'nobody said why'})"


def held(one: Delay) -> str:
    """What held a node up."""
    whose = f"{plural(one.pods, 'pod')} of {one.workload}" if one.workload else ""
    if one.selecting:
        whose += f", selected by PodDisruptionBudget {', '.join(one.selecting)}"
    what = ": ".join(part for part in (whose, one.details) if part)
    if one.workload:
        return f"{what}, for {units.duration(one.until - one.first)}"
    first, last = units.duration(one.first), units.duration(one.until)
    return f"{what}, said after {first}" + (f" and last after {last}" if last != first else "")


class Row(NamedTuple):
    """Nodes that have something in common, before and after.

    Attributes:
        name: What they have in common.
        nodes: How many.
        usd: Dollars an hour; None where a price is not known.
    """

    name: str
    nodes: tuple[int, int]
    usd: tuple[float | None, float | None]


def groups(before: Inventory, after: Inventory) -> list[tuple[str, list[Row]]]:
    """Nodes before and after by NodePool, instance type, zone and capacity type."""
    zones = [
        [one.model_copy(update={"name": zone_words(one.name)}) for one in side.by_zone] for side in (before, after)
    ]
    return [
        ("NodePool", side_by_side(before.by_pool, after.by_pool)),
        ("instance type", side_by_side(before.by_type, after.by_type)),
        ("zone", side_by_side(*zones)),
        ("capacity type", side_by_side(before.by_capacity_type, after.by_capacity_type)),
    ]


def side_by_side(before: Sequence[Group], after: Sequence[Group]) -> list[Row]:
    """Groups of nodes before and after, in one list."""
    old, new = ({group.name: group for group in groups} for groups in (before, after))
    none = Group(name="", nodes=0, usd_per_hour=0.0)
    pairs = [(name, old.get(name, none), new.get(name, none)) for name in dict.fromkeys([*old, *new])]
    return [Row(name, (one.nodes, other.nodes), (one.usd_per_hour, other.usd_per_hour)) for name, one, other in pairs]


class Cause(NamedTuple):
    """Nodes that stayed for the same cause.

    Attributes:
        why: The kind of cause.
        details: The controller's; of several nodes that differ in the names of pods, with the first few of these.
        said: Whether that was before the change or after it.
        nodes: The nodes.
    """

    why: str
    details: str
    said: str
    nodes: list[RemainingNode]


def causes(stayed: Sequence[RemainingNode]) -> list[Cause]:
    """Nodes that stayed, by their causes: those first that are to go and do not."""
    found: dict[tuple[bool, str, str, str], list[RemainingNode]] = {}
    for one in stayed:
        said = "" if one.reported is None else "before the change" if one.reported < 0 else "after it"
        kinds = " and ".join(dict.fromkeys(WHY[cause.why] for cause in one.causes)) or WHY["unknown"]
        found.setdefault((not one.drifted, kinds, _POD.sub("…", cause_words(one)), said), []).append(one)
    return [
        Cause(("" if settled else "drifted, and stays: ") + kinds, _together(nodes), said, nodes)
        for (settled, kinds, _, said), nodes in sorted(
            found.items(), key=lambda item: (item[0][0], -len(item[1]), item[0])
        )
    ]


def dollars_label(answer: Answer) -> str:
    """`Dollars an hour`, and at which region's prices where those are not the stack's."""
    return f"Dollars an hour{f' (prices of {answer.prices_region})' if answer.prices_region else ''}"


def cause_words(one: RemainingNode) -> str:
    """All causes of a node, each with when it ends."""
    if not one.causes:
        return f"said before the change: {one.details}" if one.details else ""
    told = [
        f"{cause.details}{f', until {units.moment(cause.until)} at the latest' if cause.until else ''}"
        for cause in one.causes
    ]
    if one.consolidation:
        told.append(f"consolidation: {one.consolidation}")
    if one.expires:
        told.append(f"it expires {expiration(one)}")
    return "; ".join(told)


def _together(nodes: Sequence[RemainingNode]) -> str:
    """What was said of several nodes, as of the first, with the pods of the others behind."""
    first, *others = map(cause_words, nodes)
    named = dict.fromkeys(_POD.findall(first))
    more = [pod for pod in dict.fromkeys(pod for words in others for pod in _POD.findall(words)) if pod not in named]
    if not more:
        return first
    shown = more[: _NAMED - 1]
    rest = f" and {units.count(len(more) - len(shown))} more" if len(more) > len(shown) else ""
    return f"{first}; also {', '.join(shown)}{rest}"


def settings(used: Settings) -> list[str]:
    """What was made other than it is, a sentence each."""
    said = []
    if used.wait_factor != 1:
        said.append(f"Waits that NodePools ask for were divided by {used.wait_factor:g}.")
    said += [
        f"NodePool {one.pool}: {one.setting} was {one.used} in the rehearsal, the stack has {one.asked}."
        for one in used.shortened
    ]
    if used.clock:
        said.append(
            f"Seconds are cluster time, which ran {used.clock.speed:.1f} times as fast as this machine's on average; "
            f"no timer was late by more than {used.clock.late:.2f} s of it."
        )
    if used.at:
        said.append(f"Asked for {units.moment(used.at)}, not for the time of the rehearsal.")
    return said


def capital(text: str) -> str:
    """A sentence as it begins, and ends, in a list."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def budgets_now(week: Week) -> str:
    """Whether disruption budgets let happen what the change asks for."""
    if week.possible_now is None:
        return "the change asked them for nothing"
    if not week.possible_now:
        return f"they forbid it now: {', '.join(week.blocked)}"
    return (
        f"they allow the change, and are used up when the record ends: {'; '.join(week.used_up)}"
        if week.used_up
        else ("they allow the change now")
    )


def lasted(answer: Answer) -> str:
    """How long the change was followed, and whether it had settled then."""
    if answer.blast_radius and answer.blast_radius.applied == []:
        return "not waited for: nothing was changed"
    seconds = units.duration(answer.blast_radius.seconds if answer.blast_radius else None)
    gave_up = any(moment.gave_up for moment in answer.moments if moment.phase == "change-settled")
    return f"not settled after {seconds}" if gave_up else f"settled after {seconds}"


def weekday(moment: str) -> int:
    """Day of the week of a moment, from 0 for Monday."""
    return datetime.fromisoformat(moment).weekday()
