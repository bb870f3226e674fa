"""Ends a real run whose playbook was broken off: after Ctrl-C Ansible runs nothing more, and what it began goes on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from karpstack.scale_test.processes import is_gone

#: In the run's folder: it is there while something is to be destroyed.
UNFINISHED: Final = "unfinished"
#: Process id and name of the stage that began last.
STAGE: Final = "stage"
LOG: Final = "broken-off.log"
_DESTROY: Final = "destroy"
_PAUSE: Final = 1.0


def watch(owner: int, folder: Path, project: Path, commands: Sequence[Sequence[str]]) -> bool:
    """Wait until the run is finished, or else run the commands that finish it.

    Args:
        owner: The playbook's process.
        folder: The run's. Who takes `UNFINISHED` away from it has finished the run.
        project: Where the commands run.
        commands: They destroy everything, and say what is left.

    Returns:
        Whether the commands were run: the playbook was gone, and the run not finished.

    Raises:
        OSError: A file cannot be written, or a program is not there.
    """
    unfinished = folder / UNFINISHED
    unfinished.touch(mode=0o600)
    while unfinished.exists() and not is_gone(owner):
        time.sleep(_PAUSE)
    if not unfinished.exists():
        return False
    with (folder / LOG).open("a", encoding="utf-8") as log:
        print(f"The playbook's process {owner} is gone, and something may cost money.", file=log, flush=True)
        _end_stage(folder)
        for command in commands:
            print(f"$ {shlex.join(command)}", file=log, flush=True)
            done = subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            print(f"Its exit code is {done.returncode}.", file=log, flush=True)
    unfinished.unlink()
    return True


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
