"""A crash is said once, at once, by the command that was running when it happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import start_time
from karpstack.rehearsal.session import crashes, lifetime
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.deployment import Deployment
from karpstack.rehearsal.state.folder import StackFolder

OLD = "karpenter-aws was ended by SIGKILL; the last lines of a log:\n  old"
NEW = "karpenter-aws exited with code 2; the last lines of a log:\n  new"


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path / "state" / "eks")


def info() -> DaemonInfo:
    return DaemonInfo(os.getpid(), start_time(psutil.Process()), "aws", "us-east-1", ready=True, crashes=[OLD])


def test_a_crash_is_said_while_the_run_goes_on_and_an_old_one_is_not(
    folder: StackFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []

    def call(_: Sequence[str], __: Mapping[str, str], ___: Path, check: Callable[[], None], ____: object) -> int:
        for known in ([OLD], [OLD, NEW], [OLD, NEW]):
            replace(info(), crashes=known).write(folder)
            check()
            said.append(capsys.readouterr().err)
        return 0

    folder.create()
    info().write(folder)
    with lifetime.locked_folder(folder, "a test"), lifetime.watched(folder):
        Deployment(folder, EngineSet(folder.root), info(), run=call).play(Path("a.yml"), {})
    assert said == ["", f"engine crash: {NEW}\n", ""]
    assert "crash" not in capsys.readouterr().err


def test_a_later_command_says_nothing_of_it_and_status_says_all(
    folder: StackFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.create()
    info().write(folder)
    with lifetime.locked_folder(folder, "a test"), lifetime.watched(folder):
        pass
    assert capsys.readouterr().err == ""
    crashes.report_all(folder)
    assert capsys.readouterr().err == f"engine crash: {OLD}\n"
