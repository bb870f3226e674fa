"""Engines that die are noticed by whatever runs, and what the user's environment holds reaches no process of ours.

`make bench NAME=kills` kills every process at every moment; here are those cases that differ most.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from karpstack.rehearsal.session.daemon import read
from tests.bench.kills import of
from tests.rehearsal.conftest import LIMIT, ROOT, RehearsedStack

STORY = "eks-cheapest-fit"
CANARY = "a-canary-that-must-not-sing"
CANARIES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"),
    *("ARM_CLIENT_SECRET", "AZURE_CLIENT_SECRET", "GOOGLE_CREDENTIALS", "PULUMI_ACCESS_TOKEN", "GITHUB_TOKEN"),
    *("HTTPS_PROXY", "SSH_AUTH_SOCK", "PYTHONPATH", "LD_LIBRARY_PATH", "MY_SECRET"),
)
PASSED = "MY_VARIABLE"
#: Engines get the least.
ENGINES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "karpenter-aws")


class Run:
    """A `run` of one story from nothing, in an environment full of canaries, seen from outside."""

    def __init__(self, stack: RehearsedStack, folder: Path) -> None:
        self.stack = stack
        self.report = folder / "report"
        self.output = folder / "output"
        profile = folder / "aws-config"
        profile.write_text(f"[default]\ncredential_process = touch {folder / 'sung'}\n")
        self.sung = folder / "sung"
        variables = {**os.environ, **dict.fromkeys(CANARIES, CANARY)}
        variables |= {"AWS_CONFIG_FILE": str(profile), "KARPSTACK_PASS": PASSED, PASSED: "passed"}
        with self.output.open("wb") as stream:
            self.command = subprocess.Popen(
                stack.words("run", "--scenarios", STORY, "--report", str(self.report)),
                cwd=ROOT,
                env=variables,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        """The output so far."""
        return self.output.read_text(errors="replace")

    def until_story(self) -> Iterator[None]:
        """Until the story's pods have been asked for; for whoever looks at something meanwhile."""
        deadline = time.monotonic() + LIMIT
        timeline = self.report / "timeline.jsonl"
        while not (timeline.is_file() and '"STORY"' in timeline.read_text()):
            assert self.command.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            yield
            time.sleep(0.1)

    def until_engines(self) -> None:
        """Until the API server runs."""
        while not any("/kube-apiserver " in line for _, line in of(self.stack.folder)):
            assert self.command.poll() is None, self.said
            time.sleep(0.1)

    def ends(self, within: float) -> int:
        """Its exit code, once it has ended; nothing of it may be left."""
        code = self.command.wait(within)
        assert not list(of(self.stack.folder)), self.said
        return code


@pytest.fixture
def run(fresh: RehearsedStack, tmp_path: Path) -> Iterator[Run]:
    found = Run(fresh, tmp_path)
    yield found
    if found.command.poll() is None:
        found.command.terminate()
        found.command.wait(60)


def test_no_process_gets_the_users_secrets_and_a_dead_etcd_ends_a_story(run: Run) -> None:
    seen: dict[str, dict[str, str]] = {}
    for _ in run.until_story():
        for process, line in of(run.stack.folder):
            with suppress(psutil.Error, OSError):
                seen[line] = process.environ()
    for expected in (
        *ENGINES,
        "karpstack.rehearsal.session.serve",
        "pulumi up",
        "language_host",  # the policy pack's process is a copy of one
        "ansible-playbook",
    ):
        assert any(expected in line for line in seen), f"{expected} was never seen; seen were: {list(seen)}"
    assert any("AnsiballZ_recorder" in line for line in seen)
    for line, environment in seen.items():
        singing = [name for name, value in environment.items() if CANARY in value]
        assert not singing, f"{line}: {singing}"
        if any(f"/{engine} " in line for engine in ENGINES) or "karpstack.rehearsal.session.serve" in line:
            assert PASSED not in environment, line
        elif "pulumi up" in line or "ansible-playbook" in line:
            assert environment[PASSED] == "passed"
    assert not run.sung.exists()
    start = json.loads((run.report / "timeline.jsonl").read_text().splitlines()[0])
    assert (start["type"], start["scenarios"]) == ("START", [STORY])

    next(process for process, line in of(run.stack.folder) if "/etcd " in line).kill()
    assert run.ends(within=10) == 3
    assert "engine crash: etcd was ended by SIGKILL" in run.said
    assert "error: etcd is gone, and without it nothing goes on" in run.said


def test_a_killed_daemon_ends_an_up_and_leaves_nothing(run: Run) -> None:
    run.until_engines()
    info = read(run.stack.folder)
    assert info
    psutil.Process(info.pid).kill()
    assert run.ends(within=10) == 3
    assert "the rehearsal's daemon is gone" in run.said


def test_a_killed_command_takes_all_with_it(run: Run) -> None:
    run.until_engines()
    run.command.kill()
    run.command.wait()
    deadline = time.monotonic() + 15
    while list(of(run.stack.folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not list(of(run.stack.folder))
