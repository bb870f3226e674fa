"""One at a time works on a stack; who comes second hears at once who is there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.host.processes import ProcessRecord, start_time
from karpstack.rehearsal.session import lock
from karpstack.rehearsal.state import ownership, records
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.scale_test import stack_lock

ROOT = Path(__file__).resolve().parents[3]
HOLDER = """
import sys, time
from pathlib import Path
from karpstack.rehearsal.session import lock
from karpstack.rehearsal.state.folder import StackFolder
with lock.held(StackFolder("eks", Path(sys.argv[1])), "karpstack up eks"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    made = StackFolder("eks", tmp_path / "eks")
    ownership.claim(made)
    return made


@contextmanager
def another(folder: StackFolder) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLDER, str(folder.root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_the_second_hears_who_is_there_and_what_to_do(folder: StackFolder) -> None:
    with another(folder) as process:
        words = rf"`karpstack up eks` \(process {process.pid}, since \d\d:.*kill -INT {process.pid}.*down --force"
        with pytest.raises(lock.BusyError, match=words), lock.held(folder, "down", patience=0):
            pass
        with pytest.raises(stack_lock.BusyError, match=words.partition(".*down")[0]):
            stack_lock.take(folder.lock, os.getpid())


def test_the_lock_of_a_killed_holder_is_free_at_once(folder: StackFolder) -> None:
    with another(folder) as process:
        process.kill()
        process.wait()
        assert lock.holder(folder) is None
        with lock.held(folder, "down", patience=0):
            pass


def test_a_lock_is_held_although_its_record_cannot_be_written(folder: StackFolder) -> None:
    """As on a full disk, from which `down --force` is the way out."""
    folder.holder.mkdir()
    refused = pytest.raises(lock.BusyError, match="another command")
    with lock.held(folder, "down --force", patience=0), refused, lock.held(folder, "up", patience=0):
        pass


def test_what_the_holder_starts_does_not_hold_it(folder: StackFolder) -> None:
    with lock.held(folder, "up"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert lock.holder(folder) is None
    finally:
        child.kill()
        child.wait()


def test_looking_makes_nothing_and_says_who(folder: StackFolder) -> None:
    assert lock.holder(folder) is None
    assert not folder.lock.exists()
    with lock.held(folder, "up"):
        found = lock.holder(folder)
        assert found
        assert (found.name, found.pid) == ("up", os.getpid())
    assert lock.holder(folder) is None


def test_a_holder_is_ended_by_an_interrupt(folder: StackFolder) -> None:
    with another(folder) as process:
        found = lock.end_holder(folder)
        assert found
        assert found.pid == process.pid
        with lock.held(folder, "down", patience=0):
            pass


def test_what_a_holder_leaves_behind_when_it_ends_is_ended_too(folder: StackFolder) -> None:
    waiting = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    holder = HOLDER.replace(
        "time.sleep(60)", f"import subprocess; subprocess.Popen([sys.executable, '-c', {waiting!r}]).wait()"
    )
    holder = holder.replace("print(", "import os; os.setpgrp(); print(")
    command = [sys.executable, "-c", holder, str(folder.root)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        while not (children := psutil.Process(process.pid).children()):
            time.sleep(0.01)
        time.sleep(0.3)  # until it ignores what interrupts
        assert lock.end_holder(folder, 5)
        assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in children)


def test_only_the_process_that_holds_it_is_ended(folder: StackFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
        try:
            records.write(folder.holder, ProcessRecord("up", bystander.pid, start_time(psutil.Process(bystander.pid))))
            assert lock.end_holder(folder) is None  # nobody holds it: the record is an old one
            with lock.held(folder, "up"):
                records.write(folder.holder, ProcessRecord("up", bystander.pid, 1.0))
                assert lock.end_holder(folder) is None  # the pid was given away again
            assert bystander.poll() is None
        finally:
            bystander.kill()


@pytest.mark.parametrize("record", ["", "{", "[]", '{"name": 1}'])
def test_a_broken_record_hides_the_name_and_no_more(folder: StackFolder, record: str) -> None:
    with lock.held(folder, "up"):
        folder.holder.write_text(record)
        with pytest.raises(lock.BusyError, match="another command is working on eks"), lock.held(folder, "down", 0):
            pass
        with pytest.raises(stack_lock.BusyError, match="another command is working"):
            stack_lock.take(folder.lock, os.getpid())


def test_a_scale_test_by_hand_holds_it_until_its_end(folder: StackFolder) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as playbook:
        try:
            stack_lock.take(folder.lock, playbook.pid)
            found = lock.holder(folder)
            assert found
            process = found.process()
            assert process
            assert (found.name, process.pid) == ("ansible-playbook", playbook.pid)
            with pytest.raises(lock.BusyError, match="`ansible-playbook`"), lock.held(folder, "down", 0):
                pass
            with pytest.raises(stack_lock.BusyError, match="`ansible-playbook`"):
                stack_lock.take(folder.lock, os.getpid())
        finally:
            playbook.kill()
            playbook.wait()
    with lock.held(folder, "down", 10):
        pass


def test_what_lies_in_the_folder_where_a_playbook_was_started_is_not_run(
    folder: StackFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "psutil.py").write_text("raise SystemExit('somebody else wrote this')")
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as playbook:
        try:
            stack_lock.take(folder.lock, playbook.pid)
            time.sleep(0.5)  # the keeper would have ended, and the lock be free
            assert lock.holder(folder)
        finally:
            playbook.kill()
            playbook.wait()
