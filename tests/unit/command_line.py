"""The command line, called within the test's process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karpstack.cli import main


def karpstack(*first: str) -> Callable[[Sequence[str]], int]:
    """Return what runs `karpstack` with these words before others, and returns the exit code."""
    return lambda words: main([*first, *words])
