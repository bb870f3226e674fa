"""Ends a real run whose playbook was broken off: after Ctrl-C Ansible runs nothing more, and what it began goes on."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from karpstack.scale_test.processes import is_gone

#: In the run's folder. It is locked while somebody watches, and has the process id of the playbook.
GUARD: Final = "guard"
#: Process id and name of the stage that began last.
STAGE: Final = "stage"
#: It is there when nothing is left to destroy.
FINISHED: Final = "finished"
#: It is there when no more stages may begin.
_ENDING: Final = "ending"
LOG: Final = "broken-off.log"
_DESTROY: Final = "destroy"
_PAUSE: Final = 1.0


class GuardedError(Exception):
    """Another run of the folder goes on, or is being ended."""


def begin(folder: Path) -> None:
    """Take away what an earlier run of the folder has left.

    Raises:
        GuardedError: That run goes on.
        OSError: The folder cannot be written.
    """
    with (folder / GUARD).open("a") as guard:
        _lock(guard, folder)
        for name in (FINISHED, _ENDING, STAGE):
            (folder / name).unlink(missing_ok=True)
        guard.truncate(0)


def watch(owner: int, folder: Path, project: Path, commands: Sequence[Sequence[str]]) -> bool:
    """Wait until the playbook ends; if it has not finished the run, run the commands that do.

    Args:
        owner: The playbook's process.
        folder: The run's.
        project: Where the commands run.
        commands: They destroy everything, and say what is left.

    Returns:
        Whether the commands were run.

    Raises:
        GuardedError: Another run of the folder goes on.
        OSError: A file cannot be written, or a program is not there.
    """
    with (folder / GUARD).open("a") as guard:
        _lock(guard, folder)
        print(owner, file=guard, flush=True)
        while not is_gone(owner):
            time.sleep(_PAUSE)
        if (folder / FINISHED).exists():
            return False
        # In this order: a stage says that it begins, and then looks whether it may.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ENDING).touch()
        _end_stage(folder)
        with (folder / LOG).open("a", encoding="utf-8") as log:
            print(f"The playbook's process {owner} is gone, and something may cost money.", file=log, flush=True)
            for command in commands:
                print(f"$ {shlex.join(command)}", file=log, flush=True)
                done = subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                print(f"Its exit code is {done.returncode}.", file=log, flush=True)
        (folder / FINISHED).touch()
        return True


def _lock(guard: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise GuardedError(
            f"run_dir {folder}: another run goes on there, or one that was broken off is being destroyed, so the end "
            f"of the one could be taken for that of the other; wait for it ({LOG} says how far it is), or give another "
            "run_dir"
        ) from error


def _end_stage(folder: Path) -> None:
    """Break off the stage that still runs, unless it destroys, and wait for its end, for which `timeout` sees."""
    stage = folder / STAGE
    pid, _, name = stage.read_text().strip().partition(" ") if stage.exists() else ("", "", "")
    if pid and name != _DESTROY and _is_stage(pid, folder):
        os.kill(int(pid), signal.SIGINT)
    while pid and _is_stage(pid, folder):
        time.sleep(_PAUSE)


def _is_stage(pid: str, folder: Path) -> bool:
    """Whether a process of this number is a stage of the run, not another one that has its number now."""
    shown = subprocess.run(["ps", "-ww", "-o", "args=", "-p", pid], stdout=subprocess.PIPE, text=True).stdout
    return str(folder) in shown
