"""How long each phase of a story's pods, NodeClaims and nodes took, and when how much of a step was reached.

All times are those of receipt at our watch: the API's own have a resolution of one second. Percentiles are by
nearest rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..judging.replay import NodeClaim, Pod, Replay
from ..judging.steps import StepRun
from .figures import percentile, rank

PERCENTS = (50, 70, 90, 99, 100)


@dataclass(frozen=True)
class Phase:
    """One phase, from one moment to the next, of a pod or of a NodeClaim.

    Attributes:
        name: What the report calls it.
        begin: When it began; None if it did not.
        end: When it ended; None if it did not.
        waits_for_fakes: Whether in a rehearsal a fake kubelet or cloud has a part in its length. Otherwise only
            the controller and the scheduler have, and they are the real ones.
    """

    name: str
    begin: Callable[[Any], datetime | None]
    end: Callable[[Any], datetime | None]
    waits_for_fakes: bool = True


def _reached(condition: str) -> Callable[[NodeClaim], datetime | None]:
    return lambda claim: claim.reached.get(condition)


OF_PODS = (
    Phase("pod_pending_to_nominated", lambda pod: pod.seen, lambda pod: pod.nominated, waits_for_fakes=False),
    Phase("pod_nominated_to_scheduled", lambda pod: pod.nominated, lambda pod: pod.scheduled),
    Phase("pod_scheduled_to_running", lambda pod: pod.scheduled, lambda pod: pod.running),
    Phase("pod_pending_to_running", lambda pod: pod.seen, lambda pod: pod.running),
)
OF_NODE_CLAIMS = (
    Phase("nodeclaim_created_to_launched", lambda claim: claim.first_seen, _reached("Launched")),
    Phase("nodeclaim_launched_to_registered", _reached("Launched"), _reached("Registered")),
    Phase("nodeclaim_registered_to_initialized", _reached("Registered"), _reached("Initialized")),
    Phase("node_disrupted_to_drained", lambda claim: claim.disrupted, _reached("Drained")),
    Phase("node_drained_to_gone", _reached("Drained"), lambda claim: claim.gone),
)
NAMES = tuple(phase.name for phase in (*OF_PODS, *OF_NODE_CLAIMS))


def durations(replay: Replay, pods: Iterable[Pod], claims: Sequence[NodeClaim]) -> list[dict[str, Any]]:
    """`durations` of the report: every phase in its order, also those that nothing went through."""
    simulated = {claim.node for claim in claims if claim.node and replay.simulated(claim)}
    pods = list(pods)
    rows = [_row(phase, pods, lambda pod: pod.node in simulated) for phase in OF_PODS]
    return rows + [_row(phase, claims, replay.simulated) for phase in OF_NODE_CLAIMS]


def _row(phase: Phase, things: Sequence[Any], simulated: Callable[[Any], bool]) -> dict[str, Any]:
    values: list[float] = []
    faked = False
    for thing in things:
        begin, end = phase.begin(thing), phase.end(thing)
        # An event may be received before the change that it tells of; that took no time.
        if begin is not None and end is not None:
            values.append(round(max(0.0, (end - begin).total_seconds()), 3))
            faked = faked or (phase.waits_for_fakes and simulated(thing))
    values.sort()
    figures = {f"p{percent}": percentile(values, percent) if values else None for percent in (50, 90, 99)}
    return {
        "phase": phase.name,
        "simulated": faked,
        "n": len(values),
        **figures,
        "max": values[-1] if values else None,
        "values": values,
    }


def reach_times(run: StepRun, wanted: int | None) -> list[dict[str, Any]]:
    """`reached` of the report for one step.

    Of pods: of those that the step added to the running ones. Of nodes: of the NodeClaims that were made during it,
    initialized. What was not reached during the step has no seconds; a kind of which nothing came has no rows.

    Args:
        run: The step.
        wanted: Replicas from the step on; None if it is about something else.
    """
    rows = []
    ready = run.replay.ready.get(run.scenario.name, [])
    before = next((count for time, count in reversed(ready) if time < run.requested), 0)
    if wanted is not None and wanted > before:
        history = [(time, count) for time, count in ready if run.during(time)]
        for percent in PERCENTS:
            goal = before + rank(percent, wanted - before)
            at = next((time for time, count in history if count >= goal), None)
            rows.append(_reached_row(run, "pods", percent, at))
    new = [claim for claim in run.claims() if run.during(claim.first_seen)]
    initialized = sorted(
        time for claim in new if (time := claim.reached.get("Initialized")) is not None and run.during(time)
    )
    for percent in PERCENTS if new else ():
        needed = rank(percent, len(new))
        at = initialized[needed - 1] if needed <= len(initialized) else None
        rows.append(_reached_row(run, "nodes", percent, at))
    return rows


def _reached_row(run: StepRun, kind: str, percent: int, at: datetime | None) -> dict[str, Any]:
    seconds = round((at - run.requested).total_seconds(), 3) if at else None
    return {"step": run.index + 1, "kind": kind, "percent": percent, "seconds": seconds}
