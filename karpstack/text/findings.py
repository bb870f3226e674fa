"""Findings for a terminal, Markdown, HTML, JSON and SARIF: the one renderer of `karpstack.karpenter.findings.Finding`.

What comes from files, accounts and clusters is shown, never obeyed.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple, Self

from karpstack.karpenter.findings import Finding

from . import markdown
from .shown import cut, message, visible

SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST: Final = 600  # characters of a cell
_COLUMNS: Final = ("severity", "code", "where", "found", "consequence and fix")


class FindingsError(ValueError):
    """Something is refused.

    Attributes:
        findings: What is wrong; empty where only the text says it.
    """

    def __init__(self, text: str, findings: Iterable[Finding] = ()) -> None:
        super().__init__(text)
        self.findings = tuple(findings)

    @classmethod
    def of(cls, *findings: Finding) -> Self:
        """The error of findings; its text has a line for each."""
        return cls(lines(findings), findings)


def line(finding: Finding, *more: str) -> str:
    """On one line: file, key, value, what is wrong, how to fix it, and more."""
    why = "; ".join(filter(None, (finding.what, finding.consequence, finding.fix, *more)))
    return ": ".join(filter(None, (finding.where, finding.value, why)))


def lines(findings: Iterable[Finding]) -> str:
    """The text of an error: a line for each finding; of many the first ones."""
    return message([line(one) for one in findings])


def as_data(finding: Finding) -> dict[str, Any]:
    """For JSON: every field; `where` has file, line and key."""
    fields = {name: visible(value) if isinstance(value, str) else value for name, value in asdict(finding).items()}
    where = {name: fields.pop(name) for name in ("file", "line", "key")}
    return {**fields, "where": where}


def text(findings: Iterable[Finding]) -> str:
    """For a terminal, one after the other: the code, and below it where, what, consequence and fix."""
    return "\n\n".join(visible(f"{one.severity}[{one.code}] {one}") for one in findings)


def table(title: str, groups: Mapping[str, Sequence[Finding]], width: int = 150) -> str:
    """For a terminal: a title, a row for each finding, without colours; below, the groups that have none.

    Args:
        title: The first line.
        groups: Findings by what found them, a check for example.
        width: Characters of a line.
    """
    from rich.console import Console
    from rich.table import Table

    drawn = Table()
    for heading in ("check", "severity", "found", "consequence and fix"):
        drawn.add_column(heading, overflow="fold")
    for name, findings in groups.items():
        for number, finding in enumerate(findings):
            source = f" ({finding.told_by})" if finding.told_by else ""
            drawn.add_row(
                visible(name) if number == 0 else "",
                finding.severity if finding.severity != "error" else "ERROR",
                _cell(finding.message + source),
                "\n".join(map(_cell, _advice(finding))),
            )
        if findings:
            drawn.add_section()
    output = io.StringIO()
    # What is in brackets is text too.
    console = Console(file=output, width=width, no_color=True, markup=False, emoji=False)
    # Folded within a word, a line could begin with a command to GitHub.
    console.print(visible(title), soft_wrap=True)
    if drawn.rows:
        console.print(drawn)
    if quiet := ", ".join(name for name, findings in groups.items() if not findings):
        console.print(f"No findings: {quiet}", soft_wrap=True)
    return output.getvalue().rstrip()


def as_markdown(findings: Sequence[Finding], whole: str) -> str:
    """A table in GitHub's Markdown; `whole` is the file that has all rows, where they are too many."""
    rows = [cells(one, markdown.escape) for one in findings]
    return "\n".join(markdown.table(_COLUMNS, rows, whole)).rstrip() + "\n"


def as_html(findings: Sequence[Finding]) -> str:
    """A table for a page."""
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = [cells(one, html.escape) for one in findings]
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<table class="findings">\n<tr>{head}</tr>\n{body}</table>\n'


def as_sarif(findings: Iterable[Finding], tool: str) -> str:
    """The Static Analysis Results Interchange Format 2.1.0, for code scanning."""
    results = [result(one) for one in findings]
    rules = [{"id": code} for code in sorted({one["ruleId"] for one in results})]
    run = {"tool": {"driver": {"name": tool, "rules": rules}}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps(sarif(run), indent=2, ensure_ascii=False) + "\n"


def sarif(run: Mapping[str, Any]) -> dict[str, Any]:
    """A SARIF document of one run."""
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def result(finding: Finding) -> dict[str, Any]:
    """A finding as a result of SARIF."""
    made: dict[str, Any] = {
        "ruleId": finding.code,
        "level": finding.severity,
        "message": sarif_message("\n".join(filter(None, (finding.found, *_advice(finding))))),
    }
    if finding.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": finding.file}}
        if finding.line:
            place["region"] = {"startLine": finding.line}
        made["locations"] = [{"physicalLocation": place}]
    return made


def sarif_message(text: str) -> dict[str, str]:
    """A message of SARIF without links, which `[a](b)` in one would be: section 3.11.6 of the standard."""
    return {"text": visible(text).replace("](", "] (")}


class Cells(NamedTuple):
    """A row of a table, in Markdown or HTML."""

    severity: str
    code: str
    where: str
    found: str
    advice: str


def cells(finding: Finding, escape: Callable[[str], str]) -> Cells:
    """A finding as a row.

    Args:
        finding: The finding.
        escape: Returns a text as Markdown or HTML.
    """
    code = f"<code>{escape(finding.code)}</code>"
    if finding.link.startswith("https://"):
        code = f'<a href="{markdown.escape_url(finding.link)}">{code}</a>'
    advice = "<br>".join(escape(_cell(line)) for line in _advice(finding))
    found = finding.what or finding.value
    return Cells(finding.severity, code, escape(_cell(finding.where or finding.subject)), escape(_cell(found)), advice)


def _advice(finding: Finding) -> list[str]:
    return [one for one in (finding.consequence, finding.fix and f"fix: {finding.fix}") if one]


def _cell(said: str) -> str:
    """A text of a length that a table can bear; JSON has the whole."""
    return visible(cut(said, _LONGEST))
