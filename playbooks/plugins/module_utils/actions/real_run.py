"""The action that ends a real run whose playbook was broken off."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from karpstack.real_run import guard

from . import Result

ERRORS: Final = (OSError,)


def watch(owner: int, folder: Path, project: Path, commands: list[list[str]]) -> Result:
    """Wait until the run is finished; if the process `owner` is gone before, run the commands."""
    return {"changed": guard.watch(owner, folder, project, commands)}
