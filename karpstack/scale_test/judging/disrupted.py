"""Judges whom a step disrupted: which workloads, in which order, and whether budgets of pods and nodes were kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from karpstack.karpenter.budgets import REASONS, BudgetError, allowed, budgets

from .assertion import Assertion
from .checks import check, check_pods
from .replay import DISRUPTION_REASON, NodeClaim, Pod
from .steps import StepRun

# The scheduler decides on one pod after another and tells of them side by side: less between them says nothing.
_TOLD_TOGETHER = timedelta(seconds=0.5)


def judge(run: StepRun) -> Iterator[Assertion]:
    """Check what the step expects of disruptions."""
    expect = run.step.expect
    if expect.disrupted is not None:
        yield _disrupted(run, expect.disrupted)
    if len(expect.disrupted_in_order) > 1:
        yield _order(run, expect.disrupted_in_order)
    if expect.pod_disruption_budgets_kept:
        yield from _pod_budgets(run)
    if expect.disruption_budgets_kept:
        yield from _node_budgets(run)
    for first, second in expect.scheduled_before.items():
        yield _scheduled_before(run, first, second)


def _disrupted(run: StepRun, may_be: list[str]) -> Assertion:
    """Whether pods of no other workloads left their nodes, but for those that the step itself takes away.

    DaemonSets count where they are named: their pods go with each node, and Karpenter moves none of them
    (IsReschedulable, pkg/utils/pod/scheduling.go of 1.15).
    """
    counted = [name for name, want in run.wanted.items() if want.pods is not None or name in may_be]
    moved = {name: len(run.moved(name)) for name in counted if name not in run.changed()}
    seen = ", ".join(f"{count} of {name}" for name, count in moved.items() if count)
    wrong = [name for name, count in moved.items() if count and name not in may_be]
    missing = [name for name in may_be if not moved.get(name)]
    expected = f"pods of {', '.join(may_be)} and of no other workload" if may_be else "no pod"
    return check_pods(run, "disrupted pods", expected, seen or "none", not wrong and not missing)


def _order(run: StepRun, order: list[str]) -> Assertion:
    """Whether all disrupted pods of one workload left before those of the next."""
    spans = {name: sorted(pod.leaving for pod in run.moved(name) if pod.leaving) for name in order}
    kept = all(spans.values()) and all(
        spans[first][-1] <= spans[second][0] for first, second in itertools.pairwise(order)
    )
    seen = ", ".join(
        f"{name} after {_seconds(run, times[0])} to {_seconds(run, times[-1])} s" if times else f"{name} not at all"
        for name, times in spans.items()
    )
    return check_pods(run, "order of disruption", ", then ".join(order), seen, kept)


def _seconds(run: StepRun, time: datetime) -> str:
    return f"{(time - run.requested).total_seconds():.1f}"


def _pod_budgets(run: StepRun) -> Iterator[Assertion]:
    """Whether, once there were enough, there were never fewer ready pods than a PodDisruptionBudget wants."""
    for budget in run.scenario.pod_disruption_budgets(run.index):
        name, spec = budget["metadata"]["name"], budget["spec"]
        selector = (spec.get("selector") or {}).get("matchLabels") or {}
        pods = [pod for workload in run.wanted for pod in run.all_pods_of(workload) if _selected(pod, selector)]
        expected = sum(want.pods or 0 for workload, want in run.wanted.items() if _covers(run, workload, selector))
        needed = min(_needed(spec, expected), expected)  # whoever scales below it breaks no budget
        least = _least_ready(run, pods, needed)
        yield check_pods(
            run,
            f"PodDisruptionBudget {name}",
            f"never fewer than {needed} of {expected} pods ready",
            "never as many" if least is None else f"{least} at least",
            least is not None and least >= needed,
        )


def _covers(run: StepRun, workload: str, selector: Mapping[str, str]) -> bool:
    labels = run.scenario.workloads_after(run.index)[workload]["spec"]["template"]["metadata"]["labels"]
    return bool(selector.items() <= labels.items())


def _selected(pod: Pod, selector: Mapping[str, str]) -> bool:
    return selector.items() <= pod.labels.items()


def _needed(spec: Mapping[str, Any], expected: int) -> int:
    if (minimum := spec.get("minAvailable")) is not None:
        return _share(minimum, expected)
    return max(0, expected - _share(spec.get("maxUnavailable", 1), expected))


def _share(value: int | str, of: int) -> int:
    """A number, or a share of one such as 50%, rounded up as Kubernetes does."""
    text = str(value)
    return math.ceil(of * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def _least_ready(run: StepRun, pods: list[Pod], needed: int) -> int | None:
    """The fewest that were ready at once in the step, from when there were enough; None if there never were."""
    changes = [(time, 1 if serves else -1) for pod in pods for time, serves in pod.turns if time <= run.ended]
    changes = sorted([*changes, (run.ended, 0)])
    ready, least = 0, None
    for position, (time, change) in enumerate(changes):
        ready += change
        if position + 1 < len(changes) and changes[position + 1][0] == time:
            continue
        if least is None and ready >= needed:
            least = ready
        elif least is not None and time >= run.requested:
            least = min(least, ready)
        elif least is not None:
            least = ready if ready >= needed else None
    return least


def _node_budgets(run: StepRun) -> Iterator[Assertion]:
    """Whether the controller never disrupted more nodes at once than the NodePools' budgets allow at that moment."""
    for name in run.scenario.pools:
        claims = [claim for claim in run.claims() if claim.node_pool == name]
        broken = [
            said
            for claim in claims
            if run.during(time := claim.reached.get(DISRUPTION_REASON)) and time and (said := _broken(run, claim, time))
        ]
        expected = "none disrupted while the budgets forbade it"
        yield check(run, f"budgets of NodePool {name}", expected, "; ".join(broken) or "so it was", not broken, claims)


