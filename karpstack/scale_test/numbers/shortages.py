"""The shortages that the controller knew at a moment: from its metrics, its events and spot interruptions.

It remembers for a while what it could not have, and offers that to no NodeClaim meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from ..judging.replay import NodeClaim, Replay
from ..market.prices import PUBLISHING, REMEMBERED, Offering, offerings_of
from ..recording.timeline import Line, api_time, parse_time

REFUSED = ("InsufficientCapacityError", "AsyncProvisioningError")
_INTERRUPTED = "SpotInterrupted"
# Events that a recorder finds when it begins may be an hour old; the API's clock has whole seconds.
_OLD = timedelta(seconds=10)
_NOTHING: frozenset[Offering] = frozenset()


class Shortages:
    """Tells it of the moments of a replayed timeline.

    Args:
        replay: The whole timeline.
        cloud: `aws` or `azure`.
        asked_for: What a NodeClaim that was refused had asked the cloud for; empty where that is not certain.
    """

    def __init__(self, replay: Replay, cloud: str, asked_for: Callable[[NodeClaim], frozenset[Offering]]) -> None:
        self._replay = replay
        self._cloud = cloud
        self._asked_for = asked_for
        self._remembered = REMEMBERED.get(cloud, max(REMEMBERED.values()))
        self._times, self._unavailable = _cumulated(replay)
        told = [
            (_said(time, event), event)
            for (kind, _), events in replay.events_by_object.items()
            if kind == "NodeClaim"
            for time, event in events
        ]
        self._refusals = [(time, event) for time, event in told if event.get("reason") in REFUSED]
        self._interruptions = [
            (time, claim.offering)
            for time, event in told
            if event.get("reason") == _INTERRUPTED
            and (claim := replay.claims.get(event["involvedObject"].get("name", "")))
            and claim.offering
        ]

    def availability(self, at: datetime) -> str:
        """Whether the controller's metrics had said by then what is unavailable."""
        if bisect_right(self._times, at):
            return "recorded"
        return "not recorded" if self._cloud in PUBLISHING else "not published"

    def metrics(self, at: datetime) -> tuple[datetime | None, frozenset[Offering]]:
        """When the controller's metrics were last asked by then, and what was unavailable; None before."""
        index = bisect_right(self._times, at)
        return (self._times[index - 1], self._unavailable[index - 1]) if index else (None, _NOTHING)

    def refusals(self, at: datetime) -> Iterator[tuple[datetime, Line]]:
        """The events on NodeClaims that were refused, as old as the controller remembers at most."""
        return ((time, event) for time, event in self._refusals if self._remembers(time, at))

    def interruptions(self, at: datetime) -> Iterator[tuple[datetime, Offering]]:
        """What was interrupted and is unavailable for that.

        AWS's provider takes it so (`markUnavailableOfferings` in pkg/controllers/interruption); Azure's reads no queue.
        """
        if self._cloud == "aws":
            yield from ((time, offering) for time, offering in self._interruptions if self._remembers(time, at))

    def refused(self, claim: NodeClaim, at: datetime) -> bool:
        """Whether a NodeClaim had been refused by then for a shortage."""
        return any(
            event.get("reason") in REFUSED and time <= at
            for time, event in self._replay.events_by_object.get(_key(claim), ())
        )

    def met(self, at: datetime) -> frozenset[Offering]:
        """What the controller takes for unavailable for an interruption or a refusal, whatever its metrics say yet."""
        found = {offering for _, offering in self.interruptions(at)}
        for _, event in self.refusals(at):
            if claim := self._replay.claims.get(event["involvedObject"].get("name", "")):
                found |= self._asked_for(claim)
        return frozenset(found)

    def known_unavailable(self, at: datetime) -> frozenset[Offering]:
        """All that the controller certainly takes for unavailable."""
        return self.metrics(at)[1] | self.met(at)

    def later(self, after: datetime, until: datetime) -> tuple[datetime, frozenset[Offering]] | None:
        """What the metrics began to say between two moments, and when they were asked last; None if they were not."""
        index = bisect_right(self._times, until)
        if not index or self._times[index - 1] <= after:
            return None
        return self._times[index - 1], self._unavailable[index - 1] - self.metrics(after)[1]

    def _remembers(self, time: datetime, at: datetime) -> bool:
        return at - self._remembered <= time <= at


def _key(claim: NodeClaim) -> tuple[str, str]:
    return "NodeClaim", claim.name


def _said(received: datetime, event: Line) -> datetime:
    """When an event was said: as we learnt of it, or by the API's clock where that was long before."""
    said = api_time(event)
    return received if said is None or received - parse_time(said) < _OLD else parse_time(said)


def _cumulated(replay: Replay) -> tuple[list[datetime], list[frozenset[Offering]]]:
    """When the metrics were asked what is unavailable, and all that was then."""
    times: list[datetime] = []
    sets: list[frozenset[Offering]] = []
    for time, line in replay.unavailable:
        before = sets[-1] if sets else frozenset()
        became, ceased = offerings_of(line["became"]), offerings_of(line["ceased"])
        times.append(time)
        sets.append((before | became) - ceased if became or ceased else before)
    return times, sets
