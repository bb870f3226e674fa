"""What was found, for a terminal and as data. What comes from accounts and clusters is shown, never obeyed."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from scale_test.text.shown import cut, visible

from .finding import Checked, in_the_way

_LONGEST: Final = 600  # characters of a cell
_FINE: Final = "Nothing to say of"


def as_data(checked: Iterable[Checked]) -> dict[str, Any]:
    """For JSON: `{"checks": [{"name", "findings": [{"severity", "what", ...}]}]}`."""
    return {
        "checks": [
            {
                "name": one.name,
                "findings": [{key: visible(value) for key, value in asdict(each).items()} for each in one.findings],
            }
            for one in checked
        ]
    }


def as_result(checked: Sequence[Checked]) -> dict[str, Any]:
    """What Ansible's modules return: the data, what is in the way as texts, and one sentence on all of it."""
    return {
        **as_data(checked),
        "in_the_way": [visible(f"{finding.what}; fix: {finding.fix}") for finding in in_the_way(checked)],
        "summary": headline(checked),
    }


def headline(checked: Sequence[Checked]) -> str:
    """One sentence on all of it."""
    found = [finding.severity for one in checked for finding in one.findings]
    errors, warnings = found.count("error"), found.count("warning")
    return (
        f"{_number(errors, 'thing is', 'things are')} in the way" if errors else "nothing is in the way"
    ) + f" ({len(checked)} checks, {_number(warnings, 'warning', 'warnings')})"


def table(title: str, checked: Sequence[Checked], width: int = 150) -> str:
    """A title, a row a finding, without colours, and below, the checks that found nothing."""
    drawn = Table()
    for heading in ("check", "severity", "found", "consequence and fix"):
        drawn.add_column(heading, overflow="fold")
    for one in checked:
        first = one.name
        for finding in one.findings:
            advice = [finding.consequence, *([f"fix: {finding.fix}"] if finding.fix else [])]
            source = f"({finding.told_by})" if finding.told_by else ""
            drawn.add_row(
                visible(first),
                finding.severity if finding.severity != "error" else "ERROR",
                _cell(f"{finding.what} {source}".strip()),
                "\n".join(_cell(line) for line in advice),
            )
            first = ""
        if one.findings:
            drawn.add_section()
    output = io.StringIO()
    # What is in brackets is text too.
    console = Console(file=output, width=width, no_color=True, markup=False, emoji=False)
    console.print(visible(title))
    if drawn.rows:
        console.print(drawn)
    if quiet := ", ".join(one.name for one in checked if not one.findings):
        console.print(f"{_FINE}: {quiet}")
    return output.getvalue().rstrip()


def _cell(text: str) -> str:
    """The same of a length that a table can bear; JSON and Ansible have the whole."""
    return visible(cut(text, _LONGEST))


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
