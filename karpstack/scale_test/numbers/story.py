"""One story of a replayed timeline: its pods and NodeClaims, and its clock. What the numbers are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from ..judging.replay import NodeClaim, Pod, Replay
from ..scenarios.scenario import Scenario
from .figures import Steps, accumulate


@dataclass(frozen=True)
class Story:
    """A run of a scenario.

    Attributes:
        replay: The whole timeline.
        scenario: What was run.
        begin: When it began, by our clock.
        end: When all was removed, or when it was last heard of.
    """

    replay: Replay
    scenario: Scenario
    begin: datetime
    end: datetime

    @cached_property
    def pods(self) -> list[Pod]:
        """Its pods, also those that are gone, oldest first."""
        return [
            pod
            for pod in self.replay.all_pods.values()
            if pod.scenario == self.scenario.name and self.begin <= pod.seen <= self.end
        ]

    @cached_property
    def claims(self) -> list[NodeClaim]:
        """Its NodeClaims, oldest first."""
        return self.replay.claims_of(self.scenario)

    def t(self, time: datetime | None) -> float | None:
        """Seconds after the story's start."""
        return self.after(time) if time else None

    def after(self, time: datetime) -> float:
        """Seconds after the story's start, of a moment that there is."""
        return round((time - self.begin).total_seconds(), 3)

    @cached_property
    def present_pods(self) -> Steps:
        """How many of its pods were there, neither finished nor going."""
        return accumulate(change for pod in self.pods for change in ((pod.seen, 1.0), (pod.left, -1.0)))

    @cached_property
    def running_pods(self) -> Steps:
        """How many of its pods served."""
        return [(time, float(count)) for time, count in self.replay.ready.get(self.scenario.name, [])]
