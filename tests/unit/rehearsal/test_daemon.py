"""What commands see of their daemon: that it is there, or who is gone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from karpstack.rehearsal.host.processes import start_time
from karpstack.rehearsal.session.daemon import DaemonInfo, LostError, check
from karpstack.rehearsal.state.folder import StackFolder


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path).create()


@pytest.fixture
def ours() -> DaemonInfo:
    """This very process as a daemon."""
    return DaemonInfo(os.getpid(), start_time(psutil.Process()), "aws", "us-east-1", ready=True)


def test_with_a_daemon_that_lives_a_command_goes_on(folder: StackFolder, ours: DaemonInfo) -> None:
    ours.write(folder)
    check(folder)


def test_a_lost_engine_is_named_also_while_the_daemon_still_ends(folder: StackFolder, ours: DaemonInfo) -> None:
    replace(ours, lost="etcd").write(folder)
    with pytest.raises(LostError, match="etcd is gone"):
        check(folder)


def test_a_daemon_that_is_gone_is_told_with_its_last_lines(folder: StackFolder, ours: DaemonInfo) -> None:
    (folder.logs / "daemon.log").write_text("Traceback\nMemoryError\n")
    for info in (None, replace(ours, started=1.0)):
        if info:
            info.write(folder)
        with pytest.raises(LostError, match=r"daemon is gone(.|\n)*MemoryError"):
            check(folder)


def test_a_full_disk_ends_a_command(folder: StackFolder, ours: DaemonInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    ours.write(folder)
    with pytest.raises(LostError, match=r"nothing can be written.*\n/.* has no space left"):
        check(folder)
    replace(ours, lost="etcd").write(folder)
    with pytest.raises(LostError, match=r"etcd is gone.*\n/.* has no space left"):
        check(folder)
