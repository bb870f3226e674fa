"""Nodes that went: why, what consolidation saved, what became of interruptions, and what was broken on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from karpstack.karpenter.quantities import finite_duration

from ..judging.replay import DISRUPTION_REASON, NodeClaim, Pod, Replay
from ..judging.steps import StepRun
from . import cost
from .story import Story

_CONSOLIDATION = {"Underutilized", "Empty"}
_INTERRUPTED = {"SpotInterrupted", "TerminatingOnInterruption"}
_MESSAGE = re.compile(r"Disrupting (?:Node|NodeClaim): (\w+)")


def reason(replay: Replay, claim: NodeClaim) -> str | None:
    """Why a NodeClaim went: in the controller's words, `Interrupted`, `Expired`; None if it stays, or by hand.

    Disruptions that the controller chooses are a condition of the NodeClaim; an interruption is an event on it; of an
    expiry there is neither, but the NodeClaim says how long it may live.
    """
    if condition := claim.conditions.get(DISRUPTION_REASON):
        return str(condition.get("reason") or condition.get("message") or "") or None
    told = [
        *replay.events_by_object.get(("NodeClaim", claim.name), ()),
        *replay.events_by_object.get(("Node", claim.node or ""), ()),
    ]
    # A node may get the name of one that is gone; what was said of that one is older than this NodeClaim.
    events = [event for time, event in told if time >= claim.first_seen]
    if claim.deleting and any(event.get("reason") in _INTERRUPTED for event in events):
        return "Interrupted"
    for event in events:
        if event.get("reason") == "DisruptionTerminating" and (said := _MESSAGE.match(event.get("message", ""))):
            return said[1]
    lives = lifetime(claim)
    if claim.deleting and lives is not None and claim.deleting - claim.first_seen >= lives - timedelta(seconds=1):
        return "Expired"
    return None


def lifetime(claim: NodeClaim) -> timedelta | None:
    """Return the expireAfter of a NodeClaim; None where it never expires."""
    return finite_duration(claim.expire_after)


def consolidation(story: Story, runs: Iterable[StepRun]) -> dict[str, Any] | None:
    """`consolidation` of the report: the first step in which the controller took nodes away to save money."""
    consolidated = [claim for claim in story.claims if reason(story.replay, claim) in _CONSOLIDATION]
    for run in runs:
        claims = [claim for claim in consolidated if run.during(claim.disrupted)]
        first = min((claim.disrupted for claim in claims if claim.disrupted), default=None)
        if first is None:
            continue
        gone = [claim.gone for claim in claims if claim.gone]
        return {
            "step": run.index + 1,
            "first_action": round((first - run.requested).total_seconds(), 3),
            "last_gone": round((max(gone) - run.requested).total_seconds(), 3) if len(gone) == len(claims) else None,
            "saving_per_hour": cost.saving(story, run.requested, run.ended, story.claims),
            "saving_simulated": any(map(story.replay.price_simulated, story.claims)),
        }
    return None


def interruptions(story: Story) -> Iterator[dict[str, Any]]:
    """`interruptions` of the report: from the message until as many pods ran elsewhere as had run before it."""
    for time, line in _faults(story):
        if line["kind"] in ("interruption", "rebalance"):
            name = str(line.get("detail", {}).get("nodeClaim", ""))
            claim = story.replay.claims.get(name)
            at = _replaced(story.pods, claim.node, time) if claim and claim.node else None
            yield {
                "nodeclaim": name,
                "kind": line["kind"],
                "t": story.after(time),
                "replacement_running": round((at - time).total_seconds(), 3) if at else None,
            }


def _replaced(pods: list[Pod], node: str, since: datetime) -> datetime | None:
    """When, after pods began to leave a node, as many ran elsewhere as had run in all; None if they never did."""

    def runs(pod: Pod, time: datetime) -> bool:
        return pod.running is not None and pod.running <= time and (pod.leaving is None or pod.leaving > time)

    before = [pod for pod in pods if runs(pod, since)]
    victims = [pod for pod in before if pod.node == node]
    left = [pod.leaving for pod in victims if pod.leaving]
    if not victims or len(left) < len(victims):
        return None
    elsewhere = [pod for pod in pods if pod.node != node]
    times = sorted({max(left), *(pod.running for pod in elsewhere if pod.running and pod.running > max(left))})
    return next((time for time in times if sum(runs(pod, time) for pod in elsewhere) >= len(before)), None)


def faults(story: Story) -> list[dict[str, Any]]:
    """`faults` of the report."""
    return [
        {"t": story.after(time), "kind": line["kind"], "detail": line.get("detail", {})}
        for time, line in _faults(story)
    ]


def _faults(story: Story) -> list[tuple[datetime, dict[str, Any]]]:
    return [(time, line) for time, line in story.replay.faults if line["scenario"] == story.scenario.name]
