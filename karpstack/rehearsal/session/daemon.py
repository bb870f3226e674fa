"""The daemon of one rehearsed stack, seen from outside: start it, find it, stop it.

What runs inside is `karpstack.rehearsal.session.serve`. The two share one file, `daemon.json` in the state folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host import limits, user_environment
from karpstack.rehearsal.host.processes import ProcessRecord, crash_text, end, last_lines, start_time, stop_recorded
from karpstack.rehearsal.session import hints
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state import records
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import IMPORT_ROOT

_START_TIMEOUT = 60.0
# A cluster with nodes and add-ons, perhaps, on a busy machine.
_DESCRIBED_TIMEOUT = 300.0
_STOP_TIMEOUT = 30.0
_SERVE = ("-m", "karpstack.rehearsal.session.serve")


#: What a command says to the daemon that it started, so that the daemon stays when the command ends.
STAY = b"stay"


class DaemonError(Exception):
    """The daemon is not there or did not start; the text says what to do."""


class LostError(DaemonError):
    """The rehearsal has ended in the middle of a command: the daemon is gone, or an engine without which none works."""


@dataclass(frozen=True)
class DaemonInfo:
    """What a daemon tells about itself.

    Attributes:
        pid: Process id.
        started: Its `start_time`: a pid alone can be given away again.
        cloud: The cloud that it plays.
        region: The region of the simulated account.
        described: Digest of the files that describe what the account had at its start.
        ready: Whether the simulated account has started.
        providers: Name of the Pulumi package -> port of its provider on loopback; empty until they listen.
        account: URL of the simulated account; empty until it has started.
        variables: More variables for commands on the stack: endpoints of the simulated cloud, metrics.
        crashes: What is known of engines that ended by themselves.
        lost: The engine without which nothing goes on, and for the loss of which the daemon ends; empty if all is well.
    """

    pid: int
    started: float
    cloud: str
    region: str
    described: str = ""
    ready: bool = False
    providers: dict[str, int] = field(default_factory=dict)
    account: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    lost: str = ""

    def write(self, folder: StackFolder) -> DaemonInfo:
        """Publish it."""
        records.write(folder.run_file, self)
        return self

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self.process() is not None

    def process(self) -> psutil.Process | None:
        """That very process if it still runs."""
        return ProcessRecord("daemon", self.pid, self.started).process()


def read(folder: StackFolder) -> DaemonInfo | None:
    """What the stack's daemon said last, whether it lives or not."""
    return records.read(folder.run_file, DaemonInfo)


def running(folder: StackFolder) -> DaemonInfo | None:
    """The stack's daemon if it is alive and ready."""
    info = read(folder)
    return info if info and info.ready and info.alive else None


def require(folder: StackFolder) -> DaemonInfo:
    """Like `running`, but a daemon that is not there is an error.

    Raises:
        DaemonError: It is not running.
    """
    info = running(folder)
    if not info:
        raise DaemonError(f"{folder.stack} is not up; start it with: {hints.command('up', folder)}")
    return info


def check(folder: StackFolder) -> None:
    """See that a command that needs the daemon can go on.

    Raises:
        LostError: It cannot; the text says who is gone, or that the disk is full: Pulumi would try for a minute to
            write its state. Crashes of engines are told by `DaemonInfo.crashes`.
    """
    info = read(folder)
    full = limits.shortage(folder.root)
    said: list[str] = []
    if info and info.lost:
        text = f"{info.lost} is gone, and without it nothing goes on, so the rehearsal has ended"
    elif not info or not info.alive:
        log = folder.logs / "daemon.log"
        why = "stopped by another command or killed, perhaps by the kernel for lack of memory"
        text = (
            f"the rehearsal's daemon is gone, so the rehearsal has ended ({why}); the last lines of {log}:"
            if not info or info.ready
            else f"the rehearsal's daemon ended before it was ready; the last lines of {log}:"
        )
        said = [f"  {line}" for line in last_lines(log)] or ["  (it is empty)"]
    elif full:
        text = "nothing can be written any more, so the rehearsal has ended"
    else:
        return
    raise LostError("\n".join(filter(None, [text, *said, full])))


