"""Findings as text for a terminal and as data. Text from accounts and clusters cannot steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from karpstack.text import findings
from karpstack.text.shown import visible

from .finding import Checked, Finding, blockers, not_checked


def as_data(checked: Iterable[Checked]) -> dict[str, Any]:
    """For JSON: `{"checks": [{"name", "findings": [{"severity", "what", ...}]}]}`."""
    return {"checks": [{"name": one.name, "findings": list(map(findings.as_data, one.findings))} for one in checked]}


def as_result(checked: Sequence[Checked]) -> dict[str, Any]:
    """What Ansible's modules return: the data, what is in the way as texts, and one sentence on all of it."""
    return {
        **as_data(checked),
        "in_the_way": [visible(f"{finding.what}; fix: {finding.fix}") for finding in blockers(checked)],
        "summary": headline(checked),
    }


def all_findings(checked: Iterable[Checked]) -> list[Finding]:
    """The findings of all checks."""
    return [finding for one in checked for finding in one.findings]


def headline(checked: Sequence[Checked]) -> str:
    """Return one sentence: how many blockers, checks and warnings."""
    found = [finding.severity for one in checked for finding in one.findings]
    errors, warnings = found.count("error"), found.count("warning")
    blocking = _number(errors, "blocker", "blockers") if errors else "no blocker"
    unknown = sum(bool(not_checked([one])) for one in checked)
    unanswered = f", {unknown} of them without an answer" if unknown else ""
    return f"{blocking} ({len(checked)} checks{unanswered}, {_number(warnings, 'warning', 'warnings')})"


def table(title: str, checked: Iterable[Checked]) -> str:
    """A title, a row a finding, without colours, and below, the checks that found nothing."""
    return findings.table(title, {one.name: one.findings for one in checked})


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
