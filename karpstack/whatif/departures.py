"""Pods that had to leave their nodes: evicted, drained with their node, or preempted by pods of higher priority.

The API server writes in the condition DisruptionTarget of a pod why it is to go. A pod that has none was deleted by its
own controller, as when a Deployment is scaled, or by whoever takes the node away; so it counts if its node was going.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karpstack.scale_test.judging.replay import NodeClaim, Pod

from .phases import WhatifTimeline, is_leaving

_PREEMPTED = "PreemptionByScheduler"


class Departure(NamedTuple):
    """A pod that had to leave its node.

    Attributes:
        pod: The pod.
        claim: The NodeClaim of its node; None for a node that is of no NodePool.
        preempted: Whether it made room for a pod of higher priority.
    """

    pod: Pod
    claim: NodeClaim | None
    preempted: bool


def departures(told: WhatifTimeline) -> list[Departure]:
    """The workload's pods that had to leave their nodes after the change began, each pod of a workload by itself.

    What moves twice is two pods, and counts twice. Pods of DaemonSets are not among them.
    """
    claims: dict[str, list[NodeClaim]] = {}
    for claim in told.claims:
        claims.setdefault(claim.node or "", []).append(claim)
    return [
        Departure(pod, claim, pod.disruption == _PREEMPTED)
        for pod in told.pods
        if pod.node and pod.leaving and told.before < pod.leaving <= told.end
        for claim in (_claim(pod, claims),)
        if pod.disruption or (claim and not pod.succeeded and is_leaving(claim, pod.leaving))
    ]


def _claim(pod: Pod, claims: Mapping[str, Sequence[NodeClaim]]) -> NodeClaim | None:
    # A node may get the name of one that is gone.
    scheduled = pod.scheduled
    older = (one for one in reversed(claims.get(pod.node or "", ())) if scheduled and one.first_seen <= scheduled)
    return next(older, None)
