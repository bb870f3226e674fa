"""The folder of a report: what a run writes there, and removes of an older run before it begins.

A report has a timeline beside it, which is the first to come and the last to go: what is there without one, or with
one that no recorder has begun, is somebody else's.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from karpstack.text.files import make_results
from karpstack.text.shown import visible

from ..recording.timeline import is_recorded

TIMELINE = "timeline.jsonl"
RESULTS = (
    *("evidence", "report.html", "report.json", "junit.xml"),
    *("whatif.html", "whatif.md", "whatif.json", "progress.txt"),  # of a what-if
    TIMELINE,
)

# As `timeline.Writer` begins each line.
_LINE = re.compile(rb'\{"type":"[A-Z]+","received":"')
_BEGINNING = 64


class OverwriteError(ValueError):
    """The folder has what no scale test has written."""


def judge(folder: Path, where: str = "report_dir =") -> list[str]:
    """The results of an older run that are there, in the order in which they may go.

    Args:
        folder: The folder of a report.
        where: How the user named it, for the error.

    Raises:
        OverwriteError: They are no scale test's, others may write to the folder, or another run records there.
    """
    _judge_access(folder, where)
    there = [name for name in RESULTS if (folder / name).is_symlink() or (folder / name).exists()]
    if there and TIMELINE not in there:
        raise OverwriteError(
            f"{where} {visible(folder)}: has {', '.join(there)}, but no {TIMELINE} as every report of a scale "
            "test, so that somebody else's files would be overwritten; give another folder, or move them away"
        )
    if there and not _is_ours(folder / TIMELINE, alone=there == [TIMELINE]):
        raise OverwriteError(
            f"{where} {visible(folder)}: has a {TIMELINE} that no scale test has written, so that somebody else's "
            f"{', '.join(there)} would be removed; give another folder, or move them away"
        )
    if there and is_recorded(folder / TIMELINE):
        raise OverwriteError(
            f"{where} {visible(folder)}: another run records there now, so that the results of both would be mixed; "
            "wait for its end, or give another folder"
        )
    return there


def make_room(folder: Path) -> list[str]:
    """Make the folder, and remove an older run's results from it; what was removed.

    Raises:
        OverwriteError: As `judge`; nothing is removed then.
        OSError: The folder cannot be made, or something cannot be removed.
    """
    there = judge(folder)
    make_results(folder)
    for name in there:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return there


def _judge_access(folder: Path, where: str) -> None:
    """Whoever may write there could lay links, through which a report would be written elsewhere."""
    if folder.is_dir() and (folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & stat.S_IWOTH):
        raise OverwriteError(
            f"{where} {visible(folder)}: is not yours alone, so that others could have the report written over "
            "another file of yours; give a folder of your own"
        )


def _is_ours(timeline: Path, *, alone: bool) -> bool:
    """Whether a scale test has written a timeline; an empty one is of a run that ended before it had any result."""
    if timeline.is_symlink() or not timeline.is_file():
        return False
    with timeline.open("rb") as file:
        beginning = file.read(_BEGINNING)
    return bool(_LINE.match(beginning)) if beginning else alone
