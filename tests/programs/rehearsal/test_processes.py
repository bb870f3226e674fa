"""Engines as processes: crashes are told by name, stops are sure, other people's processes are left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.host.processes import (
    EngineCrashError,
    Engines,
    ProcessRecord,
    crash_text,
    ends,
    mark,
    stop_marked,
    stop_recorded,
    wait_until,
    with_parent,
)
from karpstack.rehearsal.state.folder import StackFolder

ROOT = Path(__file__).resolve().parents[3]
SLEEP = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("test", tmp_path).create()


def started(folder: StackFolder, name: str) -> bool:
    return "ready" in (folder.logs / f"{name}.log").read_text()


def test_a_crash_is_told_with_name_code_and_last_lines(folder: StackFolder) -> None:
    told: list[str] = []
    heard = threading.Event()

    def hear(text: str) -> None:
        told.append(text)
        heard.set()

    engines = Engines(folder, on_crash=hear)
    engine = engines.start("etcd", [sys.executable, "-c", "print('disk is full'); raise SystemExit(3)"])
    assert heard.wait(10)
    assert "etcd exited with code 3" in told[0]
    assert "disk is full" in told[0]
    with pytest.raises(EngineCrashError, match="etcd exited with code 3"):
        engine.check()


def test_of_a_go_program_its_last_words_are_told_and_not_its_stacks(folder: StackFolder) -> None:
    log = folder.logs / "karpenter-azure.log"
    words = ["panic: ensuring Azure token can be retrieved", "\t-----", '\t  "AADSTS700213: no matching record"', "\t"]
    stacks = ["goroutine 1 [running]:", *(f"frame {number}" for number in range(40))]
    log.write_text("\n".join(["panic: an older one", *["info"] * 30, *words, *stacks]))
    assert crash_text("karpenter-azure", 2, log).splitlines()[1:] == [
        "  panic: ensuring Azure token can be retrieved",
        '  "AADSTS700213: no matching record"',
    ]


def test_a_full_disk_and_a_killed_process_are_told_as_such(folder: StackFolder) -> None:
    log = folder.logs / "etcd.log"
    log.write_text("panic: write wal: no space left on device\n")
    assert f"no space left on the file system of {folder.root}" in crash_text("etcd", 2, log)
    assert "by the kernel for lack of memory" in crash_text("etcd", -9, log)
    assert "by the kernel" not in crash_text("etcd", -6, log)


@pytest.mark.parametrize(("vital", "lost"), [(True, ["etcd"]), (False, [])])
def test_a_vital_engine_that_ends_is_lost(folder: StackFolder, vital: bool, lost: list[str]) -> None:
    heard: list[str] = []
    engines = Engines(folder, on_loss=heard.append)
    engines.start("etcd", ["false"], vital=vital)
    for thread in threading.enumerate():
        if thread.name == "watch-etcd":
            thread.join(10)
    assert heard == lost


DAEMON = """
import sys, time
from pathlib import Path
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.rehearsal.host.processes import Engines
engine = Engines(StackFolder("test", Path(sys.argv[1]))).start("etcd", ["sleep", "60"])
print(engine.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not with_parent(signal.SIGKILL), reason="no setpriv (util-linux) here: systems without it do less")
def test_engines_end_with_a_daemon_that_is_killed(folder: StackFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(folder.root)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout
        engine = psutil.Process(int(daemon.stdout.readline()))
        wait_until(lambda: engine.name() == "sleep", "the engine", 10)  # what tells it of its parent's end has run
        daemon.kill()
    assert ends(engine, 10)


@pytest.mark.skipif(not with_parent(signal.SIGKILL), reason="no setpriv (util-linux) here: systems without it do less")
def test_an_engine_whose_parent_is_gone_already_does_not_begin(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = [*with_parent(signal.SIGKILL), "touch", str(begun)]
    # The child of a shell: whoever wrote the command is not its parent.
    assert subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *command], check=False).returncode == 1
    assert not begun.exists()
    assert subprocess.run(command, check=False).returncode == 0
    assert begun.exists()


def test_what_a_command_left_is_stopped_by_its_mark_with_all_that_it_started(
    folder: StackFolder, tmp_path: Path
) -> None:
    other = StackFolder("other", tmp_path / "other")
    # Its parent ends; it has a session of its own.
    command = "sleep 60 >/dev/null & echo $!"
    pids = []
    for environment in (mark(folder), mark(other)):
        shell = ["setsid", "sh", "-c", command]
        done = subprocess.run(
            shell, env={"PATH": os.environ["PATH"], **environment}, stdout=subprocess.PIPE, check=True
        )
        pids.append(int(done.stdout))
    ours, theirs = (psutil.Process(pid) for pid in pids)
    try:
        assert stop_marked(folder) == ["sleep"]
        assert (ours.is_running(), theirs.is_running()) == (False, True)
    finally:
        stop_marked(other)


def test_stopping_is_not_a_crash(folder: StackFolder) -> None:
    told: list[str] = []
    engines = Engines(folder, on_crash=told.append)
    engine = engines.start("kwok", SLEEP)
    engines.stop_all()
    assert not engine.running
    assert told == []
    assert list(folder.processes.iterdir()) == []


