"""Judges a step: whether what came of it is what the scenario expects.

Pure functions of a replayed timeline. Each assertion says what was expected, what was seen and where to look.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from ..market.prices import HOW_TO_GET_PRICES
from ..market.quantities import amount
from ..scenarios.expectation import Pending, Replacement
from . import disrupted, placement
from .assertion import Assertion
from .checks import check, where
from .replay import NodeClaim, Replay
from .steps import StepRun, controller_message, state_of, unready, why_not_ready

# Reasons of events with which the controller says what it could not do, or would not.
_COMPLAINTS = {
    "DisruptionBlocked",
    "FailedDraining",
    "FailedScheduling",
    "InsufficientCapacityError",
    "NoCompatibleInstanceTypes",
    "NodeClassNotReady",
    "Unconsolidatable",
}


def judge(run: StepRun) -> list[Assertion]:
    """Check a step that has come to its end, in the cluster as it was then."""
    expect = run.step.expect
    if _without_node_pools(run):
        # All else follows from it.
        return [*_node_pools(run), _time(run)]
    assertions = [*_node_pools(run), _time(run), *_pods(run)]
    if expect.pending:
        assertions += _pending(run, expect.pending)
    if expect.nodes is not None:
        seen = len(run.live())
        assertions.append(check(run, "number of nodes", str(expect.nodes), str(seen), seen in expect.nodes))
    if expect.no_nodes:
        left = ", ".join(claim.node or "" for claim in run.left())
        assertions.append(check(run, "Nodes", "none left", left or "none left", not left, run.left()))
    assertions += [*_nodes(run), *placement.nodes(run), *placement.workloads(run)]
    assertions += [_event(run, reason, kind) for reason, kinds in expect.events.items() for kind in kinds]
    if expect.replacement:
        assertions += _replacement(run, expect.replacement)
    if expect.undisturbed:
        assertions.append(_undisturbed(run))
    if expect.disrupted_at_once:
        assertions.append(_disrupted_at_once(run, expect.disrupted_at_once))
    if expect.other_instance_type:
        assertions.append(_other_instance_type(run))
    if expect.no_pod_without_node:
        assertions += [_homes(run), _order(run)]
    if expect.ready_gap is not None:
        assertions.append(_ready_gap(run, expect.ready_gap))
    assertions += disrupted.judge(run)
    return assertions


def _without_node_pools(run: StepRun) -> bool:
    """Whether the step came to its end because NodePools are not ready; or it was late, and no node was asked for."""
    return bool(unready(run)) and (run.outcome == "hopeless" or (run.outcome == "late" and not run.claims()))


def _node_pools(run: StepRun) -> Iterator[Assertion]:
    for name in run.scenario.pools:
        why = why_not_ready(run.replay, run.scenario, name)
        yield Assertion(
            f"{run.title}, NodePool {name}",
            "ready",
            f"not ready ({why})" if why else "ready",
            not why,
            f"kubectl describe nodepool {name} and its node class; the controller's log",
            about=(name,),
        )


def _time(run: StepRun) -> Assertion:
    within, hold = run.step.expect.within, run.step.expect.hold
    if run.outcome == "rest":
        seen = f"at rest after {run.seconds:.1f} s"
    else:
        ready = run.replay.ready_now(run.scenario)
        seen = f"after {run.seconds:.1f} s {ready} of {run.replicas} replicas ready, {_unrest(run)}"
        if _without_node_pools(run):
            seen += "; what else is expected follows from its NodePools, and is not judged"
    return Assertion(
        f"{run.title}, time",
        f"at rest within {within:g} s{f', for {hold:g} s' * (hold > 0)}",
        seen,
        run.outcome == "rest" and run.seconds <= within,
        where(run, "Pod and Event lines"),
        about=tuple(claim.name for claim in _restless(run)) if run.outcome != "rest" else (),
        kinds=("Pod", "Event"),
    )


def _restless(run: StepRun) -> list[NodeClaim]:
    """The nodes that keep the step from its end."""
    leaving = run.leaving() if run.step.expect.replacement else []
    return [claim for claim in run.live() if claim.deleting or "Initialized" not in claim.reached or claim in leaving]


def _unrest(run: StepRun) -> str:
    """What keeps the step from its end, and the controller's last words on it."""
    parts = [f"{len(run.live())} nodes"]
    for claim in _restless(run):
        if claim.deleting:
            parts.append(f"{claim.name} going")
        elif "Initialized" not in claim.reached:
            parts.append(f"{claim.name} not initialized{_why_not_initialized(claim)}")
        else:
            parts.append(f"{claim.name} still there")
    complaints = [
        f"{event['reason']}: {event.get('message', '')}"
        for time, event in run.replay.events
        if run.during(time) and event.get("reason") in _COMPLAINTS
    ]
    return ", ".join(parts) + (f"; the controller said {complaints[-1]}" if complaints else "")


