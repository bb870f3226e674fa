"""Lets a cluster live for days of its own time: what is planned happens at its moment, and idle time is skipped.

While pods or nodes are on their way, time runs as fast as the engines keep up with. When nothing has moved for a while,
time jumps: first over some seconds, then twice as far each time, never over a moment at which something may begin.
docs/decisions/0028-a-week.md says why so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from karpstack.karpenter import clock
from karpstack.karpenter.budgets import BudgetError, allowed, budgets
from karpstack.karpenter.quantities import duration

from ..judging.live import Live
from ..judging.replay import NodeClaim, Pod, Replay
from ..judging.terminations import deadline, deletion
from ..recording.process import LOOK_SECONDS, RecorderError

# Longer than the scheduler, and Karpenter's batch of pods (ten seconds by default), take to begin with something.
_CALM: Final = timedelta(seconds=30)
# What has been under way for longer does not get on, such as a node whose pods a PodDisruptionBudget holds.
_STUCK: Final = timedelta(minutes=5)
_FIRST: Final = timedelta(seconds=10)
#: The farthest jump: less than a kubelet may be silent (`servers.NODE_GRACE` of the rehearsal).
LONGEST: Final = timedelta(minutes=50)
# Karpenter replaces drifted nodes one look after another; a far jump would leave it a single look. What has not been
# replaced after so long is held by something else.
_NEAR: Final = timedelta(minutes=1)
_LOOKS_FOR: Final = timedelta(minutes=10)
_BETWEEN_WORDS: Final = 20.0  # seconds of real time


class PlannedEvent(NamedTuple):
    """What is to happen at a moment.

    Attributes:
        at: The moment.
        act: Does it.
    """

    at: datetime
    act: Callable[[datetime], object]


@dataclass(frozen=True)
class LiveResult:
    """How it went.

    Attributes:
        real_seconds: How long it took.
        skipped_seconds: How much cluster time was skipped.
        skips: In how many jumps.
    """

    real_seconds: float
    skipped_seconds: float
    skips: int


class WatchedObjects(NamedTuple):
    """What of a cluster holds its time.

    Attributes:
        state: Returns what changes as long as something moves.
        busy: Returns whether something is on its way.
    """

    state: Callable[[Replay], Hashable]
    busy: Callable[[Replay], bool]


def watched_objects(name: str) -> WatchedObjects:
    """Return what of a story holds time: its pods, and the nodes of all NodePools."""

    def state(replay: Replay) -> Hashable:
        pods = frozenset((pod.uid, pod.node, pod.ready, pod.succeeded) for pod in _pods(replay, name))
        return pods, frozenset((claim.name, _moves(claim)) for claim in _claims(replay))

    def busy(replay: Replay) -> bool:
        refused = {pod for _, pod in replay.unschedulable.get(name, ())}
        return any(map(_moves, _claims(replay))) or any(
            not pod.ready and not pod.succeeded and pod.name not in refused for pod in _pods(replay, name)
        )

    return WatchedObjects(state, busy)


def _pods(replay: Replay, scenario: str) -> Iterator[Pod]:
    return (pod for pod in replay.pods.values() if pod.scenario == scenario)


def _claims(replay: Replay) -> Iterator[NodeClaim]:
    return (claim for claim in replay.claims.values() if claim.gone is None)


def _moves(claim: NodeClaim) -> bool:
    return bool(claim.deleting or claim.disrupted or "Initialized" not in claim.reached)


class Pace:
    """Decides when time may jump, and how far."""

    def __init__(self, begin: datetime, watched: WatchedObjects) -> None:
        self._moved = begin
        self._watched = watched
        self._state: Hashable = None
        self._step = _FIRST

    def next(self, replay: Replay, now: datetime, until: datetime) -> timedelta | None:
        """Return how far time may jump now; None where it may not.

        Args:
            replay: The cluster.
            now: Its time.
            until: The next moment at which something is planned.
        """
        if (seen := self._watched.state(replay)) != self._state:
            self._state = seen
            self.moved(now)
        if now - self._moved < (_STUCK if self._watched.busy(replay) else _CALM):
            return None
        near = now - self._moved < _LOOKS_FOR and may_be_replaced(replay, now)
        self._step = min(self._step, _NEAR if near else LONGEST)
        moments = (moment for moment in decision_times(replay, now, now + self._step) if moment > now)
        ends = min([until, now + self._step, *moments])
        self._step = min(2 * self._step, LONGEST) if ends == now + self._step else _FIRST
        return max(ends - now, timedelta(milliseconds=1))

    def moved(self, now: datetime) -> None:
        """Note that something has begun."""
        self._moved, self._step = now, _FIRST


def may_be_replaced(replay: Replay, now: datetime) -> bool:
    """Return whether there is a drifted node that the budgets of its NodePool would let go now."""
    there = [claim for claim in replay.claims.values() if claim.gone is None and claim.node_pool]
    for pool in {claim.node_pool for claim in there if _drifted(claim)}:
        count = sum(claim.node_pool == pool for claim in there)
        with suppress(BudgetError):  # then Karpenter disrupts nothing
            if (spec := replay.node_pool_spec(pool)) and allowed(budgets(spec), "Drifted", count, now):
                return True
    return False


def _drifted(claim: NodeClaim) -> bool:
    return claim.deleting is None and claim.conditions.get("Drifted", {}).get("status") == "True"


def decision_times(replay: Replay, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the moments from `begin` on at which a budget may open or close, a node expires, or held pods are deleted.

    Held pods are deleted where the terminationGracePeriod of their node ends.
    """
    for name, history in replay.node_pools.items():
        spec = replay.node_pool_spec(name)
        if spec is None or not history or history[-1][1]["gone"]:
            continue
        with suppress(BudgetError):  # then Karpenter disrupts nothing, whatever the time
            for budget in budgets(spec):
                yield from budget.changes(begin, end)
    for claim in _claims(replay):
        if last := deadline(claim):
            yield last
            yield from (deletion(pod, last, begin) for pod in replay.all_pods.values() if pod.node == claim.node)
        elif claim.deleting is None and claim.created:
            with suppress(ValueError):  # `Never`
                yield datetime.fromisoformat(claim.created) + duration(claim.expire_after)


