"""Whether a cluster has settled: pods have their nodes, no node comes or goes, and none has for long enough.

Karpenter looks for nodes to disrupt every ten seconds, one way after another (empty, drifted, several nodes, one node),
may reckon for a minute and more in a large cluster, thinks each consolidation over for fifteen seconds, and leaves a
node alone for `consolidateAfter` since a pod came or went there (kubernetes-sigs/karpenter,
pkg/controllers/disruption). Its metrics count the looks that ended without disrupting anything. Where they are not to
be had, what it says of a consolidation counts as movement, also where nothing comes of it, and quiet for longer than
its pauses together is rest: in a record of 1,000 pods on 20 nodes, 66 seconds went by between two of its movements.

Where it sees no way to save, it remembers that, and looks again when something changes, or after five minutes. It may
have looked while nodes were too young to count on, so it is asked for one more look when none is (`recheck`), and
only what stays quiet then has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from karpstack.karpenter.quantities import finite_duration
from karpstack.scale_test.acting.living import WatchedObjects
from karpstack.scale_test.judging.live import Live
from karpstack.scale_test.judging.replay import NodeClaim, Pod, Replay
from karpstack.scale_test.recording.process import RecorderError
from karpstack.scale_test.recording.timeline import now, parse_time
from karpstack.scale_test.reports.units import plural

from .holds import is_held
from .labels import SCENARIO

# Where its looks are not counted: two of them, the fifteen seconds of thinking over, and the rest for what it reckons.
_MARGIN = timedelta(seconds=75)
# The first may have begun before it was asked.
_LOOKS = 2
# Metrics are read every five seconds, or, where they are large, up to half a minute after the last time was over; where
# the cluster's clock is ahead, that is more than a minute. Looks that are still being counted are waited for.
_FRESH = timedelta(minutes=3)
_THINKING = "Consolidation"  # as the reasons of its events begin: ConsolidationCandidate, ConsolidationRejected, ...
# Until each node that has been left alone for `consolidateAfter` bears the condition that says so, and none is set
# aside any more for a pod that was to come there: twice `settings.batchMaxDuration`, by default.
_TOLD = timedelta(seconds=25)
# What is under way and does not get on, such as a node whose pods a PodDisruptionBudget holds, is looked at for longer.
_UNDER_WAY = 3
_BETWEEN_LOOKS = timedelta(seconds=1)  # thousands of pods are looked through each time
_BETWEEN_WORDS = timedelta(seconds=20)


@dataclass(frozen=True)
class Settled:
    """How a side came to rest.

    Attributes:
        seconds: How long it took.
        quiet: For how many seconds nothing had moved then.
        needed: How many of them are rest.
        left: What was under way still, a sentence each.
        gave_up: Why it was not waited for any longer; empty where it settled.
    """

    seconds: float
    quiet: float
    needed: float
    left: list[str]
    gave_up: str = ""


def quiet(replay: Replay) -> timedelta:
    """For how long nothing may move until each node can be counted on: by the NodePools as they are."""
    return max((_after(spec) for spec in _specs(replay)), default=timedelta()) + _TOLD


class Settling:
    """Follows a side until it has settled.

    Args:
        begun: When it began.
        patience: Seconds after which it is not waited for any longer.
    """

    def __init__(self, begun: datetime, patience: float) -> None:
        self._begun = self._moved = self._thought = begun
        self._patience = timedelta(seconds=patience)
        self._asked: datetime | None = None  # since something moved
        self._looks: tuple[float, float] | None = None  # since it was asked: whose, and how many there were first
        self._state: Hashable = None
        self._thoughts = 0

    def outcome(self, replay: Replay, at: datetime) -> Settled | None:
        """How it came to rest; None while it has not. To be asked again and again."""
        self._follow(replay, at)
        left = list(unfinished_work(replay))
        seen, needed = at - self._moved, _enough(replay, left)
        rest = (round(seen.total_seconds(), 1), needed.total_seconds())
        if seen >= needed and self._evaluated_since_request(replay, at):
            return Settled((self._moved - self._begun).total_seconds(), *rest, left)
        if at - self._begun > self._patience:
            why = f"it had not settled after {self._patience.total_seconds():g} s"
            return Settled(self._patience.total_seconds(), *rest, left, why)
        return None

    def due(self, replay: Replay, at: datetime) -> bool:
        """Whether Karpenter is to be asked now for one more look: each node has been left alone for long enough."""
        return self._asked is None and at - self._moved >= quiet(replay)

    def asked(self, at: datetime) -> None:
        """Karpenter was asked for one more look."""
        self._asked, self._looks = at, None

    def _evaluated_since_request(self, replay: Replay, at: datetime) -> bool:
        """Whether Karpenter has looked since it was asked, and found nothing to do."""
        if self._asked is None:
            return False
        if (counted := _counted(replay, at)) is None:
            return at - max(self._asked, self._thought) >= _MARGIN
        when, started, looks = counted
        if when > max(self._asked, self._thought) and (self._looks is None or self._looks[0] != started):
            self._looks = started, looks
        return self._looks is not None and looks >= self._looks[1] + _LOOKS

    def _follow(self, replay: Replay, at: datetime) -> None:
        if (seen := state(replay)) != self._state:
            self._state, self._moved, self._asked = seen, at, None
        if (thoughts := _thoughts(replay)) != self._thoughts:
            self._thoughts, self._thought, self._looks = thoughts, at, None

    def progress_line(self, replay: Replay, at: datetime) -> str:
        """How far it is, in a line."""
        claims, pods = list(_claims(replay)), list(_pods(replay))
        waiting, moving = sum(pod.node is None for pod in pods), sum(map(_moves, claims))
        needed = _enough(replay, list(unfinished_work(replay))).total_seconds()
        passed, still = (at - self._begun).total_seconds(), (at - self._moved).total_seconds()
        return (
            f"{passed:.0f} s of the cluster's time: {plural(len(claims), 'node')}, {moving} of them starting or going; "
            f"{plural(len(pods), 'pod')}, {waiting} of them without a node; nothing has moved for {still:.0f} s; "
            f"settled after {needed:.0f} s and one more evaluation by Karpenter"
        )


def wait(
    live: Live, patience: float, look_again: Callable[[], object], tell: Callable[[str], object] = lambda _: None
) -> Settled:
    """Return when the cluster has settled, or has not within `patience` seconds.

    Args:
        live: The timeline, into which a recorder writes.
        patience: Seconds.
        look_again: Asks Karpenter for one more look.
        tell: Is told how far it is, every now and then.

    Raises:
        RecorderError: The recorder has ended meanwhile.
        TimelineError: A line of the timeline cannot be read.
    """
    settling = Settling(begun := parse_time(now()), patience)
    due = word = begun
    for recorded in live.poll():
        if (at := parse_time(now())) >= due:
            due = at + _BETWEEN_LOOKS
            if settled := settling.outcome(live.replay, at):
                return settled
            if settling.due(live.replay, at):
                look_again()
                settling.asked(at)
            if at >= word:
                word = at + _BETWEEN_WORDS
                tell(settling.progress_line(live.replay, at))
        if not recorded:
            break
    raise RecorderError(
        f"the recorder has ended ({live.replay.stopped or 'it was killed'}), so the what-if cannot be judged; run it "
        "again"
    )


def unfinished_work(replay: Replay) -> Iterator[str]:
    """Yield a sentence for each change that is still in progress.

    A pod for which the scheduler has no node is at its end as far as that goes: what Karpenter does about it is a
    NodeClaim, and it does nothing about pods of DaemonSets. A node is at its end, too, that waits for pods which a
    PodDisruptionBudget or do-not-disrupt keeps: when they go is computed.
    """
    on = _by_node(replay)
    refused = {name for _, name in replay.unschedulable.get(SCENARIO, ())}
    pending = [pod for pod in _pods(replay) if pod.node is None and pod.name not in refused]
    starting = [pod for pod in _pods(replay) if pod.node is not None and not pod.ready and not pod.succeeded]
    if pending:
        yield f"{plural(len(pending), 'pod')} not scheduled yet"
    if starting:
        yield f"{plural(len(starting), 'pod')} starting or stopping"
    for claim in filter(_moves, _claims(replay)):
        if is_held(replay, claim, on.get(claim.node or "", ()), replay.time):
            continue  # what becomes of it then is computed, not waited for
        yield f"NodeClaim {claim.name} is on its way {'out' if claim.deleting or claim.disrupted else 'in'}"


def _moves(claim: NodeClaim) -> bool:
    return bool(claim.deleting or claim.disrupted or "Initialized" not in claim.reached)


def _enough(replay: Replay, left: Sequence[str]) -> timedelta:
    """For how long nothing may move until that is rest, with what is under way still: a node may boot for minutes."""
    return (quiet(replay) + _MARGIN) * _UNDER_WAY if left else quiet(replay)


def state(replay: Replay) -> Hashable:
    """Return what changes as long as something moves."""
    return (
        frozenset((pod.uid, pod.node, pod.ready, pod.succeeded) for pod in _pods(replay)),
        frozenset(
            (claim.name, "Initialized" in claim.reached, claim.disrupted is not None, claim.deleting is not None)
            for claim in _claims(replay)
        ),
    )


def _thoughts(replay: Replay) -> int:
    """How often Karpenter said something of a consolidation."""
    return sum(event.get("reason", "").startswith(_THINKING) for _, event in replay.events)


def _counted(replay: Replay, at: datetime) -> tuple[datetime, float, float] | None:
    """When the metrics were read last, which process they are of, and how often it has looked; None if not told."""
    if not replay.controller:
        return None
    when, line = replay.controller[-1]
    return (when, line["started"], line["looks"]) if line.get("looks") and at - when <= _FRESH else None


def _pods(replay: Replay) -> Iterator[Pod]:
    return (pod for pod in replay.pods.values() if pod.scenario == SCENARIO)


def _by_node(replay: Replay) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in _pods(replay):
        found.setdefault(pod.node or "", []).append(pod)
    return found


def _claims(replay: Replay) -> Iterator[NodeClaim]:
    return (claim for claim in replay.claims.values() if claim.gone is None)


def _specs(replay: Replay) -> Iterator[dict[str, object]]:
    for name, history in replay.node_pools.items():
        if history and not history[-1][1]["gone"] and (spec := replay.node_pool_spec(name)):
            yield spec


def _after(spec: dict[str, object]) -> timedelta:
    disruption = spec.get("disruption")
    after = disruption.get("consolidateAfter") if isinstance(disruption, dict) else None
    return finite_duration(str(after)) or timedelta()


#: What of a what-if holds time while it lives. A node that waits for pods which are held does not.
WATCHED: Final = WatchedObjects(state, lambda replay: any(True for _ in unfinished_work(replay)))
