"""Why a node is still there when the record ends, from the recorded objects and the controller's events together.

The causes are those that Karpenter checks (sigs.k8s.io/karpenter 1.15, pkg/controllers/disruption): first the node and
its pods (types.go), then the NodePool's budget (helpers.go), then whether its pods find another place (drift.go).

Karpenter says what blocks a node at most once in two minutes, and that it cannot be consolidated once in fifteen. So an
event decides nothing that the objects decide. What was said before the change counts only for consolidation, and only
as long as the NodePools, of which another may have a cheaper node, and the pods on the node are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from karpstack.karpenter.budgets import BudgetError, allowed, budgets, calendar
from karpstack.scale_test.judging.replay import NodeClaim, Pod
from karpstack.scale_test.judging.terminations import deadline, grace
from karpstack.scale_test.numbers.disruptions import reason as disruption_reason
from karpstack.scale_test.recording.timeline import Line
from karpstack.scale_test.reports.units import plural
from karpstack.text.shown import listed

from .answer import Cause, RemainingNode, Why
from .events import NodeEvent, events_of_claim, staying_events
from .holds import known_budgets, pods_with_holds, unique_holds
from .nodes import described
from .phases import WhatifTimeline, is_leaving, is_present, stays
from .prices import Priced
from .rescheduling import Places
from .week import asked_spec, simulated_offset

_TRUE = "True"
_SAID_AGAIN = timedelta(seconds=150)  # two minutes, and the time between two checks
_AHEAD = timedelta(days=8)  # in which a budget may allow something again
_NAMED = 4  # nodes in a sentence
#: What `DisruptionBlocked` says of a node whose pods are no candidate's; the objects decide it where they are recorded.
_OF_PODS: tuple[Why, ...] = ("pod disruption budget", "do-not-disrupt")
_BY_OBJECTS: tuple[Why, ...] = (*_OF_PODS, "policy")


def remaining(told: WhatifTimeline, market: Priced) -> list[RemainingNode]:
    """The nodes that were there when the change began, and still were to stay at its end."""
    stayed = [claim for claim in told.claims if claim.first_seen <= told.before and stays(claim, told.end)]
    return staying(told, market, stayed)


def staying(told: WhatifTimeline, market: Priced, claims: Iterable[NodeClaim]) -> list[RemainingNode]:
    """Return why some nodes are still there at the end."""
    places = Places(told, market)
    found = [_remaining(told, market, places, claim) for claim in claims]
    return sorted(found, key=lambda one: (not one.drifted, one.why, one.details or "", one.pool, one.node_claim))


def _remaining(told: WhatifTimeline, market: Priced, places: Places, claim: NodeClaim) -> RemainingNode:
    drifted = claim.conditions.get("Drifted", {}).get("status") == _TRUE
    said = [one for one in staying_events(events_of_claim(told.replay, claim)) if one.lasting]
    if told.as_is:  # until all was loaded, what-if itself kept the nodes
        said = [one for one in said if one.time >= told.at("loaded")]
    found = list(_of_drift(told, places, claim, said) if drifted else _of_consolidation(told, claim, said))
    causes = list(dict.fromkeys((cause.why, cause.details) for cause, _ in found))
    kept = [next(cause for cause, _ in found if (cause.why, cause.details) == key) for key in causes]
    times = [one.time for _, one in found if one]
    before = None if drifted else next((one for one in reversed(said) if one.why not in _BY_OBJECTS), None)
    return RemainingNode(
        **described(claim, market),
        why=kept[0].why if kept else "unknown",
        details=kept[0].details if kept else before.details if before else None,
        causes=kept,
        reported=told.t(max(times)) if times else told.t(before.time) if before and not kept else None,
        cause_known=bool(kept),
        drifted=drifted,
        drifted_before=drifted and drifted_before(told, claim),
        never=drifted and any(cause.never for cause in kept),
        consolidation=_consolidation(told, claim, said) if drifted else None,
    )


def _consolidation(told: WhatifTimeline, claim: NodeClaim, said: list[NodeEvent]) -> str | None:
    """Why consolidation, which took other nodes of the NodePool since the change, leaves a drifted node."""
    took = any(
        one.node_pool == claim.node_pool
        and is_leaving(one, told.end)
        and not is_leaving(one, told.before)
        and disruption_reason(told.replay, one) == "Underutilized"
        for one in told.claims
    )
    if not took:
        return None
    since = (one.details for one in reversed(said) if one.reason == "Unconsolidatable" and one.time >= told.before)
    return next(since, "Karpenter did not say why it leaves this node")


def drifted_before(told: WhatifTimeline, claim: NodeClaim) -> bool:
    """Return whether a NodeClaim had drifted before the change, which left its NodePool as it was."""
    since = claim.reached.get("Drifted")
    then = told.replay.node_pool_at(claim.node_pool, told.before) or {}
    return since is not None and since <= told.before and then.get("spec") == _spec(told, claim.node_pool)


def _of_drift(
    told: WhatifTimeline, places: Places, claim: NodeClaim, said: list[NodeEvent]
) -> Iterator[tuple[Cause, NodeEvent | None]]:
    """Why a drifted node is not replaced; what consolidation thinks of it is no cause.

    Karpenter tells one blocker of a node in two minutes, and consolidation's may come first (`Blocked` in
    pkg/controllers/disruption/events). So whether its pods have another place is also computed.
    """
    since = [one for one in said if one.reason == "DisruptionBlocked" and _is_now(told, one)]
    found = list(_of_node(told, claim))
    if grace(claim) is None:
        found += _of_pods(told, claim, since)
    if budget := budget_cause(told, claim.node_pool, "Drifted"):
        found.append((budget, None))
    last = next((one for one in reversed(since) if one.why not in _OF_PODS), None)
    if last:
        why: Why = "limits" if last.why == "limits" else "replacement"
        found.append((Cause(why=why, details=last.details, never=True), last))
    elif workload := places.lacking(claim):
        words = f"no NodePool could have a node for the pods of {workload}, and no other node has room for them"
        found.append((Cause(why="replacement", details=words, never=True), None))
    if not found and any(is_leaving(one, told.end) and one.gone is None for one in told.claims):
        words = "Karpenter replaces one drifted node after another, and had not come to this one"
        found.append((Cause(why="not replaced yet", details=words), None))
    return iter(found)


def _of_consolidation(
    told: WhatifTimeline, claim: NodeClaim, said: list[NodeEvent]
) -> Iterator[tuple[Cause, NodeEvent | None]]:
    """Why a node is not consolidated."""
    spec = _spec(told, claim.node_pool)
    disruption = spec.get("disruption") or {}
    name = f"NodePool {claim.node_pool}"
    if spec.get("replicas") is not None:
        yield Cause(why="policy", details=f"{name} has a fixed number of nodes"), None
        return
    yield from _of_node(told, claim)
    yield from _of_pods(told, claim, [one for one in said if _is_now(told, one)])
    last = next((one for one in reversed(said) if one.why not in _OF_PODS and _holds_still(told, claim, one)), None)
    if last:
        yield Cause(why=last.why, details=last.details), last
    elif disruption.get("consolidateAfter") == "Never":
        yield Cause(why="policy", details=f"consolidateAfter of {name} is Never"), None
    elif disruption.get("consolidationPolicy") == "WhenEmpty" and _pods(told, claim):
        yield Cause(why="policy", details=f"{name} consolidates empty nodes alone, and this one has pods"), None
    elif (after := disruption.get("consolidateAfter")) and claim.conditions.get("Consolidatable", {}).get(
        "status"
    ) != _TRUE:
        yield Cause(why="waiting", details=f"consolidateAfter of {name} is {after}, which was not over"), None
    elif budget := budget_cause(told, claim.node_pool, "Underutilized" if _pods(told, claim) else "Empty"):
        yield budget, None


def _is_now(told: WhatifTimeline, said: NodeEvent) -> bool:
    """Whether an event on what blocks a node holds still: Karpenter says it again every two minutes."""
    return said.time >= max(told.before, told.end - _SAID_AGAIN)


def _of_node(told: WhatifTimeline, claim: NodeClaim) -> Iterator[tuple[Cause, NodeEvent | None]]:
    if _TRUE.lower() in (claim.do_not_disrupt, claim.own_node.get("doNotDisrupt")):
        yield Cause(why="do-not-disrupt", details="karpenter.sh/do-not-disrupt on the node", never=True), None


def _of_pods(
    told: WhatifTimeline, claim: NodeClaim, since: list[NodeEvent]
) -> Iterator[tuple[Cause, NodeEvent | None]]:
    """What holds the node's pods: by the objects, and by events on pods and budgets that are not recorded."""
    pods = _all_pods(told, claim)
    for one in unique_holds(pods_with_holds(told.replay, pods, told.end)):
        until = one.until.isoformat() if one.until else None
        yield Cause(why=one.why, details=one.details, until=until, never=one.never), None
    recorded = {f"{pod.namespace}/{pod.name}" for pod in told.replay.all_pods.values() if pod.do_not_disrupt}
    for said in reversed(since):
        budgets_named, pods_named = said.pod_disruption_budgets, said.pods
        decided = known_budgets(told.replay, budgets_named) if budgets_named else recorded.issuperset(pods_named)
        if said.why in _OF_PODS and not (decided and (budgets_named or pods_named)):
            yield Cause(why=said.why, details=said.details), said
            return


