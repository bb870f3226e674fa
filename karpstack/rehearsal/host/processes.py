"""Child processes of a rehearsal: start, watch, stop.

Each engine writes to `logs/<name>.log` and is recorded (pid and start time) in `processes/<name>.json`, so that
a later command can stop what a killed daemon left. On Linux the kernel ends engines with their daemon anyway.
Commands (Pulumi, Ansible) carry a mark in their environment instead, which all that they start inherits. Processes are
stopped by recorded pid or by that mark, never by name.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import psutil

from karpstack.rehearsal.state import records
from karpstack.rehearsal.state.folder import StackFolder

_LAST_LINES = 15
# A Go program that gives up writes why, and then the stacks of all its goroutines.
_RECENT_LINES = 400
_LAST_WORDS = ("panic: ", "fatal error: ")
_STACKS = "goroutine "
_NO_SPACE = "no space left on device"
# Names the state folder of the stack for which a command was started.
_MARK = "KARPSTACK_STARTED_FOR"


class EngineCrashError(RuntimeError):
    """An engine ended by itself; the text names it and shows the last lines of its log."""


def start_time(process: psutil.Process) -> float:
    """When a process was started, in seconds, by a clock that nobody sets.

    Since the start of the machine on Linux, where a time of day would move whenever the clock is set; since the epoch
    elsewhere, where the system keeps what was written down at the start.
    """
    return process.create_time() - (psutil.boot_time() if psutil.LINUX else 0.0)


@dataclass(frozen=True)
class ProcessRecord:
    """A process that a later command may have to stop.

    Attributes:
        name: What it is, for messages; one record a name.
        pid: Its process id.
        started: Its `start_time`: a pid alone can be given away again.
    """

    name: str
    pid: int
    started: float

    @classmethod
    def write(cls, folder: StackFolder, name: str, pid: int) -> Path:
        """Record a running process; the file, which is to be removed when the process has been waited for."""
        path = folder.processes / f"{name}.json"
        records.write(path, cls(name, pid, start_time(psutil.Process(pid))))
        return path

    def process(self) -> psutil.Process | None:
        """The process if it still runs; a pid that was given to another program since is not it."""
        try:
            process = psutil.Process(self.pid)
            same = abs(start_time(process) - self.started) < 1.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (psutil.Error, ValueError, OverflowError):  # the latter two for what no process can be called
            return None


@dataclass(frozen=True)
class _Launch:
    """How an engine was started, so that it can be started so again."""

    command: Sequence[str]
    environment: Mapping[str, str]
    cwd: Path
    vital: bool


class Engine:
    """A running child process.

    Attributes:
        vital: Whether nothing goes on without it.
    """

    def __init__(self, name: str, launch: _Launch, popen: subprocess.Popen[bytes], log: Path, record: Path) -> None:
        self.name = name
        self.vital = launch.vital
        self.launch = launch
        self.log = log
        self._popen = popen
        self._record = record
        self._stopping = False

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._popen.poll() is None

    def check(self) -> None:
        """Raise `EngineCrashError` when the engine has ended, also when it was stopped: nobody can wait for it then."""
        code = self._popen.poll()
        if code is not None:
            raise EngineCrashError(
                f"{self.name} was stopped" if self._stopping else crash_text(self.name, code, self.log)
            )

    def stop(self, grace: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after `grace` seconds; safe to call twice."""
        self._stopping = True
        if self.running:
            self._popen.terminate()
            try:
                self._popen.wait(grace)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()
        self._record.unlink(missing_ok=True)


