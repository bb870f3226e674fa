"""The documents of an advice: text for a terminal, Markdown for a pull request, and a page with charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

from karpstack.scale_test.reports import units
from karpstack.scale_test.reports.page import template
from karpstack.text.markdown import code, collapsed, escape, fitting, table
from karpstack.text.shown import visible

from . import wording
from .advice import Advice, Advised
from .advice_chart import charts
from .proposals import Candidate, Pools, manifests

FILE: Final = "advice.json"
MARKDOWN: Final = "advice.md"
PAGE: Final = "advice.html"
_TEMPLATES: Final = Path(__file__).parent / "templates"
_HEAD: Final = ("candidate", "advice", "USD/h now:", "USD/h with it:", "change:", "nodes:", "pods moved:")
_HEAD_OF_DAYS: Final = ("moved a day:",)
_HEAD_OF_PODS: Final = ("without node for a time:", "without node at the end:")
_NOW: Final = 2  # the column that the terminal leaves out: `change` follows from it


def text(advice: Advice) -> str:
    """Return the advice for a terminal."""
    rows = [_head(advice), *(_cells(one, advice) for one in ranked(advice))]
    kept = [[cell for index, cell in enumerate(row) if index != _NOW] for row in rows]
    asked = any(one.asked for one in advice.candidates)
    told = [one for one in ranked(advice) if one.verdict == "better" or not asked]
    parts = [
        [title(advice)],
        _aligned(kept) if advice.candidates else [],
        list(notes(advice)),
        [f"{one.name}: {one.why} Manifests: {one.manifests}.{removal(one)}" for one in told],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; columns whose heading ends in a colon are aligned to the right."""
    right = [heading.endswith(":") for heading in rows[0]]
    cells = [[cell.removesuffix(":") for cell in rows[0]], *rows[1:]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def markdown(advice: Advice, candidates: Sequence[Candidate], now: Pools) -> str:
    """Return the advice as a comment on a pull request: the table, and the changes to unfold.

    Args:
        candidates: The candidates.
        now: The NodePools of the cluster.
    """
    parts = [*_markdown(advice)]
    for name, lines in _changes(candidates, now).items():
        body = visible(lines).replace("```", "` ` `")
        parts.append("\n".join(collapsed(f"{name}: the change", [f"```diff\n{body}\n```\n"])))
    return fitting("\n".join(parts), "the folder manifests")


def _markdown(advice: Advice) -> Iterator[str]:
    yield f"## {escape(title(advice))}\n"
    rows = []
    for one in ranked(advice):
        name, verdict, *figures = _cells(one, advice)
        bold = f"**{verdict}**" if one.verdict == "better" else verdict
        rows.append([escape(name), bold, *(cell.replace("$", "\\$") for cell in figures)])
    yield from table(_head(advice), rows, FILE)
    yield from (f"- {escape(line)}" for line in notes(advice))
    yield ""
    for one in ranked(advice):
        yield f"- **{escape(one.name)}**: {escape(one.why)} {code(one.manifests)}{escape(removal(one))}"
    yield ""


def page(advice: Advice, candidates: Sequence[Candidate], now: Pools) -> str:
    """Return the advice as a page with charts; the arguments are those of `markdown`."""
    return template("advice.html.j2", _TEMPLATES).render(
        advice=advice,
        verdict=verdict(advice),
        head=_head(advice),
        rows=[(one, _cells(one, advice), removal(one)) for one in ranked(advice)],
        notes=list(notes(advice)),
        charts=charts(advice),
        changes=_changes(candidates, now),
    )


def title(advice: Advice) -> str:
    """Return the advice in one line."""
    return f"Advice for {advice.snapshot}: {verdict(advice)}"


def verdict(advice: Advice) -> str:
    """Return how many changes are better, and which one is the cheapest."""
    asked = sum(one.asked > 0 for one in advice.candidates)
    better = [one for one in ranked(advice) if one.verdict == "better"]
    said = f"{len(better)} of {units.plural(asked, 'change')} better than now"
    if not asked:
        said = "no change has an answer" if missing(advice) else "nothing was rehearsed"
    elif better and better[0].cheaper:
        change = wording.change(better[0].usd_per_hour_before, better[0].usd_per_hour)
        said += f"; cheapest: {better[0].name}, {change} an hour"
    return said


def missing(advice: Advice) -> list[str]:
    """Return the names of what has no answer although it was asked."""
    names = [one.name for one in advice.candidates if one.verdict == "no answer"]
    return [*names, *(["the unchanged cluster"] if advice.no_base else [])]


def ranked(advice: Advice) -> list[Advised]:
    """Return the candidates, the best first."""

    def rank(one: Advised) -> tuple[bool, bool, float]:
        known = one.usd_per_hour is not None and one.usd_per_hour_before is not None
        change = (one.usd_per_hour or 0) - (one.usd_per_hour_before or 0)
        return one.verdict != "better", one.verdict != "not better", change if known else float("inf")

    return sorted(advice.candidates, key=rank)


def notes(advice: Advice) -> Iterator[str]:
    """Yield what is to be known beside the table, a sentence each."""
    for one in ranked(advice):
        yield from (f"{one.name}: {reason}." for reason in one.reasons)
    if advice.no_base:
        yield f"The unchanged cluster has no answer: {advice.no_base}."
    if advice.pods_moved_per_day is not None:
        usd = units.dollars(advice.usd_per_hour)
        yield f"Without a change: {usd} an hour, {advice.pods_moved_per_day:g} pods moved a day."
    yield from _homeless(advice)
    yield from (f"{name} was not rehearsed: {why}." for name, why in advice.dropped.items())
    if any(one.asked for one in advice.candidates):
        yield _spread(advice)
    yield from advice.remarks


def _homeless(advice: Advice) -> Iterator[str]:
    """Say whose dollars are not those of the same pods: a change can cost more because a pod gets its node."""
    now = max((one.waiting_before or 0 for one in advice.candidates), default=0)
    if not now:
        return
    yield f"Without a node now: {units.plural(int(now), 'pod')}."
    for one in ranked(advice):
        if (
            one.waiting is not None
            and one.waiting_before is not None
            and (more := one.waiting_before - one.waiting) > 0
        ):
            yield f"{one.name}: {units.plural(int(more), 'pod')} more with a node, which is part of its dollars."


def _head(advice: Advice) -> list[str]:
    if not any(one.asked for one in advice.candidates):
        return [*_HEAD[:_NOW]]
    return [*_HEAD, *(_HEAD_OF_DAYS if _lived(advice) else ()), *_HEAD_OF_PODS]


def _lived(advice: Advice) -> bool:
    moved = [advice.pods_moved_per_day, *(one.pods_moved_per_day for one in advice.candidates)]
    return any(number is not None for number in moved)


def _cells(one: Advised, advice: Advice) -> list[str]:
    """Return the row of a candidate."""
    said = " and ".join(word for word in ("cheaper", "calmer") if getattr(one, word))
    cells = [one.name, said if one.verdict == "better" else one.verdict]
    if not one.asked:
        return [*cells, *[""] * (len(_head(advice)) - len(cells))]
    change = wording.change(one.usd_per_hour_before, one.usd_per_hour) or "unknown"
    cells += [units.dollars(one.usd_per_hour_before), units.dollars(one.usd_per_hour), change]
    moved = [one.pods_moved, *([one.pods_moved_per_day] if _lived(advice) else [])]
    counts = (one.nodes, *moved, one.pods_without_node, one.waiting)
    return cells + [f"{number:g}" if number is not None else "" for number in counts]


def _spread(advice: Advice) -> str:
    if advice.usd_spread is None:
        return "No question has two answers, so the spread is unknown and nothing counts as cheaper."
    said = f"Answers to the same question differ by up to {units.dollars(advice.usd_spread)} an hour"
    if advice.moved_spread is not None:
        said += f" and by {advice.moved_spread:g} pods moved a day"
    return f"{said}; smaller differences count as none."


def removal(one: Advised) -> str:
    """Return what else is to be done for a candidate; empty for nothing."""
    return f" Then delete NodePool {', '.join(one.removed)}." if one.removed else ""


def _changes(candidates: Sequence[Candidate], now: Pools) -> dict[str, str]:
    """Return each candidate's change as a diff."""
    return {
        one.name: "\n".join(line for name in (*one.changed, *one.removed) for line in _diff(name, now, one.pools))
        for one in candidates
    }


def _diff(name: str, now: Pools, then: Pools) -> Iterator[str]:
    before, after = (manifests({name: pools[name]} if name in pools else {}).splitlines() for pools in (now, then))
    yield from unified_diff(before, after, f"NodePool {name}", f"NodePool {name}", lineterm="", n=2)