def test_a_restart_is_not_a_crash_and_starts_the_same_again(folder: StackFolder, tmp_path: Path) -> None:
    told: list[str] = []
    engines = Engines(folder, on_crash=told.append)
    code = "import os, time; print('ready', os.environ['KEY'], os.getcwd(), flush=True); time.sleep(60)"
    first = engines.start("kube-apiserver", [sys.executable, "-c", code], environment={"KEY": "value"}, cwd=tmp_path)
    log = folder.logs / "kube-apiserver.log"
    wait_until(lambda: log.read_text().count("ready") == 1, "the engine", 10)
    second = engines.restart("kube-apiserver")
    try:
        wait_until(lambda: log.read_text().count("ready") == 2, "the engine", 10, engines=[second])
        assert (first.running, second.running) == (False, True)
        assert engines.get("kube-apiserver") is second
        assert set(log.read_text().splitlines()) == {f"ready value {tmp_path}"}
        assert json.loads((folder.processes / "kube-apiserver.json").read_text())["pid"] == second.pid
        assert told == []
    finally:
        engines.stop_all()


def test_only_what_runs_is_restarted(folder: StackFolder) -> None:
    with pytest.raises(LookupError, match="no engine kube-apiserver runs"):
        Engines(folder).restart("kube-apiserver")


def test_an_engine_that_ignores_the_signal_is_killed(folder: StackFolder) -> None:
    engines = Engines(folder)
    engine = engines.start("kube-apiserver", STUBBORN)
    wait_until(lambda: started(folder, "kube-apiserver"), "the engine", 10)
    engine.stop(grace=0.2)
    assert not engine.running


def test_the_last_started_is_stopped_first(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(folder)
    order: list[str] = []
    for name in ("etcd", "kube-apiserver"):
        engine = engines.start(name, SLEEP)

        def tell(grace: float = 5.0, name: str = name, stop: Callable[[float], None] = engine.stop) -> None:
            order.append(name)
            stop(grace)

        monkeypatch.setattr(engine, "stop", tell)
    engines.stop_all()
    assert order == ["kube-apiserver", "etcd"]


def test_one_name_is_one_engine(folder: StackFolder) -> None:
    engines = Engines(folder)
    engines.start("etcd", SLEEP)
    try:
        with pytest.raises(ValueError, match="the engine etcd is running already"):
            engines.start("etcd", SLEEP)
    finally:
        engines.stop_all()


def test_what_a_killed_daemon_left_is_stopped_by_its_record(folder: StackFolder) -> None:
    engine = Engines(folder).start("etcd", SLEEP)
    assert stop_recorded(folder) == ["etcd"]
    assert not psutil.pid_exists(engine.pid) or psutil.Process(engine.pid).status() == psutil.STATUS_ZOMBIE
    assert stop_recorded(folder) == []


def test_what_is_recorded_otherwise_is_stopped_too(folder: StackFolder) -> None:
    with subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL) as process:
        record = ProcessRecord.write(folder, "pulumi", process.pid)
        assert stop_recorded(folder) == ["pulumi"]
        assert process.wait(1) == -signal.SIGTERM
    assert not record.exists()


@pytest.mark.parametrize("content", ["", '{"name": "etcd", "pi', "[]", '{"name": "etcd", "pid": "1", "started": 0}'])
def test_a_broken_record_hinders_nobody_and_is_removed(folder: StackFolder, content: str) -> None:
    (folder.processes / "kwok.json").write_text(content)
    engine = Engines(folder).start("etcd", SLEEP)
    assert stop_recorded(folder) == ["etcd"]
    assert not psutil.pid_exists(engine.pid) or psutil.Process(engine.pid).status() == psutil.STATUS_ZOMBIE
    assert list(folder.processes.iterdir()) == []


@pytest.mark.skipif(not psutil.LINUX, reason="elsewhere a process keeps the time of day of its start")
def test_a_clock_that_is_set_makes_no_process_another(folder: StackFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ProcessRecord.write(folder, "etcd", os.getpid())
    record = ProcessRecord(**json.loads(path.read_text()))
    # An hour later by the clock, so that the machine has started an hour later, too.
    now = psutil.boot_time()
    monkeypatch.setattr("psutil.boot_time", lambda: now + 3600)
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: now + 3600)
    assert record.process() is not None


def test_one_that_ended_and_was_not_waited_for_keeps_nobody_waiting(folder: StackFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        known = psutil.Process(process.pid)
        wait_until(lambda: known.status() == psutil.STATUS_ZOMBIE, "the end", 10)
        assert ends(known, 0)


def test_a_pid_that_was_given_away_is_left_alone(folder: StackFolder) -> None:
    other = subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL)
    try:
        (folder.processes / "etcd.json").write_text(json.dumps({"name": "etcd", "pid": other.pid, "started": 1.0}))
        assert stop_recorded(folder) == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_waiting_ends_with_the_crash_of_the_engine(folder: StackFolder) -> None:
    engine = Engines(folder).start("etcd", [sys.executable, "-c", "raise SystemExit('no port')"])
    with pytest.raises(EngineCrashError, match="no port"):
        wait_until(lambda: False, "etcd's port", 30, engines=[engine])


def test_waiting_ends_also_when_the_engine_is_stopped(folder: StackFolder) -> None:
    engines = Engines(folder)
    engine = engines.start("etcd", SLEEP)
    threading.Timer(0.2, engines.stop_all).start()
    with pytest.raises(EngineCrashError, match="etcd was stopped"):
        wait_until(lambda: False, "etcd's port", 30, engines=[engine])


def test_waiting_too_long_says_for_what_and_where_to_look(folder: StackFolder) -> None:
    engines = Engines(folder)
    engine = engines.start("etcd", SLEEP)
    try:
        with pytest.raises(TimeoutError, match=r"etcd's port was not ready after 0\.1 s; see .*etcd\.log"):
            wait_until(lambda: False, "etcd's port", 0.1, engines=[engine])
    finally:
        engines.stop_all()
