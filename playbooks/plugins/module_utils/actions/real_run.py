"""Actions that end a real run whose playbook was broken off."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from karpstack.real_run import guard

from . import Result

ERRORS: Final = (guard.GuardedError, OSError)


def begin(folder: Path) -> Result:
    """Take away what an earlier run of a folder has left, unless that run goes on."""
    guard.begin(folder)
    return {"changed": True}


def watch(owner: int, folder: Path, project: Path, commands: list[list[str]]) -> Result:
    """Wait until the process `owner` ends; if the run is not finished then, run the commands."""
    return {"changed": guard.watch(owner, folder, project, commands)}
