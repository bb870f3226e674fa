"""Advice: what the answers to several candidates recommend.

A candidate is cheaper or calmer only by more than the spread of answers to the same question. It is recommended only
if the what-if's own verdict allows it. `advice_documents` writes the advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from . import wording
from .answer import Answer, Part
from .candidates import Spread, remarks
from .proposals import Candidate

#: The name of the cluster without a change.
UNCHANGED: Final = "unchanged"
_DAY: Final = 86_400

Verdict = Literal["better", "not better", "not decided", "not recommended", "no answer", "not rehearsed"]


class Advised(Part):
    """The advice on one candidate."""

    name: str = Field(description="Its name.")
    why: str = Field(description="What it may gain, and what it may cost.")
    changed: list[str] = Field(description="NodePools that it changes.")
    removed: list[str] = Field(description="NodePools that it removes.")
    manifests: str = Field(description="File with all NodePools as they would be, in the folder of the advice.")
    verdict: Verdict = Field(description="`better`: cheaper or calmer by more than the spread, and within all limits.")
    reasons: list[str] = Field(description="Why it is not recommended, not decided or has no answer.")
    cheaper: bool = Field(False, description="`true`: cheaper by more than the spread.")
    calmer: bool = Field(False, description="`true`: moves fewer pods a day, by more than the spread.")
    asked: int = Field(0, description="How many times it was rehearsed.")
    usd_per_hour_before: float | None = Field(None, description="USD an hour without it; null if unknown.")
    usd_per_hour: float | None = Field(None, description="USD an hour with it: the median; null if unknown.")
    nodes: float | None = Field(None, description="Nodes after the change: the median.")
    pods_moved: float | None = Field(None, description="Pods that the change itself moves: the median.")
    pods_moved_per_day: float | None = Field(None, description="Pods moved a day afterwards; null without `--for`.")
    pods_without_node: float | None = Field(None, description="Pods that had no node for a time: the median.")
    waiting_before: float | None = Field(None, description="Pods without a node before the change: the median.")
    waiting: float | None = Field(None, description="Pods without a node at the end: the median.")


class Advice(Part):
    """The advice for a cluster."""

    schema_version: Literal[1] = 1
    snapshot: str = Field(description="File name of the snapshot.")
    usd_spread: float | None = Field(description="Spread of USD an hour in answers to one question; null if unknown.")
    moved_spread: float | None = Field(description="Spread of pods moved a day; null if unknown.")
    usd_per_hour: float | None = Field(None, description="USD an hour without a change: the median; null if unknown.")
    pods_moved_per_day: float | None = Field(
        None, description="Pods moved a day without a change: the median; null without `--for`."
    )
    no_base: str | None = Field(None, description="Why the unchanged cluster has no answer; null if it has one.")
    candidates: list[Advised] = Field(description="The candidates.")
    dropped: dict[str, str] = Field(description="Name of a change that was not rehearsed -> why.")
    remarks: list[str] = Field([], description="What is to be known of all answers, a sentence each.")


class _Figures:
    """The figures of all answers, against those of the unchanged cluster.

    Args:
        answers: Name of each candidate -> its answers.
        unchanged: Answers of the unchanged cluster, if it lived for some days; else none.
    """

    def __init__(self, answers: Mapping[str, Sequence[Answer]], unchanged: Sequence[Answer]) -> None:
        self.unchanged = unchanged
        groups = [*answers.values(), unchanged]
        everyone = [one for group in groups for one in group]
        if any(one.simulated_period for one in everyone):
            dollars = [[_usd_lived(one) for one in group] for group in groups]
        else:  # each answer has a base of its own, which is the same question
            dollars = [[self.change(one) for one in group] for group in groups]
            dollars.append([one.before.usd_per_hour for one in everyone])
        self.usd_spread = _widest(dollars)
        self.moved_spread = _widest([[_moved_a_day(one) for one in group] for group in groups])
        self.usual_moves = _middle([_moved_a_day(one) for one in unchanged])
        self.usd = _middle([self.before(one) for one in unchanged or everyone])

    def before(self, one: Answer) -> float | None:
        """USD an hour without the change."""
        if one.simulated_period:
            return _middle([_usd_lived(each) for each in self.unchanged])
        return one.before.usd_per_hour

    def change(self, one: Answer) -> float | None:
        """By how much USD an hour rise."""
        before, after = self.before(one), _usd(one)
        return None if before is None or after is None else round(after - before, 6)


def advise(
    snapshot: str,
    candidates: Sequence[Candidate],
    answers: Mapping[str, Sequence[Answer]],
    *,
    unchanged: Sequence[Answer] = (),
    dropped: Mapping[str, str] | None = None,
    failed: Mapping[str, str] | None = None,
) -> Advice:
    """Compare the answers.

    Args:
        snapshot: File name of the snapshot.
        candidates: What was to be rehearsed.
        answers: Name of a candidate -> its answers; of those that have one.
        unchanged: Answers of the unchanged cluster, if it lived for some days.
        dropped: Name of a change that is no candidate -> why.
        failed: Name of a candidate that has no answer, or too few -> why; also of `UNCHANGED`.
    """
    figures = _Figures(answers, unchanged)
    everyone = [*unchanged, *(one for group in answers.values() for one in group)]
    failed = failed or {}
    return Advice(
        snapshot=snapshot,
        usd_spread=figures.usd_spread,
        moved_spread=figures.moved_spread,
        usd_per_hour=figures.usd,
        pods_moved_per_day=figures.usual_moves,
        no_base=None if unchanged else failed.get(UNCHANGED),
        candidates=[_advised(one, answers.get(one.name, ()), figures, failed.get(one.name)) for one in candidates],
        dropped=dict(dropped or {}),
        remarks=list(remarks(everyone)),
    )


def _advised(one: Candidate, answers: Sequence[Answer], figures: _Figures, failed: str | None) -> Advised:
    known: Advised = Advised(
        name=one.name,
        why=one.why,
        changed=one.changed,
        removed=one.removed,
        manifests=f"manifests/{one.name}.yaml",
        verdict="no answer" if failed else "not rehearsed",
        reasons=[failed] if failed else [],
    )
    if not answers:
        return known
    change = _middle([figures.change(answer) for answer in answers])
    moves = _middle([_moved_a_day(answer) for answer in answers])
    radius = [answer.blast_radius for answer in answers]
    cheaper = change is not None and figures.usd_spread is not None and change < -figures.usd_spread
    usual, spread = figures.usual_moves, figures.moved_spread
    calmer = moves is not None and usual is not None and spread is not None and moves < usual - spread
    red = list(dict.fromkeys(text for answer in answers for text in _refusals(answer)))
    open_ = list(dict.fromkeys(text for answer in answers for text in _open(answer, change, figures)))
    verdict: Verdict = "better" if cheaper or calmer else "not better"
    return known.model_copy(
        update={
            "verdict": "not recommended" if red else "not decided" if open_ else verdict,
            "reasons": (red or open_) + ([f"fewer answers than asked for: {failed}"] if failed else []),
            "cheaper": cheaper and not open_,
            "calmer": calmer,
            "asked": len(answers),
            "usd_per_hour_before": _middle([figures.before(answer) for answer in answers]),
            "usd_per_hour": _middle([_usd(answer) for answer in answers]),
            "nodes": _middle([answer.after.nodes if answer.after else None for answer in answers]),
            "pods_moved": _middle([each.pods_moved if each else None for each in radius]),
            "pods_moved_per_day": moves,
            "pods_without_node": _middle([_pods_without_node(answer) for answer in answers]),
            "waiting_before": _middle([answer.before.waiting for answer in answers]),
            "waiting": _middle([answer.after.waiting if answer.after else None for answer in answers]),
        }
    )


def _refusals(answer: Answer) -> Iterator[str]:
    """Why a candidate is not recommended: the what-if's verdict, and what no file of limits allows."""
    if answer.refused:
        yield f"refused: {answer.refused.strip().splitlines()[0]}"
    exceeded = [limit for limit in answer.limits if not limit.within_limit]
    yield from (f"{limit.name}: {limit.limit}, measured: {limit.measured}" for limit in exceeded)
    names, radius = {limit.name for limit in exceeded}, answer.blast_radius
    if radius and radius.pods_killed and "maxPodsKilled" not in names:
        yield f"{wording.plural(radius.pods_killed, 'pod')} deleted in spite of a PodDisruptionBudget or do-not-disrupt"
    if radius and radius.not_schedulable_again and "maxWorkloadsWithoutNodePool" not in names:
        yield f"no NodePool for {wording.plural(len(radius.not_schedulable_again), 'workload')}"
    zones, left = len(answer.before.by_zone), len(answer.after.by_zone) if answer.after else 0
    if answer.after and zones > 1 and left * 2 <= zones:
        yield f"nodes in {wording.plural(left, 'zone')} instead of {zones}"