class Engines:
    """The children of one daemon, in the order in which they were started.

    Args:
        on_crash: Told when an engine has ended by itself: which, how, and its last words.
        on_loss: Told when one has for good of those without which nothing goes on: which.
        variables: More variables for each of them.
    """

    def __init__(
        self,
        folder: StackFolder,
        on_crash: Callable[[str], None] | None = None,
        on_loss: Callable[[str], None] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._variables = dict(variables or {})
        self._on_crash = on_crash
        self._on_loss = on_loss
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()
        # The kernel ends an engine with the thread that started it, so that is one that lives as long as the daemon.
        self._starter = ThreadPoolExecutor(1, "start-engines")

    def start(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        vital: bool = True,
    ) -> Engine:
        """Start a child under a unique name.

        Args:
            name: Names the engine in logs, records and messages.
            environment: The whole environment of the child; by default no more than PATH and HOME.
            cwd: Working folder; the state folder by default.
            vital: Whether it is lost when it ends by itself; if not, whoever started it says so with `lose`.

        Raises:
            ValueError: An engine of that name is running.
        """
        keep = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        launch = _Launch(
            [os.fspath(part) for part in command],
            {**(keep if environment is None else environment), **self._variables},
            cwd or self._folder.root,
            vital,
        )
        return self._start(name, launch)

    def restart(self, name: str, grace: float = 5.0, program: Path | None = None) -> Engine:
        """Stop an engine and start it again as it was started before; that is no crash.

        Args:
            grace: Seconds until it is killed.
            program: Another one to take its place, with the same arguments.

        Raises:
            LookupError: No engine of that name was started.
        """
        engine = self.get(name)
        if engine is None:
            raise LookupError(f"no engine {name} runs")
        engine.stop(grace)
        launch = engine.launch
        if program is not None:
            launch = replace(launch, command=[os.fspath(program), *launch.command[1:]])
        return self._start(name, launch)

    def _start(self, name: str, launch: _Launch) -> Engine:
        with self._lock:
            if name in self._engines and self._engines[name].running:
                raise ValueError(f"the engine {name} is running already (pid {self._engines[name].pid})")
            log = self._folder.logs / f"{name}.log"
            with log.open("ab") as output:
                # A session of its own: a Ctrl-C in the terminal reaches the daemon alone, which stops in order.
                popen = self._starter.submit(
                    subprocess.Popen,
                    [*with_parent(signal.SIGKILL), *launch.command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=launch.environment,
                    cwd=launch.cwd,
                    start_new_session=True,
                ).result()
            record = ProcessRecord.write(self._folder, name, popen.pid)
            engine = Engine(name, launch, popen, log, record)
            self._engines[name] = engine
        threading.Thread(target=self._watch, args=(engine, popen), name=f"watch-{name}", daemon=True).start()
        return engine

    def get(self, name: str) -> Engine | None:
        """The engine of that name, running or not."""
        return self._engines.get(name)

    def pids(self) -> list[int]:
        """Return the process ids of those that run."""
        return [engine.pid for engine in list(self._engines.values()) if engine.running]

    def stop(self, name: str, grace: float = 5.0) -> None:
        """Stop one engine; nothing happens when there is none."""
        with self._lock:
            engine = self._engines.pop(name, None)
        if engine:
            engine.stop(grace)

    def stop_all(self, grace: float = 5.0) -> None:
        """Stop every engine, the last started first."""
        for name in reversed(list(self._engines)):
            self.stop(name, grace)

    def lose(self, name: str) -> None:
        """Say that an engine that is not vital by itself has ended for good."""
        if self._on_loss:
            self._on_loss(name)

    def _watch(self, engine: Engine, popen: subprocess.Popen[bytes]) -> None:
        code = popen.wait()
        if engine._stopping:
            return
        if self._on_crash:
            again = "" if engine.vital else "; it is started again after a pause, as a kubelet does"
            self._on_crash(crash_text(engine.name, code, engine.log, again))
        if engine.vital:
            self.lose(engine.name)


def with_parent(number: signal.Signals) -> list[str]:
    """The beginning of a command that gets this signal when the thread that started it ends, however it does.

    A parent that has ended before the kernel knows of that sends no signal. So the process asks once more whose child
    it is, and does not begin if its parent is gone. Empty where the system has no such thing: what is left there is
    stopped by the stack's next command.
    """
    if not _has_setpriv():
        return []
    signalled = ["setpriv", "--pdeathsig", number.name.removeprefix("SIG"), "--"]
    return [*signalled, "sh", "-c", '[ "$PPID" = "$0" ] || exit 1; exec "$@"', str(os.getpid())]


@cache
def _has_setpriv() -> bool:
    # Of util-linux, on Linux; busybox has a lesser one.
    tried = ["setpriv", "--pdeathsig", "KILL", "--", "true"]
    return bool(shutil.which("setpriv")) and not subprocess.run(tried, capture_output=True, check=False).returncode


def crash_text(name: str, code: int, log: Path, then: str = "") -> str:
    """Say which engine ended, how, what happens then, and the last lines that it logged."""
    lines = last_lines(log)
    if any(_NO_SPACE in line for line in lines):
        lines.append(f"no space left on the file system of {log.parent.parent}: make room, or use --state DIR")
    return "\n".join([f"{name} {ending(code)}{then}; the last lines of {log}:", *(f"  {line}" for line in lines)])


def last_lines(log: Path) -> list[str]:
    """The last lines of a log; of a Go program, with what words it gave up."""
    return [line[:400] for line in _last_words(log.read_text(errors="replace").splitlines())] if log.exists() else []


def ending(code: int) -> str:
    """How a process ended, by its exit code as `subprocess` has it."""
    if code >= 0:
        return f"exited with code {code}"
    how = f"was ended by {signal.Signals(-code).name}"
    return f"{how} (by somebody, or by the kernel for lack of memory)" if -code == signal.SIGKILL else how


def _last_words(lines: Sequence[str]) -> list[str]:
    """The last lines; those of a panic in their place, without its stacks and without lines that only separate."""
    recent = lines[-_RECENT_LINES:]
    starts = [index for index, line in enumerate(recent) if line.startswith(_LAST_WORDS)]
    if not starts:
        return list(recent[-_LAST_LINES:])
    words = itertools.takewhile(lambda line: not line.startswith(_STACKS), recent[starts[-1] :])
    return [line.strip() for line in words if line.strip(" \t-")][:_LAST_LINES]


def stop_recorded(folder: StackFolder, grace: float = 5.0) -> list[str]:
    """Stop what a killed daemon left behind; names of the engines that were still running.

    The last recorded is stopped first: a kube-apiserver whose etcd is gone does not end on SIGTERM.
    """
    if not folder.processes.is_dir():
        return []
    found = []
    for path in folder.processes.glob("*.json"):
        if record := records.read(path, ProcessRecord):
            found.append((record, path))
        else:
            path.unlink(missing_ok=True)
    stopped = []
    for record, path in sorted(found, key=lambda item: item[0].started, reverse=True):
        process = record.process()
        if process is not None:
            stopped.append(record.name)
            end(process, grace)
        path.unlink(missing_ok=True)
    return stopped


def end(process: psutil.Process, grace: float) -> None:
    """SIGTERM, then SIGKILL after `grace` seconds, for a process that need not be a child of this one."""
    with suppress(psutil.NoSuchProcess):
        process.terminate()
        if not ends(process, grace):
            process.kill()
            ends(process, grace)


def ends(process: psutil.Process, seconds: float) -> bool:
    """Whether a process ends in time. It has ended also when its parent has not taken notice of that (a zombie)."""
    deadline = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
    return True


def mark(folder: StackFolder) -> dict[str, str]:
    """The variable that marks a command of a stack, and all that it starts."""
    return {_MARK: str(folder.root)}


def marked(folder: StackFolder) -> list[psutil.Process]:
    """What commands of the stack have started and what runs still, this process apart."""
    return [process for process in psutil.process_iter() if _is_marked(process, folder)]


def stop_marked(folder: StackFolder, grace: float = 5.0) -> list[str]:
    """Stop what commands of the stack have left behind; the programs that were still running."""
    found = marked(folder)
    names = []
    for process in found:
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
            process.terminate()
    _, alive = psutil.wait_procs(found, grace)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, grace)
    return names


def _is_marked(process: psutil.Process, folder: StackFolder) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(_MARK) == str(folder.root)
    except (psutil.Error, OSError):  # it has ended, or is somebody else's
        return False


def wait_until(
    ready: Callable[[], bool], what: str, timeout: float, *, engines: Sequence[Engine] = (), interval: float = 0.05
) -> None:
    """Wait until a probe succeeds; for things that offer no watch (a port, a health endpoint).

    Args:
        ready: The probe; it must not raise.
        what: What is waited for, for the error text.
        timeout: Seconds.
        engines: Engines whose crash ends the wait at once.
        interval: Seconds between probes.

    Raises:
        EngineCrashError: One of `engines` ended.
        TimeoutError: The time is over.
    """
    deadline = time.monotonic() + timeout
    while not ready():
        for engine in engines:
            engine.check()
        if time.monotonic() > deadline:
            logs = ", ".join(str(engine.log) for engine in engines)
            raise TimeoutError(f"{what} was not ready after {timeout:g} s" + (f"; see {logs}" if logs else ""))
        time.sleep(interval)
