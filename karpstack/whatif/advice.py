"""Advice: what the answers to several candidates recommend, as data and as Markdown.

A candidate is cheaper or calmer only by more than the spread of answers to the same question. Whether a candidate may
be recommended at all is the what-if's own verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import Final, Literal

from pydantic import Field

from karpstack.scale_test.reports import units
from karpstack.text.markdown import code, collapsed, escape, fitting, table
from karpstack.text.shown import visible

from . import wording
from .answer import Answer, Part
from .candidates import Spread, remarks
from .proposals import Candidate, Pools, manifests

FILE: Final = "advice.json"
WHOLE: Final = "advice.md"
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
    reasons: list[str] = Field(description="Why it is not recommended, or not decided; a sentence each.")
    cheaper: bool = Field(False, description="`true`: cheaper by more than the spread.")
    calmer: bool = Field(False, description="`true`: moves fewer pods a day, by more than the spread.")
    asked: int = Field(0, description="How many times it was rehearsed.")
    usd_per_hour_before: float | None = Field(None, description="USD an hour without it; null if unknown.")
    usd_per_hour: float | None = Field(None, description="USD an hour with it: the median; null if unknown.")
    nodes: float | None = Field(None, description="Nodes after the change: the median.")
    pods_moved: float | None = Field(None, description="Pods that the change itself moves: the median.")
    pods_moved_per_day: float | None = Field(None, description="Pods moved a day afterwards; null without `--for`.")
    pods_unschedulable: float | None = Field(None, description="Pods that were unschedulable for a time: the median.")
    pods_without_node: float | None = Field(None, description="Additional pods without a node at the end: the median.")


class Advice(Part):
    """The advice for a cluster."""

    schema_version: Literal[1] = 1
    snapshot: str = Field(description="File name of the snapshot.")
    usd_spread: float | None = Field(description="Spread of USD an hour in answers to one question; null if unknown.")
    moved_spread: float | None = Field(description="Spread of pods moved a day; null if unknown.")
    base: list[str] = Field([], description="What was rehearsed without a change, a sentence each.")
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
        self._unchanged = unchanged
        groups = [*answers.values(), unchanged]
        everyone = [one for group in groups for one in group]
        if any(one.life for one in everyone):
            dollars = [[_usd_lived(one) for one in group] for group in groups]
        else:  # each answer has a base of its own, which is the same question
            dollars = [[self.change(one) for one in group] for group in groups]
            dollars.append([one.before.usd_per_hour for one in everyone])
        self.usd_spread = _widest(dollars)
        self.moved_spread = _widest([[_moved_a_day(one) for one in group] for group in groups])
        self.usual_moves = _middle([_moved_a_day(one) for one in unchanged])

    def before(self, one: Answer) -> float | None:
        """USD an hour without the change."""
        return _middle([_usd_lived(each) for each in self._unchanged]) if one.life else one.before.usd_per_hour

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
        failed: Name of a candidate that was rehearsed without an answer -> why.
    """
    figures = _Figures(answers, unchanged)
    everyone = [*unchanged, *(one for group in answers.values() for one in group)]
    base = [
        f"without a change: {units.dollars(_usd(one))} an hour, {_moved_a_day(one) or 0:g} pods moved a day"
        for one in unchanged
        if one.life
    ]
    return Advice(
        snapshot=snapshot,
        usd_spread=figures.usd_spread,
        moved_spread=figures.moved_spread,
        base=base,
        candidates=[_advised(one, answers.get(one.name, ()), figures, failed or {}) for one in candidates],
        dropped=dict(dropped or {}),
        remarks=list(remarks(everyone)),
    )


def _advised(one: Candidate, answers: Sequence[Answer], figures: _Figures, failed: Mapping[str, str]) -> Advised:
    known: Advised = Advised(
        name=one.name,
        why=one.why,
        changed=one.changed,
        removed=one.removed,
        manifests=f"manifests/{one.name}.yaml",
        verdict="no answer" if one.name in failed else "not rehearsed",
        reasons=[failed[one.name]] if one.name in failed else [],
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
            "reasons": red or open_,
            "cheaper": cheaper and not open_,
            "calmer": calmer,
            "asked": len(answers),
            "usd_per_hour_before": _middle([figures.before(answer) for answer in answers]),
            "usd_per_hour": _middle([_usd(answer) for answer in answers]),
            "nodes": _middle([answer.after.nodes if answer.after else None for answer in answers]),
            "pods_moved": _middle([each.pods_moved if each else None for each in radius]),
            "pods_moved_per_day": moves,
            "pods_unschedulable": _middle([_without_home(answer) for answer in answers]),
            "pods_without_node": _middle([each.unschedulable if each else None for each in radius]),
        }
    )


def _refusals(answer: Answer) -> Iterator[str]:
    """Why a candidate is not recommended: the what-if's verdict, and half of the zones."""
    if answer.refused:
        yield f"refused: {answer.refused.strip().splitlines()[0]}"
    for limit in answer.limits:
        if not limit.kept:
            yield f"{limit.name}: {limit.limit}, seen {limit.seen}"
    zones, left = len(answer.before.by_zone), len(answer.after.by_zone) if answer.after else 0
    if answer.after and zones > 1 and left * 2 <= zones:
        yield f"nodes in {wording.plural(left, 'zone')} instead of {zones}"


def _open(answer: Answer, change: float | None, figures: _Figures) -> Iterator[str]:
    """Why a candidate is not decided."""
    if answer.after and not answer.life and (words := wording.open_end(answer.after)):
        yield words
    if change is None:
        yield "dollars are not known, because prices are missing: give them with --prices"
    elif figures.usd_spread is None:
        yield "asked once, so the spread is not known: ask again with --repeat 2"


