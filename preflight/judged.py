"""What the program refuses, or warns of, as findings: the settings held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from karpenter import findings

from .finding import Finding

_REFUSED = "pulumi preview and pulumi up refuse it, before anything is made"


def judged(problems: Iterable[findings.Finding], told_by: Callable[[findings.Finding], str]) -> Iterator[Finding]:
    """A finding a problem; `told_by` says by which call it was found."""
    for problem in problems:
        what, _, consequence = problem.consequence.partition(": ")
        yield Finding(
            "warning" if problem.warning else "error",
            f"{problem.key} = {problem.value} {what}",
            consequence or _REFUSED,
            problem.fix,
            told_by(problem),
        )
