"""Compares the reports of two folders and writes the page, for the command line and the playbook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karpstack.text.files import check_output
from karpstack.text.files import write as write_file

from . import comparison, comparison_page, reading


def compare_reports(
    before: Path, after: Path, dest: Path, rules: Mapping[str, Any], *, write: bool = True
) -> tuple[comparison.Comparison, bool]:
    """Compare two reports; what came of it, and whether the page is another one than before.

    Args:
        before: Folder of the report to compare with.
        after: Folder of the report that is judged.
        dest: The page.
        rules: What counts as a difference, as `comparison.parse_rules` takes it.
        write: Whether to write the page.

    Raises:
        ValueError: A report or a rule cannot be used, or `dest` is somebody else's file; the message has the fix.
    """
    old, new = _report("before", before), _report("after", after)
    parsed = comparison.parse_rules(rules)
    result = comparison.compare(old, new, parsed)
    html = comparison_page.render(result, old, new, parsed)
    check_output(dest, "comparison =", "page of a comparison", lambda it: bool(comparison_page.BEGINS.match(it)))
    there = dest.read_text(encoding="utf-8", errors="replace") if dest.is_file() else ""
    if there != html and write:
        dest.parent.mkdir(parents=True, exist_ok=True)
        write_file(dest, html)
    return result, there != html


def _report(key: str, folder: Path) -> dict[str, Any]:
    try:
        return reading.read(folder / "report.json")
    except reading.ReportError as error:
        raise ValueError(
            f"{key} = {folder}: {error}. Nothing was compared; name the folder that a scale test wrote its report to"
        ) from error
