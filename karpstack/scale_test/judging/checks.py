"""How an assertion about a step is written: its name, and where people look when it failed."""

from __future__ import annotations

from collections.abc import Iterable

from .assertion import Assertion
from .replay import NodeClaim
from .steps import StepRun


def check(
    run: StepRun, name: str, expected: str, seen: str, passed: bool, claims: Iterable[NodeClaim] | None = None
) -> Assertion:
    """An assertion about nodes: those that are given, or all that the story has."""
    names = tuple(claim.name for claim in (run.live() if claims is None else claims))
    lines = f"NodeClaim {', '.join(names)}" if names else "NodeClaim and Event lines"
    return Assertion(
        f"{run.title}, {name}",
        expected,
        seen,
        passed,
        where(run, lines),
        about=names,
        kinds=("NodeClaim", "Event"),
    )


def check_pods(run: StepRun, name: str, expected: str, seen: str, passed: bool) -> Assertion:
    """An assertion about pods."""
    return Assertion(f"{run.title}, {name}", expected, seen, passed, where(run, "Pod lines"), kinds=("Pod",))


def where(run: StepRun, lines: str) -> str:
    """Where people look."""
    return f"timeline.jsonl ({lines}), evidence/{run.scenario.name}/"
