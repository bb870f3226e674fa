"""Ends a real run whose playbook was broken off: after Ctrl-C Ansible runs nothing more, and what it began goes on."""

from __future__ import annotations

import fcntl
import math
import os
import shlex
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from karpstack.scale_test.processes import is_gone

from . import stages

#: In the run's folder. It is locked while somebody watches, and has the process id of the playbook.
GUARD: Final = "guard"
#: It exists once nothing is left to end: the run has finished, or the guard has done what it could.
FINISHED: Final = "finished"
LOG: Final = "broken-off.log"
#: What earlier runs have left in the folder, each in a folder with its number.
EARLIER: Final = "earlier"
#: How the file of the guard begins: its folder is one of real runs.
_MARK: Final = "# A real run of karpstack\n"
#: Exit code of `real-run left`.
_LEFT: Final = 1
_NOT_BEGUN: Final = -1
_PAUSE: Final = 1.0
#: Seconds after the deadline until `destroy` has begun: a stage that ends what it has begun, and those before it.
_LATE: Final = stages.GRACE + 1200.0


class GuardedError(Exception):
    """A folder that a run cannot have: another one goes on there, or is being ended, or it is somebody's own."""


class Command(NamedTuple):
    """A program with its arguments, and after how many seconds it is broken off."""

    words: Sequence[str]
    seconds: float


def begin(folder: Path) -> None:
    """Make the folder of a run, or put aside what an earlier run has left there: its report would pass for this run's.

    Raises:
        GuardedError: That run goes on, or the folder has files that no run has written.
        OSError: The folder cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _judge(folder)
    folder.chmod(0o700)
    with (folder / GUARD).open("a") as guard:
        _lock(guard, folder)
        guard.truncate(0)
        guard.write(_MARK)
        if left := [path for path in folder.iterdir() if path.name not in (GUARD, EARLIER)]:
            aside = folder / EARLIER
            aside.mkdir(exist_ok=True)
            aside /= str(1 + max((int(path.name) for path in aside.iterdir() if path.name.isdecimal()), default=0))
            aside.mkdir()
            for path in left:
                path.rename(aside / path.name)


def _judge(folder: Path) -> None:
    guard, others = folder / GUARD, {path.name for path in folder.iterdir()} - {GUARD}
    is_marked = guard.is_file() and guard.read_bytes()[: len(_MARK)] in (_MARK.encode(), b"")
    if (others and not is_marked) or guard.is_symlink():
        raise GuardedError(
            f"run_dir {folder}: has files that no real run has written, and some would be replaced; give a new folder"
        )
    if folder.stat().st_uid != os.geteuid():
        raise GuardedError(
            f"run_dir {folder}: is another user's, who could have another file written over; give your own"
        )
    if folder.stat().st_mode & stat.S_IWOTH:
        raise GuardedError(
            f"run_dir {folder}: others may write there, so that they could have another file of yours written over; "
            "run chmod o-w, or give a folder of your own"
        )


def watch(
    owner: int,
    folder: Path,
    project: Path,
    destroy: Command,
    left: Command,
    remove: Command,
    deadline: float = math.inf,
) -> bool:
    """Wait until the playbook ends, or does not destroy in time; if it has not finished the run, finish it.

    Args:
        owner: The playbook's process.
        folder: The run's.
        project: Where the commands run.
        destroy: Destroys the stack.
        left: Says what is left then.
        remove: Removes what is left.
        deadline: When the playbook ends its stage to destroy, in seconds since 1970. A stopped one does not (Ctrl-Z).

    Returns:
        Whether it had to finish the run: the stage `up` had begun, and the stack was not destroyed yet.

    Raises:
        GuardedError: Another run of the folder goes on.
        OSError: A file cannot be written.
    """
    with (folder / GUARD).open("a") as guard:
        _lock(guard, folder)
        print(owner, file=guard, flush=True)
        # Both are remembered: somebody may move the folder away.
        is_begun = is_finished = is_late = False
        while not is_gone(owner) and not is_late:
            is_begun = is_begun or _has_begun(folder)
            is_finished = is_finished or (folder / FINISHED).exists()
            time.sleep(_PAUSE)
            is_late = time.time() > deadline + _LATE and _destroys_late(folder)
        # The order matters: a stage first writes STAGE, and then looks for ENDING.
        with suppress(OSError):  # on a full disk
            if not is_finished:
                folder.mkdir(parents=True, exist_ok=True)
            if is_late:
                (folder / stages.TAKEN_OVER).touch()
            (folder / stages.ENDING).touch()
        stages.end(folder)
        if is_finished or (folder / FINISHED).exists() or not (is_begun or _has_begun(folder)):
            return False
        with stages.open_log(folder / LOG) as log:
            _say(log, f"The playbook's process {owner} is gone or stopped, and something may cost money.")
            is_destroyed = _run(destroy, project, folder, log) == 0
            code = _run(left, project, folder, log)
            if code == _LEFT or (code and not is_destroyed):
                _run(remove, project, folder, log)
                _run(left, project, folder, log)
        with suppress(OSError):
            (folder / FINISHED).touch()
        return True


def _has_begun(folder: Path, stage: str = stages.UP) -> bool:
    """Whether a stage has begun: `up`, after which there may be something to destroy."""
    try:
        return stage in (folder / stages.BEGUN).read_text(errors="replace").split()
    except OSError:
        return False


def _destroys_late(folder: Path) -> bool:
    return _has_begun(folder) and not _has_begun(folder, stages.DESTROY)


def _run(command: Command, project: Path, folder: Path, log: IO[bytes]) -> int:
    _say(log, f"$ {shlex.join(command.words)}")
    try:
        process = stages.begin(command.words, project, log)
    except OSError as error:
        _say(log, f"It did not begin: {error}.")
        return _NOT_BEGUN
    code = stages.wait(process, command.seconds, folder)
    _say(log, f"Its exit code is {code}.")
    return code


def _say(log: IO[bytes], line: str) -> None:
    with suppress(OSError):  # on a full disk
        log.write(f"{line}\n".encode())


def _lock(guard: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise GuardedError(
            f"run_dir {folder}: another run goes on there, or one that was broken off is being destroyed, so the end "
            f"of the one could be taken for that of the other; wait for it ({LOG} says how far it is)"
        ) from error