def _why_not_initialized(claim: NodeClaim) -> str:
    """What the controller says of the first condition that is not met, in one line."""
    for kind in ("Launched", "Registered", "Initialized"):
        condition = claim.conditions.get(kind, {})
        if condition.get("status") == "True":
            continue
        words = " ".join(word for word in str(condition.get("message", "")).split() if word.strip("-"))
        # So it says of what it has not come to yet.
        told = words and condition.get("reason") != "AwaitingReconciliation"
        return f" ({kind} {condition.get('reason', '')}: {words})" if told else ""
    return ""


def _pods(run: StepRun) -> Iterator[Assertion]:
    """Whether every pod of each workload is there and ready, or waits where that may be; and none is left over."""
    may_wait = run.step.expect.pending is not None
    for name, want in run.wanted.items():
        state = state_of(run, name, want)
        there = "all that are there" if want.pods is None else f"{want.pods} there, each"
        settled = f"{state.settled} ready"
        yield Assertion(
            f"{run.title}, pods{f' of {name}' * (len(run.wanted) > 1)}",
            f"{there} ready{' or waiting for a node' * may_wait}",
            f"{state.there} there, {settled}, {state.waiting} waiting for a node"
            f"{', not all with the image that is wanted' * (not state.renewed)}",
            state.as_wanted(may_wait=may_wait),
            where(run, "Pod lines"),
            kinds=("Pod",),
        )


def _pending(run: StepRun, pending: Pending) -> Iterator[Assertion]:
    """Whether the right number of pods waits, for the reason that is expected, and the limits were kept."""
    waiting = len(run.waiting())
    place, kinds = where(run, "Pod and Event lines"), ("Pod", "Event")
    yield Assertion(
        f"{run.title}, waiting pods", str(pending.pods), str(waiting), waiting in pending.pods, place, kinds=kinds
    )
    said = controller_message(run, pending)
    expected = f"{pending.event} on a waiting pod{f', saying: {pending.saying}' * bool(pending.saying)}"
    yield Assertion(f"{run.title}, reason", expected, said or "nothing of that kind", said != "", place, kinds=kinds)
    for name, spec in run.scenario.node_pools.items():
        if limits := spec.get("limits"):
            yield _limits(run, name, limits)


def _limits(run: StepRun, node_pool: str, limits: Mapping[str, Any]) -> Assertion:
    """Whether a NodePool never had more than its limits."""
    expected = ", ".join(f"{key} at most {value}" for key, value in limits.items())
    most: dict[str, float] = {}
    for time, pool in run.replay.node_pools.get(node_pool, ()):
        if time > run.ended:
            break
        for key, value in pool.get("resources", {}).items():
            most[key] = max(most.get(key, 0.0), amount(value))
    seen = ", ".join(f"{key} {_written(key, most.get(key, 0.0))}" for key in limits)
    kept = bool(most) and all(most.get(key, 0.0) <= amount(value) for key, value in limits.items())
    return Assertion(
        f"{run.title}, limits of NodePool {node_pool}",
        expected,
        f"at most {seen}" if most else "no resources told",
        kept,
        where(run, "NodePool lines"),
        about=(node_pool,),
    )


def _written(resource: str, number: float) -> str:
    return f"{number / 2**30:.1f}Gi" if resource in ("memory", "ephemeral-storage") else f"{number:g}"