def _open(answer: Answer, change: float | None, figures: _Figures) -> Iterator[str]:
    """Why a candidate is not decided."""
    if answer.after and not answer.simulated_period and (words := wording.open_end(answer.after)):
        yield words
    if answer.simulated_period and not figures.unchanged:
        yield "the unchanged cluster has no answer to compare with"
    elif change is None:
        yield "dollars are unknown, because prices are missing: give them with --prices"
    elif figures.usd_spread is None:
        yield "nothing has two answers, so the spread is unknown: use --repeat 2 or a longer --limit-minutes"


def _usd(one: Answer) -> float | None:
    return _usd_lived(one) if one.simulated_period else one.after.usd_per_hour if one.after else None


def _usd_lived(one: Answer) -> float | None:
    period = one.simulated_period
    return round(period.usd_per_day / 24, 6) if period and period.usd_per_day is not None else None


def _moved_a_day(one: Answer) -> float | None:
    if not (period := one.simulated_period):
        return None
    seconds = (datetime.fromisoformat(period.ends) - datetime.fromisoformat(period.begins)).total_seconds()
    return round(period.pods_moved * _DAY / seconds, 1) if seconds else None


def _pods_without_node(one: Answer) -> int | None:
    if not one.blast_radius:
        return None
    return one.blast_radius.pods_without_node + (one.simulated_period.pods_without_node if one.simulated_period else 0)


def _middle(values: Sequence[float | None]) -> float | None:
    return Spread(tuple(values)).middle


def _widest(groups: Sequence[Sequence[float | None]]) -> float | None:
    """The largest spread of groups of answers to one question; None if no question was asked twice."""
    spreads = [Spread(tuple(group)) for group in groups]
    return max((one.width for one in spreads if len(one.known_values) > 1), default=None)