def _usd(one: Answer) -> float | None:
    return _usd_lived(one) if one.life else one.after.usd_per_hour if one.after else None


def _usd_lived(one: Answer) -> float | None:
    return round(one.life.usd_per_day / 24, 6) if one.life and one.life.usd_per_day is not None else None


def _moved_a_day(one: Answer) -> float | None:
    if not one.life:
        return None
    seconds = (datetime.fromisoformat(one.life.ends) - datetime.fromisoformat(one.life.begins)).total_seconds()
    return round(one.life.pods_moved * _DAY / seconds, 1) if seconds else None


def _without_home(one: Answer) -> int | None:
    if not one.blast_radius:
        return None
    return one.blast_radius.without_home + (one.life.without_home if one.life else 0)


def _middle(values: Sequence[float | None]) -> float | None:
    return Spread(tuple(values)).middle


def _widest(groups: Sequence[Sequence[float | None]]) -> float | None:
    """The largest spread of groups of answers to one question; None if no question was asked twice."""
    spreads = [Spread(tuple(group)) for group in groups]
    return max((one.width for one in spreads if len(one.known) > 1), default=None)


def markdown(advice: Advice, candidates: Sequence[Candidate], now: Pools) -> str:
    """Return the advice as a comment on a pull request: the table, and the changes to unfold.

    Args:
        candidates: The candidates.
        now: The NodePools of the cluster.
    """
    parts = [shown(advice)]
    for one in candidates:
        text = "\n".join(line for name in (*one.changed, *one.removed) for line in _diff(name, now, one.pools))
        body = visible(text).replace("```", "` ` `")
        parts.append("\n".join(collapsed(f"{one.name}: the change", [f"```diff\n{body}\n```\n"])))
    return fitting("\n".join(parts), "the folder manifests")


def _diff(name: str, now: Pools, then: Pools) -> Iterator[str]:
    before, after = (manifests({name: pools[name]} if name in pools else {}).splitlines() for pools in (now, then))
    yield from unified_diff(before, after, f"NodePool {name}", f"NodePool {name}", lineterm="", n=2)


def shown(advice: Advice) -> str:
    """Return the advice as Markdown without the changes."""
    return "\n".join(_document(advice)).rstrip() + "\n"


def _document(advice: Advice) -> Iterator[str]:
    better = sum(one.verdict == "better" for one in advice.candidates)
    asked = sum(one.asked > 0 for one in advice.candidates)
    said = f"{better} of {asked} changes better than now" if asked else "nothing was rehearsed"
    yield f"## Advice for {escape(advice.snapshot)}: {said}\n"
    lived = bool(advice.base)
    head = ["candidate", "advice", "dollars an hour now:", "with it:", "change:", "nodes:", "pods moved by the change:"]
    head += ["moved a day:"] if lived else []
    head += ["unschedulable for a while:", "without a node:"]
    ranked = sorted(advice.candidates, key=_rank)
    yield from table(head, [_row(one, lived=lived) for one in ranked], FILE)
    yield from (f"- **{escape(one.name)}**: {escape('; '.join(one.reasons))}" for one in ranked if one.reasons)
    yield from (f"- {escape(text)}" for text in advice.base)
    for name, why in advice.dropped.items():
        yield f"- {escape(name)} was not rehearsed: {escape(why)}."
    yield f"\n{_spread(advice)}\n" if asked else ""
    yield from (f"{escape(text)}\n" for text in advice.remarks)
    for one in ranked:
        yield f"- {escape(one.name)}: {escape(one.why)} {code(one.manifests)}{_removal(one)}"


def _rank(one: Advised) -> tuple[bool, bool, float]:
    known = one.usd_per_hour is not None and one.usd_per_hour_before is not None
    change = (one.usd_per_hour or 0) - (one.usd_per_hour_before or 0)
    return one.verdict != "better", one.verdict != "not better", change if known else float("inf")


def _row(one: Advised, *, lived: bool) -> list[str]:
    said = " and ".join(word for word in ("cheaper", "calmer") if getattr(one, word))
    verdict = said if one.verdict == "better" else one.verdict
    change = wording.change(one.usd_per_hour_before, one.usd_per_hour)
    cells = [escape(one.name), f"**{verdict}**" if one.verdict == "better" else verdict]
    if not one.asked:
        return [*cells, *[""] * (8 if lived else 7)]
    dollars = [units.dollars(usd) for usd in (one.usd_per_hour_before, one.usd_per_hour)]
    cells += [text.replace("$", "\\$") for text in (*dollars, change or "not known")]
    counts = [one.nodes, one.pods_moved, *([one.pods_moved_per_day] if lived else [])]
    return cells + [f"{n:g}" if n is not None else "" for n in (*counts, one.pods_unschedulable, one.pods_without_node)]


def _spread(advice: Advice) -> str:
    if advice.usd_spread is None:
        return "No question was asked twice, so the spread is not known and nothing counts as cheaper."
    text = f"Answers to the same question differ by up to {units.dollars(advice.usd_spread)} an hour"
    if advice.moved_spread is not None:
        text += f" and by {advice.moved_spread:g} pods moved a day"
    return f"{text}; smaller differences count as none.".replace("$", "\\$")


def _removal(one: Advised) -> str:
    return f" After it, delete NodePool {', '.join(map(escape, one.removed))}." if one.removed else ""
