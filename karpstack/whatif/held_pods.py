"""Pods that a PodDisruptionBudget or do-not-disrupt keeps on nodes that are to go, and what becomes of them.

A rehearsal does not wait for hours. What happens when a terminationGracePeriod is over is computed from the objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from karpstack.scale_test.judging.replay import NodeClaim, Pod
from karpstack.scale_test.judging.terminations import deadline, deletion, grace

from .answer import BlockedEviction, RemainingNode
from .departures import departures
from .holds import Hold, forbids, lasting, pods_with_holds
from .phases import WhatifTimeline, is_leaving, is_present
from .remaining import drifted_before
from .unscheduled_pods import workload_of

_DELETED = "Disrupted"  # the reason of the event of a pod that is deleted in spite of what holds it


def held_pods(told: WhatifTimeline, stayed: Sequence[RemainingNode]) -> list[BlockedEviction]:
    """Return the pods of the workload that are held on nodes that are to go, by node and workload.

    Args:
        told: The timeline.
        stayed: The nodes that stayed; of drifted ones that are still to be replaced, pods are held later.
    """
    waiting = {one.node_claim: _begins(told, one) for one in stayed if one.drifted and not one.never}
    found = [*_killed(told), *_preempted(told)]
    for claim in told.claims:
        if not is_present(claim, told.end):
            continue
        pods = [pod for pod in told.on(claim, told.end) if not pod.of_daemon_set]
        if is_leaving(claim, told.end):
            found += _of_node(told, claim, pods_with_holds(told.replay, pods, told.end), None)
        elif claim.name in waiting:
            # A hold that ends by itself is met only if the node's patience ends before it.
            kept = [
                (pod, hold)
                for pod, hold in pods_with_holds(told.replay, pods, told.end)
                if hold.never or hold.job or (hold.until and grace(claim) is not None)
            ]
            found += _of_node(told, claim, kept, waiting[claim.name])
    return sorted(found, key=lambda one: (not one.done, one.deleted is None, one.deleted, one.namespace, one.workload))


def permanent_hold(told: WhatifTimeline, claim: NodeClaim) -> str | None:
    """Return what keeps a pod on a node until somebody changes something; None where nothing does."""
    pods = [pod for pod in told.on(claim, told.end) if not pod.of_daemon_set]
    return next((hold.details for _, hold in pods_with_holds(told.replay, pods, told.end) if hold.never), None)


def _begins(told: WhatifTimeline, one: RemainingNode) -> datetime:
    """The earliest moment at which a drifted node that waits is drained."""
    times = [datetime.fromisoformat(cause.until) for cause in one.causes if cause.until]
    return max([told.end, *times])


def _of_node(
    told: WhatifTimeline, claim: NodeClaim, pods: Sequence[tuple[Pod, Hold]], begins: datetime | None
) -> Iterator[BlockedEviction]:
    """Those of a node, which is drained already, or begins to be at a moment."""
    patience, last = grace(claim), deadline(claim)
    if last is None and patience is not None:
        last = (begins or told.end) + patience
    groups: dict[tuple[str, str, bool], list[tuple[Pod, Hold]]] = {}
    for pod, hold in pods:
        evicted = bool(last and hold.until and hold.until < deletion(pod, last, told.end))
        if not (evicted and begins):  # of a node that is not drained yet, such a pod may never be held
            groups.setdefault((*workload_of(pod), evicted), []).append((pod, hold))
    for (namespace, workload, evicted), kept in groups.items():
        at = min(deletion(pod, last, told.end) for pod, _ in kept) if last and not evicted else None
        ends = [hold.until for _, hold in kept if hold.until]
        yield BlockedEviction(
            node_claim=claim.name,
            namespace=namespace,
            workload=workload,
            pods=len(kept),
            why=kept[0][1].why,
            details=kept[0][1].details,
            deleted_at=at.isoformat() if at else None,
            deleted=told.t(at) if at else None,
            earliest=claim.deleting is None,
            until=max(ends).isoformat() if len(ends) == len(kept) else None,
            never=any(hold.never for _, hold in kept),
            job=all(hold.job for _, hold in kept),
            before=_before(told, claim),
        )


def _before(told: WhatifTimeline, claim: NodeClaim) -> bool:
    """Whether the change is not why a node goes."""
    return is_leaving(claim, told.before) or drifted_before(told, claim)


def _killed(told: WhatifTimeline) -> Iterator[BlockedEviction]:
    """Pods that were deleted after the change began although something forbade it, by the controller's events."""
    claims = {claim.node: claim for claim in told.claims if claim.node}
    for time, event in told.replay.events:
        about = event["involvedObject"]
        pod = told.replay.all_pods.get(about.get("uid", "")) if about.get("kind") == "Pod" else None
        if event.get("reason") != _DELETED or pod is None or not told.before < time <= told.end:
            continue
        claim = claims.get(pod.node or "")
        words = forbids(told.replay, pod, time)
        if claim and words and not pod.of_daemon_set:
            hold = Hold("do-not-disrupt" if pod.do_not_disrupt else "pod disruption budget", words)
            yield _deleted(told, claim, pod, hold, time, before=_before(told, claim))


def _preempted(told: WhatifTimeline) -> Iterator[BlockedEviction]:
    """Pods that made room for pods of a higher priority although something was to keep them.

    kube-scheduler takes notice of PodDisruptionBudgets only where it has a choice, and of do-not-disrupt never.
    """
    for pod, claim, preempted in departures(told):
        if not preempted or claim is None or pod.leaving is None:
            continue
        if hold := lasting(told.replay, pod, pod.leaving):
            yield _deleted(told, claim, pod, hold, pod.leaving, preempted=True)


def _deleted(
    told: WhatifTimeline,
    claim: NodeClaim,
    pod: Pod,
    hold: Hold,
    time: datetime,
    *,
    before: bool = False,
    preempted: bool = False,
) -> BlockedEviction:
    """Return a pod that was deleted at a time although something was to keep it."""
    namespace, workload = workload_of(pod)
    return BlockedEviction(
        node_claim=claim.name,
        namespace=namespace,
        workload=workload,
        pods=1,
        why=hold.why,
        details=hold.details,
        deleted_at=time.isoformat(),
        deleted=told.t(time),
        done=True,
        before=before,
        preempted=preempted,
    )
