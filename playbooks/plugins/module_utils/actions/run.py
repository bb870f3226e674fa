"""Actions of every run: the stack's lock, the given variables, the report's folder, marks in the timeline.

Most tasks of a playbook are one of these, so this module imports only what loads fast.
"""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
from pathlib import Path
from typing import Any, Final, Literal

from ansible.module_utils.parsing.convert_bool import BOOLEANS
from typing_extensions import TypedDict  # that of Python 3.11 is not enough for pydantic

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
#: What Ansible calls words without a name.
RAW: Final = "_raw_params"
#: Operators of a shell. A word may also end with one.
_OF_A_SHELL: Final = ("&&", "||", "|", "&", ">", ">>", "<")
#: Ansible's own names begin so.
_ANSIBLES: Final = "ansible_"


class Words(TypedDict):
    """One -e that is no file, no JSON and no YAML: its text, and the names of its variables."""

    text: str
    names: list[str]


class Given(TypedDict):
    """What was given with -e: the names of all variables, and what was given as words; and which playbooks."""

    names: list[str]
    words: list[Words]
    playbooks: list[str]


def lock(path: Path, owner: int) -> Result:
    """Lock a rehearsed stack until the process `owner` ends."""
    stack_lock.take(path, owner)
    return {"changed": False}


def variables(known: list[str], given: Given, switches: dict[str, Any], *, check: bool) -> Result:
    """Refuse what Ansible would silently ignore: names similar to a variable of the playbook, and words without a name.

    Other unknown names are accepted: they may belong to the user's own playbook. Of several in one -e, they are refused
    too: they may be words of a value with blanks, as of `change=make own=1`. A switch is true or false, since Ansible
    takes any other word for false.
    """
    problems = [
        f"-e {one['text']}: Ansible ends a value at a blank, and ignores words without a name, so it would not do what "
        "it says; write NAME=VALUE, each with its own -e, and a value with blanks as JSON, "
        '-e \'{"change": "pulumi up --yes"}\''
        for one in given["words"]
        if not all(map(str.isidentifier, one["names"]))
        or RAW in one["names"]
        or (len(one["names"]) > 1 and not set(one["names"]) <= set(known))
    ]
    for name in sorted({*given["names"]} - {*known, RAW}):
        near = difflib.get_close_matches(name, known, 1, _NEAR) or [one for one in known if name in one.split("_")]
        if near and not name.startswith(_ANSIBLES):
            problems.append(
                f"-e {name}: no variable of this playbook, so it would have no effect; did you mean {near[0]}?"
            )
    for name, value in switches.items():
        known_words = {*([] if name in given["names"] else [""]), *(str(one).lower() for one in BOOLEANS)}
        if str(value).lower() not in known_words:
            problems.append(f"-e {name}={value}: not known whether that is true or false; write {name}=true or false")
    if problems:
        raise FailedError("\n".join(problems))
    return {"changed": False}


def program(command: str, folder: str, *, check: bool) -> Result:
    """Refuse a command that could not begin, since its folder or its program is not there."""
    place = Path(_expanded(folder))
    if not place.is_dir():
        raise FailedError(f"change_dir = {folder}: no folder, so nothing would be changed; give an existing folder")
    try:
        words = shlex.split(command)
        name = _expanded(words[0])
    except (IndexError, RuntimeError, ValueError) as error:
        raise FailedError(f"change = {command}: no command ({error}), so nothing would be changed") from error
    if any(word in _OF_A_SHELL or (word[-1:] == ";" and not {*word} & {" ", "\n"}) for word in words[:-1]):
        raise FailedError(
            f"change = {command}: Ansible runs one command, without a shell, so what follows an operator would be "
            "words of it; write sh -c '...' around all of it"
        )
    if not shutil.which(str(place / name) if "/" in name else name):
        raise FailedError(
            f"change = {command}: there is no program {name}, so nothing would be changed; see how it is written, and "
            "what PATH has"
        )
    return {"changed": False}


def _expanded(text: str) -> str:
    """A text with its variables and its `~` replaced, as Ansible does it with commands."""
    text = os.path.expandvars(text)
    return str(Path(text).expanduser()) if text.startswith("~") else text


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
