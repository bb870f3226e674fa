"""What the program refuses, or warns of, as findings: the settings held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .finding import Finding

_REFUSED = "pulumi preview and pulumi up refuse it, before anything is made"


def judged(problems: Iterable[Finding], told_by: Callable[[Finding], str]) -> Iterator[Finding]:
    """Findings of settings as those of an account; `told_by` says by which call one was found."""
    for problem in problems:
        what, _, consequence = problem.consequence.partition(": ")
        what = f"{problem.key} = {problem.value} {what}"
        yield replace(problem, what=what, consequence=consequence or _REFUSED, told_by=told_by(problem))
