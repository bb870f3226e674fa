"""Errors and warnings of the program about settings and account, as findings of preflight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .finding import Finding

_REFUSED = "pulumi preview and pulumi up refuse it, before anything is made"


def convert_findings(problems: Iterable[Finding], told_by: Callable[[Finding], str]) -> Iterator[Finding]:
    """Findings of settings as those of an account; `told_by` says by which call one was found."""
    for problem in problems:
        what, _, consequence = problem.consequence.partition(": ")
        what = f"{problem.key} = {problem.value} {what}"
        yield replace(problem, what=what, consequence=consequence or _REFUSED, told_by=told_by(problem))