@dataclass(frozen=True)
class StartingDaemon:
    """A daemon that was started and may not listen yet. It ends with this process unless it is told to stay."""

    folder: StackFolder
    process: subprocess.Popen[bytes]
    log: Path
    info: DaemonInfo
    pipe: int

    def stay(self) -> None:
        """Let the daemon go on when this process has ended."""
        with suppress(BrokenPipeError):  # it has ended, and is missed elsewhere
            os.write(self.pipe, STAY)
        os.close(self.pipe)

    def listening(self) -> DaemonInfo:
        """Wait until its providers listen.

        Raises:
            DaemonError: It ended or did not listen in a minute; the text has its last log lines.
        """
        return self._once(lambda info: bool(info.providers), _START_TIMEOUT)

    def ready(self) -> DaemonInfo:
        """Wait until its account has started, with all that is to be there from the start.

        Raises:
            DaemonError: It ended, for what a file describes cannot be, or took too long; the text has its last log
                lines.
        """
        return self._once(lambda info: info.ready, _DESCRIBED_TIMEOUT)

    def _once(self, reached: Callable[[DaemonInfo], bool], timeout: float) -> DaemonInfo:
        deadline = time.monotonic() + timeout
        while True:
            if (code := self.process.poll()) is not None:
                raise DaemonError(crash_text("the rehearsal's daemon", code, self.log))
            info = read(self.folder)
            if info and reached(info):
                return info
            if time.monotonic() > deadline:
                raise DaemonError(f"the rehearsal's daemon was not ready after {timeout:g} s; see {self.log}")
            time.sleep(0.02)


def start(folder: StackFolder, stack_file: StackFile, engines: EngineSet) -> StartingDaemon:
    """Start the daemon; whoever needs its providers waits for them with `StartingDaemon.listening`."""
    limits.check(folder.root)
    log = folder.create().logs / "daemon.log"
    # However this process ends, the kernel closes the pipe.
    reader, writer = os.pipe()
    with log.open("ab") as output, os.fdopen(reader) as pipe:
        process = subprocess.Popen(
            [sys.executable, *_SERVE, folder.stack, folder.root, stack_file.path, engines.root],
            stdin=pipe,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=IMPORT_ROOT,
            env={
                **user_environment.allowed(os.environ),
                **user_environment.WITHOUT_PROFILES,
                "PYTHONUNBUFFERED": "1",
            },
        )
    # Written at once, so that a Ctrl-C from here on finds the process to stop.
    started = start_time(psutil.Process(process.pid))
    info = DaemonInfo(process.pid, started, stack_file.cloud, stack_file.region, stack_file.described).write(folder)
    return StartingDaemon(folder, process, log, info, writer)


def stop(folder: StackFolder) -> list[str]:
    """Stop the daemon and whatever it left behind; names of the engines that it had left."""
    info = read(folder)
    process = info.process() if info else None
    if process:
        end(process, _STOP_TIMEOUT)
    left = []
    for lost in find(folder):
        end(lost, _STOP_TIMEOUT)
        left.append("daemon")
    left += stop_recorded(folder)
    info = read(folder)  # its last words
    if info:
        replace(info, ready=False).write(folder)  # keeps the crashes for people to read
    else:
        folder.run_file.unlink(missing_ok=True)  # it was damaged
    return left


def find(folder: StackFolder) -> list[psutil.Process]:
    """The stack's daemons by their arguments, for when the state folder does not tell of them any more."""
    wanted = [*_SERVE, folder.stack, str(folder.root)]
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended, or is somebody else's
            if process.cmdline()[1 : 1 + len(wanted)] == wanted and process.uids().real == os.getuid():
                found.append(process)
    return found
