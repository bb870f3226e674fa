"""The command that brings a stack up, where its rehearsal runs already."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.host.processes import start_time
from karpstack.rehearsal.session import lifetime
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.deployment import CommandError
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state.folder import StackFolder
from tests.unit.rehearsal.test_stack_file import GOOD, write


def test_what_is_described_is_not_changed_under_a_running_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack_file = StackFile.load(write(tmp_path, GOOD))
    stack_file.network.write_text('{"Vpcs": [{"VpcId": "vpc-0123456789abcdef0", "CidrBlock": "10.0.0.0/16"}]}')
    folder = StackFolder("eks", tmp_path / "state" / "eks").create()
    started = start_time(psutil.Process())
    DaemonInfo(os.getpid(), started, "aws", "us-east-1", stack_file.described, ready=True).write(folder)
    monkeypatch.setattr(lifetime, "ensure", lambda *_: None)
    updated: list[str] = []

    class Updating:
        def __init__(self, *_: object) -> None:
            pass

        def prepare(self, stack_file: StackFile) -> None:
            updated.append("prepared")

        def up(self, *, judged: bool) -> None:
            updated.append("up")

    monkeypatch.setattr(lifetime, "Deployment", Updating)
    lifetime.bring_up(folder, stack_file, keep=False, stay=True)
    assert updated == ["prepared", "up"]
    stack_file.network.write_text('{"Vpcs": [{"VpcId": "vpc-0123456789abcdef0", "CidrBlock": "10.1.0.0/16"}]}')
    with pytest.raises(CommandError, match=r"Pulumi\.eks\.network\.json or .* has changed since .* karpstack down eks"):
        lifetime.bring_up(folder, stack_file, keep=False, stay=True)
    assert updated == ["prepared", "up"]
