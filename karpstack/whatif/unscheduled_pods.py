"""Pods for which there was no node: how many, for how long, and which of them still have none.

A pod is without a home from when it is there until it has a node, if the scheduler said meanwhile that there is none
for it. One that was so when the change began is no work of the change, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from karpstack.scale_test.judging.replay import Pod
from karpstack.scale_test.labels import WORKLOAD_LABEL
from karpstack.scale_test.numbers.figures import accumulate

from .answer import WorkloadWithoutNode
from .nodes import waits
from .phases import WhatifTimeline


class UnscheduledPods(NamedTuple):
    """What of it the answer has.

    Attributes:
        workloads: By workload, the longest first.
        pods: How many pods.
        at_once: How many at the same time, at most.
        longest: Seconds, of one at most.
        longest_until_node: The same of those that had a home again.
        unschedulable: Without a node at the end, more than before.
    """

    workloads: list[WorkloadWithoutNode]
    pods: int
    at_once: int
    longest: float
    longest_until_node: float
    unschedulable: int


def unscheduled_pods(told: WhatifTimeline) -> UnscheduledPods:
    """The pods without a home between the beginning of the change and its end."""
    pods: dict[tuple[str, str], list[Pod]] = {}
    for pod in told.pods:
        if pod.unschedulable and pod.unschedulable <= told.end:
            pods.setdefault(workload_of(pod), []).append(pod)
    spans = {key: [span for pod in found if (span := unscheduled_span(told, pod))] for key, found in pods.items()}
    every = [span for found in spans.values() for span in found]
    until_home = [
        span[1] - span[0]
        for found in pods.values()
        for pod in found
        if not waits(pod, told.end) and (span := unscheduled_span(told, pod))
    ]
    words = _words(told)
    workloads = [
        one
        for key, found in pods.items()
        if (one := _workload_without_node(told, key, found, spans[key], words)) and (one.pods or one.before)
    ]
    return UnscheduledPods(
        sorted(workloads, key=lambda one: (-one.at_the_end, -one.longest, one.namespace, one.workload)),
        len(every),
        round(max((count for _, count in _at_once(every)), default=0)),
        max((one.longest for one in workloads), default=0.0),
        round(max((one.total_seconds() for one in until_home), default=0.0), 3),
        sum(max(0, one.at_the_end - one.before) for one in workloads),
    )


def unscheduled_span(told: WhatifTimeline, pod: Pod) -> tuple[datetime, datetime] | None:
    """Return from when to when a pod had no node; None for one that had none before the change already."""
    end = min(time for time in (pod.scheduled, pod.leaving, told.end) if time)
    return (pod.seen, end) if told.before < pod.seen < end else None


def _workload_without_node(
    told: WhatifTimeline,
    workload: tuple[str, str],
    pods: Sequence[Pod],
    spans: Sequence[tuple[datetime, datetime]],
    words: dict[str, str],
) -> WorkloadWithoutNode:
    seconds = [(end - begin).total_seconds() for begin, end in spans]
    waiting = [pod for pod in pods if waits(pod, told.end)]
    said = [words[pod.uid] for pod in (*waiting, *pods) if pod.uid in words]
    return WorkloadWithoutNode(
        namespace=workload[0],
        workload=workload[1],
        pods=len(spans),
        longest=round(max(seconds, default=0.0), 3),
        pod_seconds=round(sum(seconds), 3),
        at_the_end=len(waiting),
        before=sum(waits(pod, told.before) for pod in pods),
        details=said[0] if said else None,
    )


def _at_once(spans: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, float]]:
    return accumulate(change for begin, end in spans for change in ((begin, 1.0), (end, -1.0)))


def workload_of(pod: Pod) -> tuple[str, str]:
    """Namespace and name of the workload that a pod is of."""
    # Of a Deployment's pod that has no such label, the name begins with the Deployment's.
    owner = pod.name.partition(f"-{pod.labels.get('pod-template-hash', '')}-")[0] or pod.name
    # A snapshot's workloads have labels that are theirs in all namespaces.
    return pod.namespace, pod.labels.get(WORKLOAD_LABEL, owner).removeprefix(f"{pod.namespace}.")


def _words(told: WhatifTimeline) -> dict[str, str]:
    """Uid of a pod -> why it cannot be scheduled, as the controller said last."""
    return {
        str(event["involvedObject"].get("uid", "")): str(event.get("message", ""))
        for _, event in told.replay.events
        if event["involvedObject"].get("kind") == "Pod" and event.get("reason") == "FailedScheduling"
    }
