"""Actions of a real run: its stages, and its end if its playbook was broken off."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from karpstack.real_run import guard, stages

from . import Result

ERRORS: Final = (guard.GuardedError, OSError)


def begin(folder: Path) -> Result:
    """Make the folder of a run, or take away what an earlier one has left, unless that goes on."""
    guard.begin(folder)
    return {"changed": True}


def watch(
    owner: int,
    folder: Path,
    project: Path,
    deadline: float,
    destroy: guard.Command,
    left: guard.Command,
    remove: guard.Command,
) -> Result:
    """Wait until the process `owner` ends, or does not destroy in time; if the run is not finished then, finish it."""
    return {"changed": guard.watch(owner, folder, project, destroy, left, remove, deadline)}


def stage(folder: Path, name: str, command: list[str], seconds: float, project: Path) -> Result:
    """Run a stage; its exit code and seconds."""
    begun = time.monotonic()
    code = stages.run(folder, name, command, seconds, project)
    return {"changed": True, "rc": code, "seconds": time.monotonic() - begun}
