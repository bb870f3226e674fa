"""A review of rights for people: as tables for a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from rehearsal.rights.review import Review, Row

#: More values of a condition key than this are counted instead of named.
_MOST_VALUES = 3


def tables(review: Review) -> RenderableType:
    """For a terminal."""
    used = Table(title="Used", title_justify="left", show_lines=True)
    for column in ("statement", "action", "on", "calls", "alone", "conditions met"):
        used.add_column(column, justify="right" if column in ("calls", "alone") else "left", overflow="fold")
    for row in review.rows:
        used.add_row(*map(escape, _cells(row, "\n")))
    unused = Table(title="Not used", title_justify="left", show_lines=True)
    for column in ("statement", "actions", "on", "why it stays"):
        unused.add_column(column, overflow="fold")
    for one in review.unused:
        cells = one.statement, "\n".join(one.actions), "\n".join(one.resources), one.reason
        unused.add_row(*map(escape, cells[:3]), escape(one.reason) or "[bold red]no reason[/]")
    spare = [f"spare: {escape(name)}: {escape(reason or 'no reason')}" for name, reason in review.spare.items()]
    least = [f"enough on {escape(scope)}: {escape(', '.join(what))}" for scope, what in review.least.items()]
    problems = [f"[bold red]problem:[/] {escape(text)}" for text in review.problems]
    return Group(used, unused, *spare, *least, *problems, *(f"note: {escape(text)}" for text in review.notes))


def markdown(review: Review) -> str:
    """For a page: two tables."""
    return "\n".join(
        [
            *_table(
                ("statement", "action", "on", "calls", "alone", "conditions met"),
                (_cells(row, "<br>") for row in review.rows),
            ),
            "",
            "Not used:",
            "",
            *_table(
                ("statement", "actions", "on", "why it stays"),
                (
                    (one.statement, "<br>".join(one.actions), "<br>".join(one.resources), one.reason)
                    for one in review.unused
                ),
            ),
            "",
            *(f"**{name}** is used and could go: {reason}\n" for name, reason in review.spare.items()),
            *(f"Enough on {scope}: {', '.join(f'`{one}`' for one in what)}.\n" for scope, what in review.least.items()),
        ]
    )


def _cells(row: Row, line: str) -> tuple[str, ...]:
    return (
        row.statement,
        line.join([row.action, *row.asked]),
        line.join(f"{name} ({count})" for name, count in row.resources),
        str(row.calls),
        str(row.alone),
        line.join(f"{key} = {_values(values)}" for key, values in row.conditions),
    )


def _values(values: Sequence[str]) -> str:
    return f"{len(values)} values" if len(values) > _MOST_VALUES else ", ".join(value or '""' for value in values)


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        # A star is emphasis to Markdown, a bar a column.
        yield f"| {' | '.join(cell.replace('*', chr(92) + '*').replace('|', chr(92) + '|') for cell in row)} |"
