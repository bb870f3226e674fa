"""The git repository of a folder, read by the program `git`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

#: How `git ls-tree` tells a link.
LINK: Final = "120000 "


#: Variables of git that name a repository, or a part of one.
_OF_A_REPOSITORY: Final = frozenset(
    {
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_WORK_TREE",
    }
)


class NoCommitError(ValueError):
    """A ref is no commit; the text is what git says of it, or empty."""


def git(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder.

    Args:
        folder: The folder.
        arguments: What follows `git`.
        given: What git reads.

    Raises:
        FileNotFoundError: There is no git in PATH.
    """
    # In a hook of another repository, these would lead to that one.
    env = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], input=given, capture_output=True, check=False, env=env
    )


def commit(folder: Path, ref: str) -> str:
    """Return the commit that a ref means, in full.

    Raises:
        NoCommitError: It means none.
        FileNotFoundError: There is no git in PATH.
    """
    found = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.returncode:
        why = found.stderr.decode(errors="replace").strip()
        raise NoCommitError(f" ({why})" if why else "")
    return found.stdout.decode().strip()
