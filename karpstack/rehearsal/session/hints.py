"""Commands that messages tell the user to run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.projects import ProjectError, find_project


def command(name: str, folder: StackFolder) -> str:
    """Return `karpstack NAME STACK`, with `--program FOLDER` if the stack belongs to the project of another folder."""
    return f"karpstack {name} {folder.stack}{_program(folder)}"


def _program(folder: StackFolder) -> str:
    state = folder.root.resolve().parent
    if state.name != ".rehearsal":  # given by --state
        return ""
    try:
        if find_project() == state.parent:
            return ""
    except ProjectError:
        pass
    here = Path.cwd()
    shown = os.path.relpath(state.parent, here) if state.is_relative_to(here) else str(state.parent)
    return f" --program {shlex.quote(shown)}"
