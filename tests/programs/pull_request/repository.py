"""A git repository with a change, and the action's scripts, run there as a runner does; the rehearsal is a stand-in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.programs.pull_request.github_server import NUMBER, REPOSITORY, WRITES, GitHubServer

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / ".github" / "actions" / "rehearse" / "action.yml"
PARTS = (
    "karpstack/pull_request",
    "karpstack/text",
    "karpstack/rehearsal/engines",
    "karpstack/rehearsal/state",
    "karpstack/rehearsal/host",
)
STACK = "config:\n  karpstack:cloud: {cloud}\n"

# It writes what it was asked and, as the real one, documents; a stack is judged by what its file says.
REHEARSAL = """
import json, os, pathlib, sys
command, *options = sys.argv[1:]
stack = "" if options[0].startswith("--") else options.pop(0)
given = dict(zip(options[::2], options[1::2]))
assert "GITHUB_TOKEN" not in os.environ
with open("asked.jsonl", "a") as asked:
    print(json.dumps([command, stack, {key: value for key, value in given.items() if key != "--output"}]), file=asked)
said = pathlib.Path(f"Pulumi.{stack}.yaml").read_text() if stack else ""
if f"{command} breaks" in said:
    sys.exit(1)
folder = pathlib.Path(given["--output"]) / ("working-tree" if command == "whatif" else "")
folder.mkdir(parents=True, exist_ok=True)
(folder / f"{command}.md").write_text(f"## {command} of {stack or given['--change']}\\n")
(folder / f"{command}.html").write_text("<!doctype html>")
sys.exit(2 if f"{command} fails" in said else 1 if f"{command} refuses" in said else 0)
"""


@dataclass
class Repository:
    """A repository in git, and a copy of what the action runs.

    Attributes:
        folder: Its root.
        program: Where karpstack is: in the repository, or in the action's own checkout.
        outputs: Of the action's steps: id -> name -> value.
    """

    folder: Path
    program: Path
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=mona", "-c", "user.email=mona@example.org", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(self.folder), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, **files: str | None) -> None:
        """Write files (`None` removes), and commit them."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if content is None else path.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--message", "a change")

    def merged(self, **files: str | None) -> None:
        """A branch with a change, merged as GitHub does before a pull request's jobs; the base went on meanwhile."""
        self.git("switch", "--create", "branch")
        self.commit(**files)
        self.git("switch", "main")
        self.commit(**{"Pulumi.other.yaml": STACK.format(cloud="aws")})
        self.git("merge", "--no-ff", "--message", "Merge branch into main", "branch")

    def step(
        self, command: str, environment: dict[str, str], inputs: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run the action's script with a command in it, as a runner does."""
        content = yaml.safe_load(ACTION.read_text())
        (step,) = [
            step for step in content["runs"]["steps"] if f"karpstack.pull_request {command}" in step.get("run", "")
        ]
        given = {name: one.get("default", "") for name, one in content["inputs"].items()} | inputs
        output = self.folder.parent / "output"
        output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{self.folder.parent / 'bin'}:{os.environ['PATH']}",
                "HOME": str(self.folder.parent),
                "RUNNER_TEMP": str(self.folder.parent),
                "GITHUB_ACTION_PATH": str(self.program / ACTION.parent.relative_to(ROOT)),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_REPOSITORY": REPOSITORY,
                "GITHUB_STEP_SUMMARY": str(self.folder.parent / "summary.md"),
                "GITHUB_EVENT_PATH": str(self.folder.parent / "event.json"),
                **{name: self.resolved(str(value), given) for name, value in step.get("env", {}).items()},
                **environment,
            },
        )
        if "id" in step:
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done

    def resolved(self, value: str, inputs: dict[str, str]) -> str:
        """What an expression of `env` stands for."""
        path = value.removeprefix("${{ ").removesuffix(" }}").split(".")
        if path[0] == "inputs":
            return inputs[path[1]]
        assert path[0] == "steps"
        return self.outputs[path[1]][path[3]]

    def asked(self) -> list[Any]:
        file = self.program / "asked.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def lay_down_program(self) -> None:
        """Copy what the action runs, write the event, and make the folder a repository."""
        ignored = shutil.ignore_patterns("__pycache__", "*.sum")
        for part in PARTS:
            shutil.copytree(ROOT / part, self.program / part, ignore=ignored)
        for name in ("karpstack/__init__.py", "karpstack/rehearsal/__init__.py", "requirements.lock"):
            shutil.copyfile(ROOT / name, self.program / name)
        (self.program / "karpstack" / "__main__.py").write_text(REHEARSAL)
        (self.program / ACTION.parent.relative_to(ROOT)).mkdir(parents=True)
        for path in (self.program / ".venv" / "bin" / "python", self.folder.parent / "bin" / "python"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#!/bin/sh\ncase "$3" in pip) exit;; esac\nexec {sys.executable} "$@"\n')
            path.chmod(0o755)
        sides = {side: {"repo": {"full_name": REPOSITORY}, "sha": "a" * 40} for side in ("head", "base")}
        event = {"pull_request": {"number": NUMBER, **sides}}
        (self.folder.parent / "event.json").write_text(json.dumps(event))
        self.git("init", "--initial-branch=main")


def act(repository: Repository, github: GitHubServer, **inputs: str) -> int:
    """The action, from its first script to its last; the exit code of the one that rehearses."""
    repository.step("stacks", {}, inputs).check_returncode()
    code = 0
    if repository.outputs["stacks"]["stacks"] != "[]":
        code = repository.step("rehearse", {}, inputs).returncode
        repository.step("summary", {}, inputs).check_returncode()
    posted = repository.step("comment", {"GITHUB_API_URL": github.url}, {"token": WRITES, **inputs})
    assert posted.returncode == 0, posted.stderr
    return code
