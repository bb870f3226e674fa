"""Runs another program on our terminal, and lets it end in an orderly way."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from karpstack.rehearsal.host.processes import with_parent

# How often it is seen whether what the command needs is still there.
_SECONDS_BETWEEN_LOOKS = 0.25
# Until a command that was interrupted, because it can do no more, is killed.
_GRACE = 4.0


@dataclass(frozen=True)
class Shown:
    """What is shown of a command's output.

    Attributes:
        keep: Whether a line is.
        log: The file to which all of it is appended.
    """

    keep: Callable[[str], bool]
    log: Path


def call(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    check: Callable[[], None] = lambda: None,
    shown: Shown | None = None,
) -> int:
    """Run a command to its end.

    It has a process group of its own. So it hears of each interrupt once, by us, wherever that came from: a terminal
    tells a whole group, `kill` and CI tell a single process, and Pulumi takes a second interrupt for impatience. When
    we are killed, the kernel interrupts it where it can, and perhaps twice: our threads do not end at the same moment.

    Args:
        check: Raises when what the command needs is gone: then the command is ended, and the error goes on.
        shown: What is shown of its output; all of it if not said.

    Returns:
        Its exit code.

    Raises:
        KeyboardInterrupt: It was interrupted, and has ended: by itself after the first interrupt, killed by the second.
    """
    process = subprocess.Popen(
        [*with_parent(signal.SIGINT), *command],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if shown else None,
        process_group=0,
    )
    showing = threading.Thread(target=_show, args=(process.stdout, shown), daemon=True)
    if shown:
        showing.start()
    interrupted = False
    with _ending(process) as ended:
        while True:
            try:
                _wait(process, ended, check)
                break
            except KeyboardInterrupt:
                _tell(process, signal.SIGKILL if interrupted else signal.SIGINT)
                interrupted = True
    if shown:
        showing.join(_GRACE)  # what the command has started may hold its output open
    if interrupted or process.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if process.returncode:
        check()  # what it needed may have gone a moment before, and is why it failed
    return process.returncode


def _show(output: IO[bytes], shown: Shown) -> None:
    with shown.log.open("ab") as log:
        for line in output:
            with suppress(OSError):  # a full disk is said by others; the command must not wait for who reads it
                log.write(line)
                log.flush()
            text = line.decode(errors="replace")
            if shown.keep(text):
                with suppress(BrokenPipeError):  # as of `| head`: the command still writes into our pipe
                    print(text, end="", flush=True)


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Give what waits so many seconds for the end of a process, and says whether it has come.

    An interrupt within `Popen.wait` can leave its lock taken; then every later wait would last forever. So a thread
    waits, which is never interrupted, and closes a pipe.
    """
    reading, writing = os.pipe()

    def wait() -> None:
        process.wait()
        os.close(writing)

    threading.Thread(target=wait, daemon=True).start()
    try:
        yield lambda seconds: bool(select.select([reading], [], [], seconds)[0])
    finally:
        os.close(reading)


def _wait(process: subprocess.Popen[bytes], ended: Callable[[float], bool], check: Callable[[], None]) -> None:
    while not ended(_SECONDS_BETWEEN_LOOKS):
        try:
            check()
        except Exception:
            _end(process, ended)
            raise


def _end(process: subprocess.Popen[bytes], ended: Callable[[float], bool]) -> None:
    """Interrupt a command, and kill it when it takes too long, or at a Ctrl-C."""
    _tell(process, signal.SIGINT)
    with suppress(KeyboardInterrupt):
        if ended(_GRACE):
            return
    _tell(process, signal.SIGKILL)
    ended(_GRACE)


def _tell(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
