"""What a change set in motion: the nodes that went, in which order and why, what came, and whose pods had to move."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from karpstack.scale_test.judging.replay import NodeClaim, Pod
from karpstack.scale_test.judging.terminations import deadline, grace
from karpstack.scale_test.numbers.disruptions import reason as disruption_reason
from karpstack.scale_test.numbers.figures import accumulate

from .answer import BlastRadius, CreatedNode, Delay, Planned, RemainingNode, ReplacedNode
from .departures import Departure, departures
from .events import NodeEvent, events_of_claim
from .expiration import shorter_lives
from .held_pods import held_pods, permanent_hold
from .holds import pods_with_holds, selecting, unique_holds
from .nodes import described
from .phases import WhatifTimeline, awaits_replacement, is_leaving, is_present
from .pool_limits import full_pools
from .prices import Priced
from .rescheduling import not_schedulable_again, unschedulable_at_end
from .unscheduled_pods import unscheduled_pods, workload_of

# Longer than a pod that nothing keeps waits to be evicted: the controller evicts a hundred a second at the least, and
# tries again after 0.1 s what was refused, then ever more rarely until it is 10 s (sigs.k8s.io/karpenter 1.15,
# pkg/controllers/node/termination/terminator/eviction.go).
_EVICTION_SECONDS = 5.0
_RECORDED_WITHIN = timedelta(seconds=1)  # of each other: what happens at the same time to several objects
_LAUNCHING = "Launching NodeClaim: "
# Of the cheapest offering of the type, also where the NodePool may not have that (EstimatedSavings in
# pkg/controllers/disruption/types.go), so it is not the difference of the dollars.
_SAVINGS = re.compile(r"\(savings: ([^)]*)\)")
_ESTIMATE = r"(Karpenter's own estimate of the savings, by the new type's lowest price, also of spot: \1)"
_NODES = re.compile(r"part of (\d+)-node consolidation")
# Karpenter waits 15 s before it decides on a further consolidation (commandValidationDelay).
_DECIDED = timedelta(seconds=7)
_WANTED = ("ConsolidationCandidate", "ConsolidationApproved")  # the first one tells more


def blast_radius(told: WhatifTimeline, market: Priced, stayed: Sequence[RemainingNode] = ()) -> BlastRadius:
    """What happened between the beginning of the change and its end, and what follows from it.

    Args:
        told: The timeline.
        market: Prices.
        stayed: The nodes that stayed.
    """
    kept = held_pods(told, stayed)
    went = sorted((claim for claim in told.claims if _went(told, claim)), key=lambda claim: claim.disrupted or told.end)
    departed = departures(told)
    replaced = [_replaced(told, market, claim, order, departed) for order, claim in enumerate(went, 1)]
    lived, in_vain = unscheduled_pods(told), unschedulable_at_end(told, market)
    return BlastRadius(
        applied=_planned(told),
        seconds=told.t(told.end),
        replaced=replaced,
        created=[_made(told, market, claim) for claim in told.claims if told.before < claim.first_seen <= told.end],
        disrupted_at_once=_at_once(went),
        first=min((one.decided for one in replaced), default=None),
        last=_last(replaced),
        pods_moved=len(departed),
        pods_preempted=sum(one.preempted for one in departed),
        workloads_without_node=[
            one.model_copy(update={"no_node_pool": (one.namespace, one.workload) in in_vain}) for one in lived.workloads
        ],
        pods_without_node=lived.pods,
        pods_without_node_at_once=lived.at_once,
        longest_without_node=lived.longest,
        longest_until_node=lived.longest_until_node,
        unschedulable=lived.unschedulable,
        not_schedulable_again=not_schedulable_again(told, market),
        blocked_evictions=kept,
        full_pools=full_pools(told, market),
        shorter_lives=shorter_lives(told),
        pods_killed=sum(one.pods for one in kept if one.deleted is not None and not one.before),
    )


def _went(told: WhatifTimeline, claim: NodeClaim) -> bool:
    """Whether a node was there and to stay when the change began, and was to go before its end."""
    decided = claim.disrupted
    return claim.first_seen <= told.before and decided is not None and told.before < decided <= told.end


def _replaced(
    told: WhatifTimeline, market: Priced, claim: NodeClaim, order: int, departed: Sequence[Departure]
) -> ReplacedNode:
    decided = claim.disrupted or told.end
    said = events_of_claim(told.replay, claim)
    why = disruption_reason(told.replay, claim)
    pods = [pod for pod in told.on(claim, decided) if not pod.of_daemon_set]
    return ReplacedNode(
        **described(claim, market),
        order=order,
        reason=why,
        details=_words(told, claim, why, said),
        decided=told.t(decided),
        drained=told.t(claim.reached["Drained"]) if "Drained" in claim.reached else None,
        gone=told.t(claim.gone) if claim.gone else None,
        pods=sum(one.claim is claim for one in departed),
        delays=[
            *_blocked(told, claim, why, said),
            *_replacements(told, claim),
            *_evictions(told, claim, said, pods),
        ],
        never=awaits_replacement(claim, told.end) or _drains_for_ever(told, claim),
    )


def _drains_for_ever(told: WhatifTimeline, claim: NodeClaim) -> bool:
    """Whether a node drains until somebody changes something: no deadline, and a pod that nothing lets go."""
    if claim.deleting is None or claim.deleting > told.end or deadline(claim) or not is_present(claim, told.end):
        return False
    return permanent_hold(told, claim) is not None


def _words(told: WhatifTimeline, claim: NodeClaim, why: str | None, said: list[NodeEvent]) -> str | None:
    """What exactly was the cause, as far as anybody said it."""
    if why == "Drifted":
        drift = claim.conditions.get("Drifted", {})
        return str(drift.get("reason") or drift.get("message") or "") or None
    if why == "Underutilized":
        wanted = [one for one in said if one.reason in _WANTED and not _of_other_command(told, claim, one)]
        found = next((one.details for reason in _WANTED for one in reversed(wanted) if one.reason == reason), None)
        return _SAVINGS.sub(_ESTIMATE, found) if found else None
    if why is None and told.is_deleted(claim.node_pool):
        return f"its NodePool {claim.node_pool} was deleted"
    return None


def _of_other_command(told: WhatifTimeline, claim: NodeClaim, said: NodeEvent) -> bool:
    """Whether an event is about a consolidation that Karpenter considered and did not do.

    It tells candidates of each replacement that it computes, also of those that it then discards, and none of a node
    that goes without a replacement (`computeConsolidation` in pkg/controllers/disruption/consolidation.go).
    """
    if said.reason != _WANTED[0] or claim.disrupted is None:
        return False
    together = sum(one.disrupted is not None and abs(one.disrupted - claim.disrupted) < _DECIDED for one in told.claims)
    found = _NODES.search(said.details)
    return int(found[1] if found else 1) != together or not any(
        abs(one.first_seen - claim.disrupted) < _DECIDED
        and any(event.reason == "DisruptionLaunching" for event in events_of_claim(told.replay, one))
        for one in told.claims
    )


def _blocked(told: WhatifTimeline, claim: NodeClaim, why: str | None, said: list[NodeEvent]) -> list[Delay]:
    """What kept it before it was decided, by the controller's events.

    Drift of a NodeClaim with a terminationGracePeriod waits for no pod: such an event is about consolidation. So is
    each event of a node whose NodePool somebody deletes, because a deletion waits for nothing.
    """
    if why is None and told.is_deleted(claim.node_pool):
        return []
    decided = claim.disrupted or told.end
    of_pods = why != "Drifted" or grace(claim) is None
    found: dict[str, list[NodeEvent]] = {}
    for one in said:
        about_pods = bool(one.pods or one.pod_disruption_budgets)
        if one.holds_up and told.before < one.time < decided and (of_pods or not about_pods):
            found.setdefault(one.details, []).append(one)
    # From when to when it was said: what held between that and the decision, nobody said.
    return [
        Delay(
            details=words,
            pod_disruption_budgets=times[0].pod_disruption_budgets,
            workload=None,
            pods=0,
            first=told.t(times[0].time),
            until=told.t(times[-1].time),
        )
        for words, times in found.items()
    ]


def _replacements(told: WhatifTimeline, claim: NodeClaim) -> Iterator[Delay]:
    """Replacements that are not ready, so that Karpenter keeps the node that it chose."""
    if not awaits_replacement(claim, told.end) or claim.disrupted is None:
        return
    for one in told.claims:
        if one.first_seen >= claim.disrupted and one.present_at(told.end) and "Initialized" not in one.reached:
            why = one.conditions.get("Initialized", {}).get("message") or "Karpenter does not say why"
            yield Delay(
                details=f"its replacement {one.name} does not become ready: {why}",
                pod_disruption_budgets=[],
                workload=None,
                pods=0,
                first=told.t(claim.disrupted),
                until=told.t(told.end),
            )


def _evictions(told: WhatifTimeline, claim: NodeClaim, said: list[NodeEvent], pods: list[Pod]) -> Iterator[Delay]:
    """Workloads whose pods waited to be evicted after the drain had begun.

    Of the reasons why a node is not drained the controller tells one in two minutes, so that a PodDisruptionBudget need
    not be named by it. But a pod that is evicted is deleted at once.
    """
    begun = claim.deleting
    if begun is None:
        return
    waiting: dict[str, list[Pod]] = {}
    for pod in pods:
        if (_evicted(told, pod) - begun).total_seconds() > _EVICTION_SECONDS:
            waiting.setdefault("/".join(workload_of(pod)), []).append(pod)
    draining = [one for one in said if one.of_draining and one.time >= begun]
    words = next((one for one in reversed(draining) if one.holds_up), draining[-1] if draining else None)
    for workload, kept in waiting.items():
        now = list(unique_holds(pods_with_holds(told.replay, kept, told.end)))
        yield Delay(
            details="; ".join(one.details for one in now) or (words.details if words else None),
            pod_disruption_budgets=words.pod_disruption_budgets if words else [],
            selecting=sorted({f"{pod.namespace}/{name}" for pod in kept for name, _ in selecting(told.replay, pod)}),
            workload=workload,
            pods=len(kept),
            first=told.t(begun),
            until=told.t(max(_evicted(told, pod) for pod in kept)),
        )


def _evicted(told: WhatifTimeline, pod: Pod) -> datetime:
    return min(pod.leaving or told.end, told.end)


def _made(told: WhatifTimeline, market: Priced, claim: NodeClaim) -> CreatedNode:
    launching = (one.details for one in events_of_claim(told.replay, claim) if one.reason == "DisruptionLaunching")
    words = next(launching, "")
    return CreatedNode(
        **described(claim, market),
        since=told.t(claim.first_seen),
        reason=words.removeprefix(_LAUNCHING) or None,
        for_draining=[] if words else _drained_for(told, claim.first_seen),
        gone=told.t(claim.gone) if claim.gone and claim.gone <= told.end else None,
        gone_reason=disruption_reason(told.replay, claim) if is_leaving(claim, told.end) else None,
    )


def _drained_for(told: WhatifTimeline, time: datetime) -> list[str]:
    """The draining nodes for whose pods a node came at a moment; none where it came for pods that waited.

    Karpenter also plans nodes for pods that are still on nodes that it deletes (`Schedule` in
    pkg/controllers/provisioning/provisioner.go), for example held ones.
    """
    before = time - _RECORDED_WITHIN
    for pod in told.replay.all_pods.values():
        if not pod.of_daemon_set and pod.present_at(time) and (pod.scheduled is None or pod.scheduled > before):
            return []
    return [
        claim.name
        for claim in told.claims
        if is_present(claim, time)
        and is_leaving(claim, time)
        and any(not pod.of_daemon_set for pod in told.on(claim, time))
    ]


def _at_once(went: Iterable[NodeClaim]) -> int:
    """How many nodes were on their way out at once, as Karpenter's budgets count them: until the instance is ending.

    `BuildDisruptionBudgetMapping` in pkg/controllers/disruption/helpers.go leaves out what is InstanceTerminating.
    """
    changes: list[tuple[datetime | None, float]] = []
    for claim in went:
        changes += [(claim.disrupted, 1.0), (claim.reached.get("InstanceTerminating", claim.gone), -1.0)]
    return round(max((count for _, count in accumulate(changes)), default=0))


def _last(replaced: list[ReplacedNode]) -> float | None:
    gone = [one.gone for one in replaced if one.gone is not None]
    return max(gone) if gone and len(gone) == len(replaced) else None


def _planned(told: WhatifTimeline) -> list[Planned] | None:
    changes = told.phases.get("change-applied", {}).get("changes")
    if changes is None:
        return None
    return [Planned(op=one["op"], type=one["type"], name=one["name"], what=one.get("what", "")) for one in changes]