def _holds_still(told: WhatifTimeline, claim: NodeClaim, said: NodeEvent) -> bool:
    """Whether what was said of consolidation is about the node and the NodePool as they are when the record ends."""
    if any(_moved(pod, said) for pod in told.pods if pod.node and pod.node == claim.node):
        return False
    if said.why == "policy":  # the NodePool itself says it, and an event may be about what it was a moment before
        return not _spec(told, claim.node_pool)
    return said.time >= told.before or _specs(told, said.time) == _specs(told, told.end)


def _moved(pod: Pod, said: NodeEvent) -> bool:
    """Whether a pod came to its node or began to leave it after something was said."""
    return bool((pod.scheduled and pod.scheduled > said.time) or (pod.leaving and pod.leaving > said.time))


def _specs(told: WhatifTimeline, time: datetime) -> dict[str, Line]:
    """The NodePools at a moment: name -> `spec`."""
    found = {name: told.replay.node_pool_at(name, time) for name in told.replay.node_pools}
    return {name: one.get("spec") or {} for name, one in found.items() if one}


def _spec(told: WhatifTimeline, pool: str) -> Line:
    spec: Line = (told.replay.node_pool_at(pool, told.end) or {}).get("spec") or {}
    return spec


def _all_pods(told: WhatifTimeline, claim: NodeClaim) -> list[Pod]:
    return told.on(claim, told.end)


