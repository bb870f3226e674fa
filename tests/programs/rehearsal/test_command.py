"""Commands that are run on our terminal: their end, and what they hear of an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.host.processes import with_parent
from karpstack.rehearsal.session.command import Shown, call

ROOT = Path(__file__).resolve().parents[3]
# Says that it is there, and how often it was interrupted when it ends.
CHILD = """
import signal, sys, time
heard = 0
def interrupted(*_):
    global heard
    heard += 1
signal.signal(signal.SIGINT, interrupted)
print("ready", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.2)
print(f"heard {heard}", flush=True)
"""
PARENT = f"""
import os, signal, sys
from pathlib import Path
from karpstack.rehearsal.session.command import call
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
try:
    call([sys.executable, "-c", {CHILD!r}], os.environ, Path.cwd())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

# As if the interrupt came while the main thread was within `Popen.wait`, just after that has taken its lock.
INTERRUPTED_WITHIN_WAIT = """
import os, subprocess, sys, threading
from pathlib import Path
from karpstack.rehearsal.session.command import call
class Lock:
    def __init__(self):
        self._lock = threading.Lock()
    def acquire(self, *waiting):
        taken = self._lock.acquire(*waiting)
        if taken and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return taken
    def release(self):
        self._lock.release()
    def __enter__(self):
        self.acquire()
    def __exit__(self, *_):
        self.release()
class Popen(subprocess.Popen):
    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        if options.get("process_group") == 0:
            self._waitpid_lock = Lock()
subprocess.Popen = Popen
try:
    call([sys.executable, "-c", "import time; time.sleep(0.5)"], os.environ, Path.cwd())
except KeyboardInterrupt:
    pass
print("ended", flush=True)
"""


def test_an_interrupt_at_any_moment_does_not_make_the_wait_last_forever() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WITHIN_WAIT], cwd=ROOT, capture_output=True, text=True, timeout=20
    )
    assert ended.stdout == "ended\n", ended.stderr


def test_the_exit_code_is_the_commands(tmp_path: Path) -> None:
    assert call([sys.executable, "-c", "raise SystemExit(3)"], os.environ, tmp_path) == 3


@pytest.mark.parametrize("whole_group", [True, False], ids=["as a terminal does", "as kill does"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_hears_of_an_interrupt_once_and_ends_by_itself(number: signal.Signals, whole_group: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout
        try:
            assert parent.stdout.readline() == "ready\n"
            (os.killpg if whole_group else os.kill)(parent.pid, number)
            output, _ = parent.communicate(timeout=20)
        finally:
            parent.kill()
    assert output == "heard 1\ninterrupted\n"


@pytest.mark.parametrize(
    "child",
    ["import time; time.sleep(60)", "import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)"],
    ids=["interrupted", "killed"],
)
def test_a_command_ends_when_what_it_needs_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str) -> None:
    monkeypatch.setattr("karpstack.rehearsal.session.command._GRACE", 0.5)
    started: list[psutil.Process] = []

    def gone() -> None:
        started.extend(psutil.Process().children())
        raise LookupError("etcd is gone")

    with pytest.raises(LookupError, match="etcd is gone"):
        call([sys.executable, "-c", child], os.environ, tmp_path, gone)
    assert started
    assert not any(process.is_running() for process in started)


def test_a_command_that_failed_because_what_it_needs_is_gone_says_that(tmp_path: Path) -> None:
    def gone() -> None:
        raise LookupError("etcd is gone")

    with pytest.raises(LookupError):
        call([sys.executable, "-c", "raise SystemExit(1)"], os.environ, tmp_path, gone)


@pytest.mark.skipif(
    not with_parent(signal.SIGINT), reason="no setpriv (util-linux) here, which tells of a parent's end"
)
def test_a_command_is_interrupted_when_we_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        # The kernel says so for each thread of ours that was the command's parent in turn, and two seldom end at once.
        assert parent.stdout.read() in {"heard 1\n", "heard 2\n"}


def test_of_an_output_what_is_kept_is_shown_and_all_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = Shown(lambda line: "kept" in line, tmp_path / "output.log")
    assert (
        call(
            [sys.executable, "-c", "print('kept 1'); print('dropped'); print('kept 2')"],
            os.environ,
            tmp_path,
            shown=shown,
        )
        == 0
    )
    assert capsys.readouterr().out == "kept 1\nkept 2\n"
    assert (tmp_path / "output.log").read_text() == "kept 1\ndropped\nkept 2\n"


def test_output_that_nobody_reads_is_logged_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `| head`: more lines than a pipe holds, and no traceback of the thread that shows them."""
    reading, writing = os.pipe()
    os.close(reading)
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with os.fdopen(writing, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        code = "for number in range(20_000): print(number)"
        assert (
            call([sys.executable, "-c", code], os.environ, tmp_path, shown=Shown(lambda _: True, tmp_path / "log")) == 0
        )
        monkeypatch.undo()
        with suppress(BrokenPipeError):
            unread.close()
    assert not failed
    assert (tmp_path / "log").read_text().endswith("\n19999\n")
