"""Inputs of the commands for pull requests: their defaults, and files for all stacks or for each stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: Folder of what came of a rehearsal.
RESULTS: Final = Path("build") / "pull-request"
#: Login whose token a workflow has.
AUTHOR: Final = "github-actions[bot]"
#: Name of a pull request's comment. A second job that writes one needs another, as its artifact does.
NAME: Final = "rehearsal"
#: Seconds for which GitHub may make a command wait in all.
PATIENCE: Final = 900.0
#: Option of the what-if -> how names of its files end.
ENDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "workloads": (".json.gz", ".json"),
    "limits": (".yml", ".yaml"),
    "prices": (".yml", ".yaml"),
}
_OTHERS: Final = "default"


def file_for_stack(option: str, given: Path, stack: str) -> Path | None:
    """The file for a stack.

    Args:
        option: The option that it is for.
        given: A file, which is every stack's; or a folder, in which that of `eks` is `eks.yml`, and that of stacks
            without one of their own `default.yml`.
        stack: The stack.

    Returns:
        None where the folder has neither. What is not there is passed on: the what-if says what is wrong with it.
    """
    if not given.is_dir():
        return given
    names = (f"{name}{ending}" for name in (stack, _OTHERS) for ending in ENDINGS[option])
    paths = (given / name for name in names)
    # A link that leads nowhere is still the stack's: the default limits or prices could be looser. Without a snapshot,
    # `stacks` could not say which engines are needed, and the check after it refuses a change that breaks the link.
    is_kept = option != "workloads"
    return next((path for path in paths if path.is_file() or (is_kept and path.is_symlink())), None)
