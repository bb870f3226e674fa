"""Commands that messages tell the user to run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.projects import ProjectError, find_project


def command(name: str, folder: StackFolder) -> str:
    """Return `karpstack NAME STACK`, with the option that leads to the stack's state from the current folder."""
    return f"karpstack {name} {folder.stack}{_where(folder)}"


def _where(folder: StackFolder) -> str:
    state = folder.root.resolve().parent
    if state.name != ".rehearsal":  # it was given, too
        return f" --state {_shown(state)}"
    try:
        if find_project() == state.parent:
            return ""
    except ProjectError:
        pass
    return f" --program {_shown(state.parent)}"


def _shown(folder: Path) -> str:
    here = Path.cwd()
    return shlex.quote(os.path.relpath(folder, here) if folder.is_relative_to(here) else str(folder))
