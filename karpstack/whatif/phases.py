"""Reads the timeline of a what-if: the cluster until the change had settled, and when each phase began."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from karpstack.scale_test.judging.lines import checked
from karpstack.scale_test.judging.replay import NodeClaim, Pod, Replay
from karpstack.scale_test.recording.timeline import Line, parse_time
from karpstack.scale_test.scenarios.environments import Stack

from .labels import SCENARIO

Name = Literal["loaded", "base-settled", "change-begins", "change-applied", "change-settled"]
ORDER: tuple[Name, ...] = ("loaded", "base-settled", "change-begins", "change-applied", "change-settled")
# The controller may publish the price of a node when all is over.
_LATE = ("PRICE", "PRICES")
_REPLACED_WITHIN = timedelta(minutes=3)


class NotJudgedError(ValueError):
    """The record does not have what the answer needs; the text says what, and what to do."""


@dataclass(frozen=True)
class WhatifTimeline:
    """The content of a what-if's timeline.

    Attributes:
        replay: The cluster until the change had settled; to the end of the record where it did not.
        stack: The stack.
        phases: Name -> PHASE line.
        settings: The PHASE line about what was shortened; empty without one.
        gaps: GAP lines.
        error: What the playbook failed with; empty if it did not.
    """

    replay: Replay
    stack: Stack
    phases: dict[str, Line]
    settings: Line = field(default_factory=dict)
    gaps: tuple[Line, ...] = ()
    error: str = ""

    @property
    def candidate(self) -> str | None:
        """Name of the change."""
        return self.phases.get("change-begins", {}).get("candidate")

    @property
    def karpenter(self) -> str:
        """The version of Karpenter; empty if it is unknown."""
        return str(self.stack.outputs.get("karpenterVersion", ""))

    @property
    def refused(self) -> str | None:
        """Who refused the change, and why; None if nobody did."""
        return self.phases.get("change-applied", {}).get("refused")

    @property
    def as_is(self) -> bool:
        """Whether the base began with nodes of the real cluster."""
        return bool((self.phases.get("loaded", {}).get("nodes") or {}).get("made"))

    def at(self, phase: Name) -> datetime:
        """When a phase began, that is in the record."""
        return parse_time(self.phases[phase]["received"])

    @property
    def before(self) -> datetime:
        """The moment of the base: as late as possible, for what gave up moves still."""
        return self.at("change-begins")

    @property
    def changes_nothing(self) -> bool:
        """Whether the change updated no resource, so that both sides are one."""
        return self.phases.get("change-applied", {}).get("changes") == []

    @property
    def end(self) -> datetime:
        """The moment after which nothing is judged. What moves after a change of nothing is no work of it."""
        if self.changes_nothing:
            return self.before
        return self.at("change-applied" if self.refused else "change-settled")

    @property
    def ends(self) -> tuple[datetime, datetime]:
        """When the change began, and the moment after which nothing is judged."""
        return self.before, self.end

    def t(self, time: datetime) -> float:
        """Seconds after the change began."""
        return round((time - self.before).total_seconds(), 3)

    def is_deleted(self, pool: str) -> bool:
        """Return whether a NodePool is gone at the end, or waits for its nodes to be gone."""
        excerpt = self.replay.node_pool_at(pool, self.end)
        return excerpt is None or "deletionTimestamp" in excerpt["metadata"]

    @cached_property
    def being_deleted(self) -> list[str]:
        """Names of the NodePools that are deleted but wait for their nodes when the record ends."""
        pools = ((name, self.replay.node_pool_at(name, self.end)) for name in sorted(self.replay.node_pools))
        return [name for name, excerpt in pools if excerpt and "deletionTimestamp" in excerpt["metadata"]]

    @cached_property
    def simulated(self) -> bool:
        """Whether fakes played the machines."""
        return any(node.get("simulated") for node in self.replay.nodes.values())

    @cached_property
    def pods(self) -> list[Pod]:
        """The workload's pods, also those that are gone, without those of DaemonSets."""
        return [pod for pod in self.replay.all_pods.values() if pod.scenario == SCENARIO and not pod.of_daemon_set]

    def on(self, claim: NodeClaim, time: datetime) -> list[Pod]:
        """The workload's pods that were on a NodeClaim's node at a moment and not going, DaemonSets' too."""
        # A node may get the name of one that is gone.
        return [
            pod
            for pod in self._by_node.get(claim.node or "", ())
            if pod.scheduled and claim.first_seen <= pod.scheduled <= time and pod.present_at(time)
        ]

    def own_daemon_sets(self) -> dict[str, float]:
        """The `pods`, `cpu` and `memory` that the rehearsed cluster itself runs on a node, on average."""
        others = self.phases.get("loaded", {}).get("others") or {}
        return {key: others[key] / others["nodes"] if others.get("nodes") else 0.0 for key in ("pods", "cpu", "memory")}

    @cached_property
    def _by_node(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.replay.all_pods.values():
            if pod.scenario == SCENARIO and pod.node and not pod.succeeded:
                found.setdefault(pod.node, []).append(pod)
        return found

    @cached_property
    def claims(self) -> list[NodeClaim]:
        """The NodeClaims of all NodePools, oldest first, also those that are gone."""
        return [claim for claim in self.replay.claims.values() if claim.node_pool]


class DaysTimeline(WhatifTimeline):
    """The content of a timeline about the days after the change, with the changed cluster as the base."""

    @property
    def before(self) -> datetime:
        """The moment at which they began."""
        return parse_time(self.phases["life-begins"]["received"])

    @property
    def end(self) -> datetime:
        """The moment at which they were over."""
        return parse_time(self.phases["life-ends"]["received"])


def is_present(claim: NodeClaim, time: datetime) -> bool:
    """Whether a NodeClaim's machine was there at a moment: launched and not gone."""
    launched = claim.reached.get("Launched")
    return launched is not None and launched <= time and claim.present_at(time)


def is_leaving(claim: NodeClaim, time: datetime) -> bool:
    """Whether a NodeClaim was on its way out at a moment."""
    return claim.disrupted is not None and claim.disrupted <= time


def stays(claim: NodeClaim, time: datetime) -> bool:
    """Whether a NodeClaim's machine was there at a moment, and not on its way out."""
    return is_present(claim, time) and not is_leaving(claim, time)


def awaits_replacement(claim: NodeClaim, time: datetime) -> bool:
    """Return whether Karpenter chose a node long ago and still keeps it, because a replacement never became ready.

    Karpenter deletes a node when its replacements are initialized. That takes a minute or two, if it happens at all.
    """
    kept = claim.deleting is None or claim.deleting > time
    return kept and claim.disrupted is not None and time - claim.disrupted >= _REPLACED_WITHIN


def read(lines: Iterable[object]) -> WhatifTimeline:
    """Read a timeline.

    Raises:
        NotJudgedError: It is no timeline of a what-if, or it ends before there is anything to judge.
        TimelineError: A line cannot be read.
    """
    replay, phases, settings, gaps, error = Replay(), dict[str, Line](), dict[str, object](), list[Line](), ""
    ended = False
    for line in checked(lines):
        if not ended or line["type"] in _LATE:
            replay.apply([line])
        match line["type"]:
            case "PHASE" if line["phase"] == "settings":
                settings = line
            case "PHASE":
                phases[line["phase"]] = line
                ended = ended or line["phase"] == "change-settled" or bool(line.get("refused"))
            case "GAP" if not ended:
                gaps.append(line)
            case "ERROR":
                error = error or f"{line['task']}: {line['message']}"
    _check(phases, error)
    stack = replay.start.get("stack")
    if not stack:
        raise NotJudgedError(
            "its START line names no stack, so it is not known what the nodes cost; record it again with this version"
        )
    return WhatifTimeline(
        replay, Stack(str(stack["name"]), stack.get("outputs") or {}), phases, settings, tuple(gaps), error
    )


def read_life(told: WhatifTimeline, lines: Iterable[object]) -> DaysTimeline | None:
    """Read the days that the changed cluster lived.

    Args:
        told: The same timeline until the change had settled.
        lines: Its lines.

    Returns:
        None where it lived none.

    Raises:
        NotJudgedError: The record ends before they do.
        TimelineError: A line cannot be read.
    """
    if "life-begins" not in told.phases:
        return None
    if "life-ends" not in told.phases:
        raise NotJudgedError(
            "the record ends while the changed cluster lives, so its days are not known; run the what-if again"
        )
    replay, gaps, ended = Replay(), list[Line](), False
    for line in checked(lines):
        if not ended or line["type"] in _LATE:
            replay.apply([line])
        if line["type"] == "GAP" and not ended:
            gaps.append(line)
        ended = ended or line.get("phase") == "life-ends"
    return DaysTimeline(replay, told.stack, told.phases, told.settings, tuple(gaps), told.error)


def _check(phases: dict[str, Line], error: str) -> None:
    needed = ORDER[1:-1] if phases.get("change-applied", {}).get("refused") else ORDER[1:]
    if missing := [name for name in needed if name not in phases]:
        why = f" ({error})" if error else ""
        raise NotJudgedError(
            f"the record has no {missing[0]}{why}, so there is nothing to compare: the what-if ended before; run it "
            "again"
        )
    times = [parse_time(phases[name]["received"]) for name in needed]
    if times != sorted(times):
        raise NotJudgedError("its phases are not in their order, so that before and after are not known; run it again")