def _broken(run: StepRun, claim: NodeClaim, time: datetime) -> str:
    """How the disruption of a node broke its NodePool's budgets; empty if it kept them.

    As Karpenter counts (BuildDisruptionBudgetMapping): nodes that are initialized and whose instance is not going yet.
    """
    reason = str(claim.conditions.get(DISRUPTION_REASON, {}).get("reason", ""))
    spec = next(
        (pool["spec"] for at, pool in reversed(run.replay.node_pools.get(claim.node_pool, ())) if at <= time), None
    )
    if reason not in REASONS or spec is None:
        return ""
    there = [other for other in run.replay.claims.values() if other.node_pool == claim.node_pool]
    there = [other for other in there if other.present_at(time) and other.reached.get("Initialized", run.ended) <= time]
    there = [other for other in there if other.reached.get("InstanceTerminating", run.ended) >= time]
    going = sum(1 for other in there if other.disrupted is not None and other.disrupted <= time)
    try:
        limit = allowed(budgets(spec), reason, len(there), time)
    except BudgetError as error:
        return f"{claim.name}: {error}"
    return f"{claim.name} ({reason}): {going} at once of {len(there)}, {limit} allowed" if going > limit else ""


def _scheduled_before(run: StepRun, first: str, second: str) -> Assertion:
    """Whether each pod of a PriorityClass got its node before any of another one, of those that got theirs in it."""
    times = {
        name: sorted(
            pod.scheduled
            for workload in run.wanted
            for pod in run.all_pods_of(workload)
            if pod.priority_class == name and run.during(pod.scheduled) and pod.scheduled
        )
        for name in (first, second)
    }
    kept = bool(times[first]) and (not times[second] or times[first][-1] - times[second][0] < _TOLD_TOGETHER)
    seen = ", ".join(
        f"{len(found)} of {name} after {_seconds(run, found[0])} to {_seconds(run, found[-1])} s"
        if found
        else f"none of {name}"
        for name, found in times.items()
    )
    return check_pods(run, f"{first} before {second}", f"{first} first", seen, kept)
