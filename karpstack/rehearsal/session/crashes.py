"""Crashes of engines: a command that works on a stack says each one at once, and only those since the command began."""

from __future__ import annotations

from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.terminal import print_message
from karpstack.rehearsal.state.folder import StackFolder

# What this process has said, or skips: the daemon's pid and start, and the number of its crash.
_said: set[tuple[str, int, float, int]] = set()


def skip_earlier_crashes(folder: StackFolder) -> None:
    """Skip the crashes from before this command."""
    _said.update(key for key, _ in _crashes(folder))


def report_new(folder: StackFolder) -> None:
    """Print the crashes that this process has not printed yet."""
    for key, text in _crashes(folder):
        if key not in _said:
            _said.add(key)
            print_message(text, heading="engine crash:")


def report_all(folder: StackFolder) -> None:
    """Print all crashes of the rehearsal."""
    for _, text in _crashes(folder):
        print_message(text, heading="engine crash:")


def _crashes(folder: StackFolder) -> list[tuple[tuple[str, int, float, int], str]]:
    info = daemon.read(folder)
    if not info:
        return []
    return [((str(folder.root), info.pid, info.started, number), text) for number, text in enumerate(info.crashes)]
