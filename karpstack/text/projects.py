"""Whose stack files, and whose git history, a command means: those of the folder in which it is run.

Standard library only, as `files` is.
"""

from __future__ import annotations

from pathlib import Path


def own_project(checkout: Path) -> Path:
    """Return the nearest folder upwards from the current one that has stack files, or is the root of a git repository.

    Args:
        checkout: karpstack's own, which is returned where the current folder is in it, or in no repository.
    """
    here = Path.cwd()
    if here.is_relative_to(checkout):
        return checkout
    for folder in (here, *here.parents):
        if (folder / ".git").exists() or next(folder.glob("Pulumi*.yaml"), None):
            return folder
    return checkout