def _nodes(run: StepRun) -> Iterator[Assertion]:
    """What each of the nodes must be. Where there is none, that is said once."""
    expect = run.step.expect
    checks: list[tuple[str, list[str] | None, Callable[[NodeClaim], str | None]]] = []
    if expect.instance_types:
        checks.append(("instance type", expect.instance_types, _label("node.kubernetes.io/instance-type")))
    if expect.capacity_type:
        checks.append(("capacity type", [expect.capacity_type], _label("karpenter.sh/capacity-type")))
    if expect.node_pool:
        checks.append(("NodePool", [expect.node_pool], _label("karpenter.sh/nodepool")))
    for label, values in expect.node_labels.items():
        accepted = None if values == "present" else list(values)
        checks.append((f"node label {label}", accepted, _node_label(run.replay, label)))
    live = run.live()
    if (checks or expect.taints_gone) and not live:
        yield check(run, "nodes", "a node to look at", "no node", False)
        return
    for name, accepted, value_of in checks:
        seen = [value_of(claim) for claim in live]
        yield check(
            run,
            name,
            " or ".join(accepted) if accepted else "present",
            ", ".join(value or "missing" for value in seen),
            all(value is not None and (accepted is None or value in accepted) for value in seen),
        )
    for key in expect.taints_gone:
        tainted = [claim.node or claim.name for claim in live if key in run.replay.taints(claim)]
        yield check(run, f"taint {key}", "gone", f"on {', '.join(tainted)}" if tainted else "gone", not tainted)


def _event(run: StepRun, reason: str, kind: str) -> Assertion:
    """Whether an object of the story met an event of the controller's."""
    claims = run.claims()
    ours: dict[str, set[str | None]] = {
        "Pod": {uid for _, uid in run.replay.pods_added.get(run.scenario.name, ())},
        "Node": {claim.node for claim in claims},
        "NodeClaim": {claim.name for claim in claims},
        "NodePool": set(run.scenario.pools),
    }
    seen = {
        event.get("reason", "")
        for time, event in run.replay.events
        if run.during(time)
        and event["involvedObject"].get("kind") == kind
        and event["involvedObject"].get("uid" if kind == "Pod" else "name") in ours[kind]
    }
    return check(
        run, f"event {reason}", f"on a {kind}", ", ".join(sorted(seen)) or f"none on a {kind}", reason in seen, claims
    )


def _label(name: str) -> Callable[[NodeClaim], str | None]:
    return lambda claim: claim.labels.get(name)


def _node_label(replay: Replay, name: str) -> Callable[[NodeClaim], str | None]:
    return lambda claim: replay.labels(claim).get(name)


def _replacement(run: StepRun, wanted: Replacement) -> Iterator[Assertion]:
    old, new = run.leaving(), run.new()
    replaced = bool(old) and bool(new) and all(claim.gone for claim in old)
    change = f"{_types(old)} -> {_types(new)}"
    yield check(run, "replacement", "every node replaced by a new one", change, replaced, (*old, *new))
    if wanted.smaller:
        before, after = (sum(claim.cpus or 0 for claim in claims) for claims in (old, new))
        seen = f"{change}: {before} -> {after} CPUs"
        yield check(run, "size", "fewer CPUs than before", seen, replaced and after < before, (*old, *new))
    if wanted.cheaper:
        yield _saving(run, old, new, change, replaced=replaced)


def _saving(run: StepRun, old: list[NodeClaim], new: list[NodeClaim], change: str, *, replaced: bool) -> Assertion:
    expected = "more than 0 USD an hour"
    prices = {claim.name: run.replay.price(claim) for claim in (*old, *new)}
    unknown = [name for name, price in prices.items() if price is None]
    if unknown:
        seen = f"{change}, price of {', '.join(unknown)} not known"
        return Assertion(f"{run.title}, saving", expected, seen, False, HOW_TO_GET_PRICES, about=tuple(unknown))
    before, after = (sum(prices[claim.name] or 0 for claim in claims) for claims in (old, new))
    seen = f"{change}: {before:.4f} -> {after:.4f}, saving {before - after:.4f} USD an hour"
    return check(run, "saving", expected, seen, replaced and after < before, (*old, *new))


