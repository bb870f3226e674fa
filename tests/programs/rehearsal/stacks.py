"""A rehearsed stack without engines: commands start `sleep` as its daemon, and what they ask of it is noted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import psutil

from karpstack.rehearsal.commands import Target
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.host.processes import start_time
from karpstack.rehearsal.session import daemon
from karpstack.rehearsal.session.daemon import DaemonInfo, StartingDaemon
from karpstack.rehearsal.session.deployment import Deployment
from karpstack.rehearsal.session.lifetime import Tools
from karpstack.rehearsal.session.stack_file import StackFile
from karpstack.rehearsal.state import ownership
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.packaged import PROGRAM


class Stack:
    """The stack `eks`.

    Attributes:
        commands: Pulumi's and Ansible's commands on it; all of them pass.
        starting: What was started, once something was.
    """

    def __init__(self, state: Path) -> None:
        self.folder = StackFolder("eks", state / "eks")
        self.project = state / "project"
        self.project.mkdir(parents=True)
        for name in ("Pulumi.yaml", "Pulumi.eks.yaml"):
            shutil.copy(PROGRAM / name, self.project)
        self.commands: Any = create_autospec(Deployment, instance=True)
        for name in ("play", "review", "preflight"):
            getattr(self.commands, name).return_value = 0
        self.commands.hindrances.return_value = []
        self.starting: Any = create_autospec(StartingDaemon, instance=True)

    @property
    def tools(self) -> Tools:
        """What commands on it are given."""
        return Tools(lambda *_: EngineSet(self.folder.root), self._start, lambda *_: self.commands)

    @property
    def asked(self) -> list[str]:
        """Names of the commands that were given, in order."""
        return [call[0] for call in self.commands.mock_calls]

    def target(self) -> Target:
        """Return what a command works on."""
        return Target("eks", self.folder.root.parent, given_project=self.project, tools=self.tools)

    def is_up(self) -> bool:
        """Return whether its daemon runs."""
        return daemon.running(self.folder) is not None

    def start(self, described: str = "") -> DaemonInfo:
        """Let the stack be up, until somebody stops its daemon."""
        ownership.claim(self.folder)
        process = psutil.Process(subprocess.Popen(["sleep", "600"]).pid)
        info = DaemonInfo(process.pid, start_time(process), "aws", "us-east-1", described, ready=True)
        return info.write(self.folder.create())

    def _start(self, _: StackFolder, stack_file: StackFile, __: EngineSet) -> StartingDaemon:
        self.starting.info = self.start(stack_file.described)
        started: StartingDaemon = self.starting
        return started
