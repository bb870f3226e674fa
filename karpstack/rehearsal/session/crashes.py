"""Crashes of engines: a command that works on a stack says each one at once, and only those since the command began."""

from __future__ import annotations

from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.terminal import tell
from karpstack.rehearsal.state.folder import StackFolder

# What this process has said, or skips: the daemon's pid and start, and the number of its crash.
_said: set[tuple[str, int, float, int]] = set()


def pass_over(folder: StackFolder) -> None:
    """Leave out what crashed before: a command begins."""
    _said.update(key for key, _ in _crashes(folder))


def say_new(folder: StackFolder) -> None:
    """Say the crashes that this process has not said yet."""
    for key, text in _crashes(folder):
        if key not in _said:
            _said.add(key)
            tell(text, heading="engine crash:")


def say_all(folder: StackFolder) -> None:
    """Say all crashes of the rehearsal."""
    for _, text in _crashes(folder):
        tell(text, heading="engine crash:")


def _crashes(folder: StackFolder) -> list[tuple[tuple[str, int, float, int], str]]:
    info = daemon.read(folder)
    if not info:
        return []
    return [((str(folder.root), info.pid, info.started, number), text) for number, text in enumerate(info.crashes)]
