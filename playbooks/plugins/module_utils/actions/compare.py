"""The action that compares two reports."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from karpstack.scale_test.reports import comparison
from karpstack.scale_test.reports.comparing import compare_reports
from karpstack.text.shown import visible

from . import Result

ERRORS: Final = (ValueError,)


def compare(
    before: Path, after: Path, dest: Path, rules: Result, fail_if: Literal["", "worse", "any-worse"], *, check: bool
) -> Result:
    """Compare two reports and write a page, but not in check mode; a verdict is no error."""
    result, changed = compare_reports(before, after, dest, rules, write=not check)
    return {
        "changed": changed,
        "verdict": result.verdict,
        "refused": fail_if != "" and comparison.refused(result, fail_if),
        "sentence": visible(result.sentence),
        "worse": [visible(line) for line in comparison.what_got_worse(result)],
        "not_compared": [visible(line) for line in result.not_compared],
    }