def _types(claims: list[NodeClaim]) -> str:
    offerings = [claim.offering for claim in claims]
    return ", ".join(offering.instance_type if offering else "not launched" for offering in offerings) or "nothing"


def _undisturbed(run: StepRun) -> Assertion:
    """Whether no node came and none began to go."""
    moved = [
        f"{claim.name} {what}"
        for claim in run.claims()
        for what, time in (("came", claim.first_seen), ("went", claim.deleting))
        if run.during(time)
    ]
    return check(run, "nodes", "none came, none went", ", ".join(moved) or "so it was", not moved)


def _disrupted_at_once(run: StepRun, allowed: int) -> Assertion:
    """The largest number of nodes that were being disrupted at one time, from the decision to the instance's end.

    As Karpenter's budgets count (NodePoolStatsFromNodes, pkg/controllers/disruption/helpers.go of 1.15): a node that is
    drained and whose instance is InstanceTerminating is disrupted no longer, though its NodeClaim is there for a while.
    """
    spans = []
    for claim in run.claims():
        begun = min(
            (time for time in (claim.reached.get("DisruptionReason"), claim.deleting) if time is not None), default=None
        )
        over = claim.reached.get("InstanceTerminating", claim.gone)
        if begun is not None and begun <= run.ended and (over is None or over >= run.requested):
            spans.append((begun, over or run.ended))
    most = max((sum(start <= begun < end for start, end in spans) for begun, _ in spans), default=0)
    return check(run, "disrupted at once", f"at most {allowed}", str(most), most <= allowed, run.claims())


def _other_instance_type(run: StepRun) -> Assertion:
    """Whether no node came whose instance type the cloud had no more of."""
    short: set[str] = set()
    for fault in run.faults():
        if fault["kind"] == "out-of-capacity":
            short |= set(fault["detail"].get("instanceTypes", ()))
    new = run.new()
    types = [claim.offering.instance_type if claim.offering else "not launched" for claim in new]
    return check(
        run,
        "other instance type",
        f"none of {', '.join(sorted(short)) or '(no shortage was caused)'}",
        ", ".join(types) or "no new node",
        bool(short) and bool(types) and not short & set(types),
        new,
    )


def _homes(run: StepRun) -> Assertion:
    pods = run.replay.unschedulable.get(run.scenario.name, ())
    homeless = sorted({pod for time, pod in pods if run.during(time)})
    return Assertion(
        f"{run.title}, homes",
        "no pod unschedulable",
        ", ".join(homeless) or "none unschedulable",
        not homeless,
        where(run, "Pod lines with PodScheduled=False"),
        about=tuple(homeless),
        kinds=("Pod",),
    )


def _order(run: StepRun) -> Assertion:
    """Whether, whenever a node began to go, another one was there, initialized and staying."""
    claims = run.claims()

    def replaced(going: NodeClaim) -> bool:
        return any(
            other.reached.get("Initialized", run.ended) <= (going.deleting or run.ended)
            and (other.deleting is None or (going.deleting is not None and other.deleting > going.deleting))
            for other in claims
            if other is not going
        )

    early = [claim.name for claim in claims if run.during(claim.deleting) and not replaced(claim)]
    expected = "each node disrupted only after its replacement was initialized"
    return check(run, "order", expected, f"disrupted before: {', '.join(early)}" if early else "so it was", not early)


def _ready_gap(run: StepRun, allowed: float) -> Assertion:
    """The longest time without any ready replica, from the moment that the step was asked for."""
    history = run.replay.ready.get(run.scenario.name, [])
    before = [count for time, count in history if time < run.requested]
    points = [
        (run.requested, before[-1] if before else 0),
        *((time, count) for time, count in history if run.during(time)),
        (run.ended, 0),
    ]
    gaps = [later - time for (time, count), (later, _) in itertools.pairwise(points) if count < 1]
    longest = max(gaps, default=timedelta()).total_seconds()
    return Assertion(
        f"{run.title}, ready replicas",
        f"never fewer than 1 for more than {allowed:g} s",
        f"fewer than 1 for at most {longest:.2f} s",
        longest <= allowed,
        where(run, "Pod lines"),
        kinds=("Pod",),
    )
