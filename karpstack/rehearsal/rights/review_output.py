"""A review of rights for people: as tables for a terminal, and as a page.

What a recording says is shown, whatever it is: none of it steers a terminal, is markup, or begins a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from karpstack.rehearsal.rights.review import Review, Row, Unused
from karpstack.text.markdown import unlinked
from karpstack.text.shown import visible

#: More values of a condition key than this are counted instead of named.
_MOST_VALUES = 3
#: What Markdown, or HTML within it, does not take as it is: a star is emphasis, a bar a column.
_MARKDOWN = re.compile(r"[\\*|`<&\[]")
_USED = ("statement", "action", "on", "calls", "alone", "conditions met")
_UNUSED = ("statement", "actions", "on", "reason to keep it")


def tables(review: Review) -> RenderableType:
    """For a terminal."""
    used = Table(title="Used", title_justify="left", show_lines=True)
    for column in _USED:
        used.add_column(column, justify="right" if column in ("calls", "alone") else "left", overflow="fold")
    for row in review.rows:
        used.add_row(*map(Text, _used(row, "\n", _line)))
    unused = Table(title="Not used", title_justify="left", show_lines=True)
    for column in _UNUSED:
        unused.add_column(column, overflow="fold")
    for one in review.unused:
        *cells, reason = map(Text, _unused(one, "\n", _line))
        unused.add_row(*cells, reason if one.reason else Text("no reason", "bold red"))
    return Group(
        used,
        unused,
        *(Text(_line(f"spare: {name}: {reason or 'no reason'}")) for name, reason in review.spare.items()),
        *(Text(_line(f"sufficient on {scope}: {', '.join(what)}")) for scope, what in review.least.items()),
        *(Text.assemble(("problem:", "bold red"), f" {_line(text)}") for text in review.problems),
        *(Text(_line(f"note: {text}")) for text in review.notes),
    )


def markdown(review: Review) -> str:
    """For a page: two tables."""
    return "\n".join(
        [
            *_table(_USED, (_used(row, "<br>", _escaped) for row in review.rows)),
            "",
            "Not used:",
            "",
            *_table(_UNUSED, (_unused(one, "<br>", _escaped) for one in review.unused)),
            "",
            *(f"**{_escaped(name)}** is used but not needed: {_escaped(why)}\n" for name, why in review.spare.items()),
            *(
                f"Sufficient actions on {_escaped(scope)}: {', '.join(map(_code, what))}.\n"
                for scope, what in review.least.items()
            ),
        ]
    )


def _used(row: Row, line: str, shown: Callable[[str], str]) -> Sequence[str]:
    """Cells of a row: each part by `shown`, several ones of a cell with `line` between them."""
    return (
        shown(row.statement),
        line.join(map(shown, [row.action, *row.asked])),
        line.join(shown(f"{name} ({count})") for name, count in row.resources),
        str(row.calls),
        str(row.alone),
        line.join(shown(f"{key} = {_values(values)}") for key, values in row.conditions),
    )


def _unused(one: Unused, line: str, shown: Callable[[str], str]) -> Sequence[str]:
    return (
        shown(one.statement),
        line.join(map(shown, one.actions)),
        line.join(map(shown, one.resources)),
        shown(one.reason),
    )


def _values(values: Sequence[str]) -> str:
    return f"{len(values)} values" if len(values) > _MOST_VALUES else ", ".join(value or '""' for value in values)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _line(text: str) -> str:
    """Text of one line, with what would act as its escape."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def _escaped(text: str) -> str:
    """The same for Markdown."""
    return unlinked(_MARKDOWN.sub(r"\\\g<0>", _line(text)))


def _code(text: str) -> str:
    """The same as code, in which Markdown knows no escapes."""
    return "`" + _line(text).replace("`", r"\x60") + "`"
