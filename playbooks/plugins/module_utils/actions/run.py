"""Actions of any run: who works on the stack, which variables were given, the report's folder, marks in the timeline.

Nothing here imports what takes long: these are most of a playbook's tasks.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final, Literal

from karpstack.scale_test import stack_lock
from karpstack.scale_test.recording.process import RecorderError, wait_until_recorded
from karpstack.scale_test.recording.timeline import Writer
from karpstack.scale_test.reports.folder import OverwriteError, judge, make_room
from karpstack.whatif.changes import ChangesError
from karpstack.whatif.changes import changes as changes_in

from . import FailedError, Result

ERRORS: Final = (ChangesError, OSError, OverwriteError, RecorderError, stack_lock.BusyError)
_RECORDER_SECONDS: Final = 60.0
_NEAR: Final = 0.7
_ANSIBLES: Final = ("ansible_", "inventory_")


def lock(path: Path, owner: int) -> Result:
    """Let nobody else work on a rehearsed stack until the process `owner` has ended."""
    stack_lock.take(path, owner)
    return {"changed": False}


def variables(names: list[str], known: list[str], *, check: bool) -> Result:
    """Refuse variables whose names are nearly those of a playbook: they have no effect, and Ansible does not say so.

    What is quite another name may be somebody else's.
    """
    problems = []
    for name in sorted(set(names) - set(known)):
        near = difflib.get_close_matches(name, known, 1, _NEAR) or [one for one in known if name in one.split("_")]
        if near and not name.startswith(_ANSIBLES):
            problems.append(
                f"-e {name}: no variable of this playbook, so it would have no effect; did you mean {near[0]}?"
            )
    if problems:
        raise FailedError("\n".join(problems))
    return {"changed": False}


def report_folder(folder: Path, *, check: bool) -> Result:
    """Make room for a report: remove the results of an older scale test, nothing else."""
    there = folder.is_dir()
    removed = judge(folder) if check else make_room(folder)
    return {"changed": not there or bool(removed), "removed": removed}


def mark(
    timeline: Path, scenario: str, mark: Literal["STORY", "PHASE", "ERROR", "END"], content: Result | None = None
) -> Result:
    """Mark in the timeline what happens; a story begins when the recorder records, so that nothing is missed."""
    if mark == "STORY":
        wait_until_recorded(timeline, _RECORDER_SECONDS)
    with Writer(timeline) as writer:
        writer.write(mark, scenario=scenario, **(content or {}))
    return {"changed": True}


def changes(log: Path, *, check: bool) -> Result:
    """Read from Pulumi's log of events which resources an update changed."""
    return {"changed": False, "changes": changes_in(log)}
