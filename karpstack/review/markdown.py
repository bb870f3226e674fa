"""review.md: the review as a comment on a pull request (GitHub's Markdown)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karpstack.text.findings import cells
from karpstack.text.markdown import code, collapsed, escape, fitting, table

from . import wording
from .model import Judged, Permission, Pool, Review

#: How every comment begins.
BEGINS: Final = "## Review of"
_WHOLE: Final = "review.html"
_ITEMS: Final = 4
#: Resources of findings that are alike, before they are folded.
_NAMED: Final = 3


def render(review: Review) -> str:
    """The comment."""
    text = "\n".join(_document(review)).rstrip() + "\n"
    return fitting(text, _WHOLE)


def _document(review: Review) -> Iterator[str]:
    yield f"{BEGINS} {escape(review.stack)}: {wording.headline(review).rstrip('.')}\n"
    yield f"{escape(wording.summary(review))}\n"
    yield f"Policies as in {code(review.pack_configuration)}, stack configuration {code(review.configuration)}.\n"
    for failure in review.failures:
        yield f"> {escape(failure)}\n"
    yield from _findings(review)
    yield from _changes(review)
    yield from _pools(review)
    yield from _permissions(review)
    yield from _not_judged(review)


def _findings(review: Review) -> Iterator[str]:
    yield "### Findings\n"
    if not review.findings:
        yield "None.\n" if review.verdict != "failed" else "None before the preview failed.\n"
    else:
        rows = [
            (
                finding.level + (" **mandatory**" if finding.mandatory else " advisory"),
                row.code,
                _subjects([finding, *others]) + (f"<br>{code(finding.place)}" if finding.key else ""),
                row.found,
                row.advice,
            )
            for finding, *others in wording.group_by_text(review.findings)
            for row in (cells(finding, escape),)
        ]
        yield from _table(("Severity", "Rule", "Resource", "Found", "Otherwise, and fix"), rows)
    if review.excused:
        yield "#### Exceptions in force\n"
        excused = [
            (
                code(excused.finding.code),
                escape(excused.finding.subject or excused.pattern),
                excused.until,
                escape(excused.reason),
                escape(excused.finding.what or "nothing in this preview"),
            )
            for excused in review.excused
        ]
        yield from _table(("Rule", "Resource", "Until", "Reason", "Excused"), excused)


def _changes(review: Review) -> Iterator[str]:
    yield "### Changes\n"
    if review.changes:
        rows = [
            (f"**{change.operation}**", escape(change.name), escape(change.type), escape(", ".join(change.properties)))
            for change in review.changes
        ]
        yield from _table(("Operation", "Resource", "Type", "Properties"), rows)
    if review.counts:
        numbers = [(count.operation, escape(count.type), str(count.number)) for count in review.counts]
        yield from collapsed("By type", _table(("Operation", "Type", "Resources"), numbers))


def _pools(review: Review) -> Iterator[str]:
    yield "### Cost and instance types\n"
    ceiling = escape(wording.stack_cost(review.cost, review.pools))
    ceiling = ceiling[:1].upper() + ceiling[1:]
    yield f"**{ceiling}.** NodePools only, at prices on demand.\n"
    for note in review.cost.notes:
        yield f"> {escape(note)}\n"
    if review.pools:
        head = ("NodePool", "At most, USD/h", "Types", "Cheapest", "Dearest", "Limits")
        yield from _table(head, [_pool(pool) for pool in review.pools])


def _pool(pool: Pool) -> tuple[str, ...]:
    if pool.unknown:
        return escape(pool.name), "not known", "", escape(pool.unknown), "", escape(", ".join(pool.limits))
    ends = [
        f"{escape(end.name)} {wording.money(end.usd) or 'no price'}" for end in (*pool.types[:1], *pool.types[-1:])
    ] or ["none", "none"]
    bound = "**unbounded**" if pool.unbounded else wording.money(pool.usd)
    return escape(pool.name), bound, str(len(pool.types)), *ends, escape(", ".join(pool.limits))


def _permissions(review: Review) -> Iterator[str]:
    yield "### Permissions\n"
    if not review.entries and not review.permissions:
        yield "None are granted.\n"
    if review.entries:
        rows = [
            (escape(entry.identity), escape(entry.who), escape("; ".join(entry.when)), escape(entry.source))
            for entry in review.entries
        ]
        yield from collapsed("Who may act as whom", _table(("Identity", "Who", "When", "By"), rows))
    if review.permissions:
        granted = [_permission(permission) for permission in review.permissions]
        yield from collapsed("What each may do", _table(("Identity", "May", "On", "When", "By"), granted))


def _permission(grant: Permission) -> tuple[str, ...]:
    identity, source = escape(grant.identity), escape(grant.source)
    if grant.unknown:
        return identity, f"<i>{escape(grant.unknown)}</i>", "", "", source
    may = ("" if grant.effect == "Allow" else "**not** ") + _first_few(grant.actions)
    return identity, f"**broad** {may}" if grant.broad else may, _first_few(grant.on), _first_few(grant.when), source


def _not_judged(review: Review) -> Iterator[str]:
    gaps = review.not_judged
    if not gaps:
        return
    rows = [(code(gap.rule), escape(wording.subject(gap.resource)), escape(gap.why)) for gap in gaps]
    yield from collapsed(f"Not judged in this preview ({len(rows)})", _table(("Rule", "Resource", "Why"), rows))


def _subjects(findings: Sequence[Judged]) -> str:
    """What findings that are alike are about: each, and where they are many, folded behind their number."""
    names = [escape(wording.subject(finding.subject)) for finding in findings]
    together = ", ".join(names)
    if len(names) <= _NAMED:
        return together
    return f"<details><summary>{len(names)} resources</summary>{together}</details>"


def _first_few(items: Sequence[str]) -> str:
    """The first few of many."""
    more = len(items) - _ITEMS
    shown = ", ".join(escape(item) for item in items[:_ITEMS])
    return f"{shown} and {more} more" if more > 0 else shown


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from table(head, rows, _WHOLE)
