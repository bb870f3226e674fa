"""Runs another program on our terminal, and lets it end in an orderly way."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def call(command: Sequence[str], variables: Mapping[str, str], folder: Path) -> int:
    """Run a command to its end.

    It has a process group of its own. So it hears of each interrupt once, by us, wherever that came from: a terminal
    tells a whole group, `kill` and CI tell a single process, and Pulumi takes a second interrupt for impatience.

    Args:
        command: The program and its arguments.
        variables: Its whole environment.
        folder: Where it runs.

    Returns:
        Its exit code.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended: by itself after the first interrupt, killed by the second.
    """
    process = subprocess.Popen(command, cwd=folder, env=dict(variables), stdin=subprocess.DEVNULL, process_group=0)
    interrupted = False
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if interrupted else signal.SIGINT)
            interrupted = True
    if interrupted or code == -signal.SIGINT:
        raise KeyboardInterrupt
    return code
