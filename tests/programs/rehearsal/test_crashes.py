"""What a program that ends by itself leaves to say, and what one that is killed leaves behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import Engines, start_time, wait_until
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.deployment import Deployment
from karpstack.rehearsal.state.folder import StackFolder


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("eks", tmp_path / "state" / "eks").create()


@pytest.mark.parametrize(("vital", "words"), [(False, "; it is started again after a pause"), (True, "; the last")])
def test_a_crash_has_what_follows_and_the_last_lines(vital: bool, words: str, folder: StackFolder) -> None:
    said: list[str] = []
    engines = Engines(folder, on_crash=said.append)
    engines.start("karpenter-aws", [sys.executable, "-c", "print('the last words'); exit(3)"], vital=vital)
    wait_until(lambda: bool(said), "the crash", 20.0)
    assert said[0].startswith(f"karpenter-aws exited with code 3{words}")
    assert said[0].endswith("\n  the last words")


def test_what_a_killed_client_leaves_is_in_the_state_folder(folder: StackFolder) -> None:
    """The client of Kubernetes writes a kubeconfig's CA into a file, which it removes when it ends in peace."""
    info = DaemonInfo(os.getpid(), start_time(psutil.Process()), "aws", "us-east-1", ready=True).write(folder)
    script = "import os, tempfile; tempfile.mkstemp(suffix='ca.crt'); os._exit(0)"
    Deployment(folder, EngineSet(folder.root), info)._call([sys.executable, "-c", script])
    assert [path.name.endswith("ca.crt") for path in folder.temporary.iterdir()] == [True]
