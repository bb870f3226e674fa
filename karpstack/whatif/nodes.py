"""The nodes of all NodePools at a moment: how many, of what kind, and what they cost against the least possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from karpstack.karpenter.requirements import RequirementError
from karpstack.scale_test.judging.replay import NodeClaim, Pod
from karpstack.scale_test.market.quantities import total
from karpstack.scale_test.numbers.cost import NoBoundError, hourly, least_cost
from karpstack.scale_test.numbers.figures import accumulate, merge_steps
from karpstack.scale_test.numbers.node_pool_choice import reason_to_skip

from .answer import DaemonSets, Group, Inventory, Point
from .holds import has_no_planned_room
from .phases import WhatifTimeline, awaits_replacement, is_leaving, is_present
from .prices import Priced

_DIGITS = 6  # of a dollar
_SPOT = "spot"


def described(claim: NodeClaim, market: Priced) -> dict[str, Any]:
    """What `answer.Node` has of a NodeClaim."""
    bought = claim.offering
    # A rehearsal invents names, and gives them again; the user's own node has the name that the snapshot has.
    return {
        "node_claim": claim.name,
        "name": claim.stands_for or (None if market.replay.simulated(claim) else claim.node),
        "pool": claim.node_pool,
        "instance_type": bought.instance_type if bought else None,
        "zone": bought.zone if bought else None,
        "capacity_type": bought.capacity_type if bought else None,
        "usd_per_hour": market.usd(claim),
    }


def inventory(told: WhatifTimeline, market: Priced, time: datetime) -> Inventory:
    """The nodes at a moment: those that stay; nodes on their way out are counted apart.

    A node whose replacement does not become ready stays, although Karpenter wants it to go.
    """
    launched = [claim for claim in told.claims if is_present(claim, time)]
    going = [claim for claim in launched if is_leaving(claim, time) and not awaits_replacement(claim, time)]
    claims = [claim for claim in launched if claim not in going]
    offerings = [claim.offering for claim in claims if claim.offering]
    bound, no_bound = _lower_bound(told, market, claims, going, time)
    return Inventory(
        at=time.isoformat(),
        nodes=len(claims),
        draining=len(going),
        launching=sum(
            claim.present_at(time) and not is_present(claim, time) and not is_leaving(claim, time)
            for claim in told.claims
        ),
        usd_per_hour=_dollars(claims, market),
        draining_usd_per_hour=_dollars(going, market),
        known_usd_per_hour=round(sum(market.usd(claim) or 0.0 for claim in claims), _DIGITS),
        unpriced=sorted({one.instance_type for one in offerings if market.of(one) is None}),
        spot_usd_per_hour=_dollars([claim for claim in claims if _capacity_type(claim) == _SPOT], market),
        spot_simulated=any(market.is_simulated(one) for one in offerings),
        on_demand_usd_per_hour=_dollars([claim for claim in claims if _capacity_type(claim) != _SPOT], market),
        by_pool=_grouped(claims, market, lambda claim: claim.node_pool),
        by_type=_grouped(claims, market, lambda claim: claim.offering.instance_type if claim.offering else ""),
        by_zone=_grouped(claims, market, lambda claim: claim.offering.zone if claim.offering else ""),
        by_capacity_type=_grouped(claims, market, _capacity_type),
        lower_bound_usd_per_hour=bound,
        no_lower_bound=no_bound,
        daemon_sets=_daemon_sets(told, market, claims, time),
        pods=sum(not pod.of_daemon_set for claim in launched for pod in told.on(claim, time)),
        waiting=sum(waits(pod, time) for pod in told.pods),
    )


def waits(pod: Pod, time: datetime) -> bool:
    """Whether a pod was there at a moment and had no node."""
    return pod.present_at(time) and (pod.scheduled is None or pod.scheduled > time)


def series(told: WhatifTimeline, market: Priced, begin: datetime, end: datetime) -> list[Point]:
    """Nodes and dollars an hour between two moments, at each change."""
    counts = accumulate(
        (moment, change)
        for claim in told.claims
        if (launched := claim.reached.get("Launched"))
        for moment, change in ((max(launched, begin), 1.0), (max(claim.gone, begin) if claim.gone else None, -1.0))
    )
    spent = hourly(told.claims, market.usd, begin)
    return [
        Point(t=told.t(moment), nodes=round(nodes), usd_per_hour=round(usd, _DIGITS))
        for moment, (nodes, usd) in merge_steps(begin, end, counts, spent)
    ]


def _capacity_type(claim: NodeClaim) -> str:
    return claim.offering.capacity_type if claim.offering else ""


def _dollars(claims: Iterable[NodeClaim], market: Priced) -> float | None:
    prices = [market.usd(claim) for claim in claims]
    known = [price for price in prices if price is not None]
    return round(sum(known), _DIGITS) if len(known) == len(prices) else None


def _grouped(claims: Sequence[NodeClaim], market: Priced, name: Callable[[NodeClaim], str]) -> list[Group]:
    groups: dict[str, list[NodeClaim]] = {}
    for claim in claims:
        groups.setdefault(name(claim) or "not known", []).append(claim)
    return [
        Group(name=name, nodes=len(members), usd_per_hour=_dollars(members, market))
        for name, members in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    ]


def _lower_bound(
    told: WhatifTimeline, market: Priced, claims: Sequence[NodeClaim], going: Sequence[NodeClaim], time: datetime
) -> tuple[float | None, str | None]:
    """The least that the pods on the nodes could cost an hour, or why that is not known.

    Pods of DaemonSets are left out: fewer nodes would have fewer of them. So are pods on nodes on their way out for
    which Karpenter plans no room, because the dollars have no node for them either.
    """
    pods = [pod for claim in claims for pod in told.on(claim, time)]
    pods += [pod for claim in going for pod in told.on(claim, time) if not has_no_planned_room(told.replay, pod, time)]
    pods = [pod for pod in pods if not pod.of_daemon_set]
    excerpts = {
        name: found
        for name in told.replay.node_pools
        if (found := told.replay.node_pool_at(name, time)) and reason_to_skip(found) != "going"
    }
    try:
        if not all("spec" in excerpt for excerpt in excerpts.values()):
            raise NoBoundError("the record does not tell what the NodePools may launch")
        least = least_cost(pods, excerpts, told.replay, market)
    except (NoBoundError, RequirementError) as error:
        return None, str(error)
    return (None, "nothing is on sale") if least is None else (round(least, _DIGITS), None)


def _daemon_sets(
    told: WhatifTimeline, market: Priced, claims: Sequence[NodeClaim], time: datetime
) -> DaemonSets | None:
    daemons = [[pod for pod in told.on(claim, time) if pod.of_daemon_set] for claim in claims]
    own = told.own_daemon_sets()
    if not (any(daemons) or (claims and any(own.values()))):
        return None
    room = [told.replay.allocatable(claim) for claim in claims]
    cpus = [own["cpu"] + sum(pod.cpu for pod in pods) for pods in daemons]
    memories = [own["memory"] + sum(pod.memory for pod in pods) for pods in daemons]
    cpu, memory = sum(cpus), sum(memories)
    usd: float | None = 0.0
    for claim, allocatable, used, held in zip(claims, room, cpus, memories, strict=True):
        shares = (_share(used, total([allocatable], "cpu")), _share(held, total([allocatable], "memory")))
        price = market.usd(claim)
        usd = None if price is None or usd is None else usd + max(shares) * price
    return DaemonSets(
        cpu=round(cpu, 3),
        memory=memory,
        cpu_share=round(_share(cpu, total(room, "cpu")), 4),
        memory_share=round(_share(memory, total(room, "memory")), 4),
        usd_per_hour=None if usd is None else round(usd, _DIGITS),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