def _pods(told: WhatifTimeline, claim: NodeClaim) -> list[Pod]:
    return [pod for pod in _all_pods(told, claim) if not pod.of_daemon_set]


class _Use(NamedTuple):
    """How far a NodePool's budget is used.

    Attributes:
        nodes: Nodes of which shares are taken.
        disrupting: Those of them that use it.
    """

    nodes: int
    disrupting: list[NodeClaim]


def _use(told: WhatifTimeline, pool: str) -> _Use:
    """As `NodePoolStatsFromNodes` counts them: initialized nodes whose instance is not ending; going or not ready."""
    counted = [
        claim
        for claim in told.claims
        if claim.node_pool == pool
        and is_present(claim, told.end)
        and "Initialized" in claim.reached
        and claim.conditions.get("InstanceTerminating", {}).get("status") != _TRUE
    ]
    return _Use(len(counted), [claim for claim in counted if is_leaving(claim, told.end) or _not_ready(claim)])


def _not_ready(claim: NodeClaim) -> bool:
    ready = [one for one in claim.own_node.get("conditions", ()) if one["type"] == "Ready"]
    return bool(ready) and ready[0]["status"] != _TRUE


def budget_cause(told: WhatifTimeline, pool: str, reason: str) -> Cause | None:
    """Return why the budgets of a NodePool let no further node go when the record ends; None where they let one go."""
    spec = _spec(told, pool)
    if not spec:
        return None
    use = _use(told, pool)
    try:
        most = allowed(budgets(spec), reason, use.nodes, told.end)
        # The rehearsal may have had the budgets of one moment for good; what opens later is the stack's to say.
        own, now = budgets(asked_spec(told, pool, spec)), told.end + simulated_offset(told)
        ahead = () if most else calendar(own, reason, use.nodes, now, now + _AHEAD)
        later = next((moment for moment, number in ahead if number), None)
    except BudgetError as error:
        return Cause(why="disruption budget", details=str(error), never=True)
    if not most:
        about = [budget for budget in own if budget.reasons is None or reason in budget.reasons]
        never = any(budget.schedule is None and not budget.limit(use.nodes) for budget in about)
        # Schedules that are the same every week and allow nothing in one week allow nothing in any.
        never = never or (later is None and all(budget.weekly for budget in about))
        words = f"the budgets of NodePool {pool} allow none for {reason}"
        until = (
            (later - simulated_offset(told)).isoformat() if later else None
        )  # as all moments, by the rehearsal's clock
        return Cause(why="disruption budget", details=words, until=until, never=never)
    if len(use.disrupting) < most:
        return None
    return Cause(
        why="disruption budget",
        details=(
            f"the budget of NodePool {pool} for {reason} ({most} at once, of {plural(use.nodes, 'node')} at the end) "
            f"is used up by {listed([_going(claim) for claim in use.disrupting], _NAMED)}"
        ),
        until=_first(_drained(told, claim) for claim in use.disrupting),
        used_up=True,
    )


def _going(claim: NodeClaim) -> str:
    return claim.name if claim.disrupted else f"{claim.name} (not ready)"


def _drained(told: WhatifTimeline, claim: NodeClaim) -> datetime | None:
    """When a node that is being deleted has no pods any more: when the last hold or its patience ends."""
    last = deadline(claim)
    ends = [hold.until for _, hold in pods_with_holds(told.replay, _pods(told, claim), told.end)]
    if claim.deleting is None or not ends or not all(ends):
        return last
    return min(time for time in (max(filter(None, ends)), last) if time)


def _first(times: Iterable[datetime | None]) -> str | None:
    return min((time.isoformat() for time in times if time), default=None)
