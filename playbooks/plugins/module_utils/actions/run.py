"""Actions of every run: the stack's lock, the given variables, the report's folder, marks in the timeline.

Most tasks of a playbook are one of these, so this module imports only what loads fast.
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
#: Beginnings of names that nobody gives: Ansible's, and those that only this collection's playbooks use.
_OTHERS: Final = (
    *("ansible_", "inventory_", "group", "hostvars", "omit", "play_hosts", "playbook_dir", "role_", "environment"),
    *(
        "variables_",
        "karpstack_",
        "comparison_",
        "move_",
        "real_run_",
        "snapshot_",
        "stack_cluster",
        "sweep_",
        "whatif_",
    ),
)


def lock(path: Path, owner: int) -> Result:
    """Lock a rehearsed stack until the process `owner` ends."""
    stack_lock.take(path, owner)
    return {"changed": False}


def variables(names: list[str], known: list[str], given: list[Result], *, check: bool) -> Result:
    """Refuse variables with a name similar to a variable of the playbook, because Ansible ignores them silently.

    Other unknown names are accepted: they may belong to the user's own playbook. Of several in one -e, they are refused
    too: they may be words of a value with blanks, as of `change=make own=1`.
    """
    problems = [
        f"-e {one['text']}: Ansible ends a value at a blank, so its other words would have no effect; give a value "
        'with blanks as JSON, -e \'{"change": "pulumi up --yes"}\', and each variable with its own -e'
        for one in given
        if len(one["names"]) > 1 and not set(one["names"]) <= set(known)
    ]
    for name in sorted(set(names) - set(known)):
        near = difflib.get_close_matches(name, known, 1, _NEAR) or [one for one in known if name in one.split("_")]
        if near and not name.startswith(_OTHERS):
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
    """Write a mark into the timeline. A story waits until the recorder records, so that nothing is missed."""
    if mark == "STORY":
        wait_until_recorded(timeline, _RECORDER_SECONDS)
    with Writer(timeline) as writer:
        writer.write(mark, scenario=scenario, **(content or {}))
    return {"changed": True}


def changes(log: Path, *, check: bool) -> Result:
    """Return the resources that an update changed, from Pulumi's log of events."""
    return {"changed": False, "changes": changes_in(log)}