def live(
    cluster: Live,
    end: datetime,
    planned: Iterable[PlannedEvent],
    watched: WatchedObjects,
    skip: Callable[[float], object] | None,
    tell: Callable[[str], object] = lambda _: None,
) -> LiveResult:
    """Return when the cluster's time has come to its end.

    Args:
        cluster: The timeline, into which a recorder writes.
        end: The end.
        planned: What happens meanwhile.
        watched: What of the cluster holds its time.
        skip: Lets time jump ahead by seconds; None where all of it goes by, as in a real cluster.
        tell: Is told how far it is, every now and then.

    Raises:
        RecorderError: The recorder has ended meanwhile.
        TimelineError: A line of the timeline cannot be read.
    """
    begun, begin = time.monotonic(), clock.utcnow()
    left: list[PlannedEvent] = sorted(planned, key=lambda one: one.at)
    pace, words, skipped, skips = Pace(begin, watched), begun, timedelta(), 0
    with clock.waiting():
        while (now := clock.utcnow()) < end:
            if not cluster.read():
                raise RecorderError(
                    f"the recorder has ended ({cluster.replay.stopped or 'it was killed'}), so what came after it "
                    "cannot be judged; run the what-if again"
                )
            for one in _due(left, now):
                one.act(now)
                pace.moved(clock.utcnow())
            if time.monotonic() >= words:
                words = time.monotonic() + _BETWEEN_WORDS
                tell(_progress_line(cluster.replay, begin, now, end))
            until = min(end, left[0].at) if left else end
            if skip is None or (ahead := pace.next(cluster.replay, now, until)) is None:
                time.sleep(LOOK_SECONDS)
                continue
            skip(ahead.total_seconds())
            skipped, skips = skipped + ahead, skips + 1
    return LiveResult(round(time.monotonic() - begun, 1), round(skipped.total_seconds()), skips)


def _due(left: list[PlannedEvent], now: datetime) -> Sequence[PlannedEvent]:
    due = [one for one in left if one.at <= now]
    del left[: len(due)]
    return due


def _progress_line(replay: Replay, begin: datetime, now: datetime, end: datetime) -> str:
    claims = sum(claim.gone is None for claim in replay.claims.values())
    hours, of = (round((moment - begin) / timedelta(hours=1)) for moment in (now, end))
    return f"hour {hours} of {of}, {now:%a %H:%M}: {claims} nodes, {len(replay.pods)} pods"
