"""The workflow of a real run: its inputs are texts that others write, and reach Ansible as such or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = "{{ lookup('pipe', 'touch evaluated; echo 3') }}"
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")


def script(name: str) -> str:
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "real-run.yml").read_text())
    (found,) = [step["run"] for step in workflow["jobs"]["run"]["steps"] if step.get("name") == name]
    return str(found)


def bash(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("stack", "ceiling", "said"),
    [
        ("real-eks", "3", ""),
        ("real-aks", "2.50", ""),
        ("real-eks", TEMPLATE, "ceiling: write a number"),
        ("real-eks", "3 stack=x", "ceiling: write a number"),
        ("real-eks", "3\nx", "ceiling: write a number"),
        ("real-eks", "", "ceiling: write a number"),
        ("real-eks", "-1", "ceiling: write a number"),
        ("real-eks", "$(id)", "ceiling: write a number"),
        ("real-eks", "3}", "ceiling: write a number"),
        ("../../x", "3", "stacks: only real-eks and real-aks"),
        ("real-eks\nx", "3", "stacks: only real-eks and real-aks"),
    ],
)
def test_only_numbers_and_known_stacks_are_run(stack: str, ceiling: str, said: str, tmp_path: Path) -> None:
    done = bash(script("Check the inputs"), tmp_path, STACK=stack, CEILING=ceiling)
    assert (done.returncode == 0, said in done.stderr) == (not said, True)


def test_ansible_gets_no_variable_as_a_template() -> None:
    """What stands behind `-e name=` is one; JSON is data."""
    workflow = (ROOT / ".github" / "workflows" / "real-run.yml").read_text()
    assert "ansible-playbook" in workflow
    assert not re.search(r"-e [\"']?\w+=", workflow)


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq, which GitHub's runners have")
def test_an_input_reaches_ansible_as_data(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ansible-playbook").symlink_to(ANSIBLE)
    (tmp_path / "playbooks").mkdir()
    task = {"ansible.builtin.copy": {"content": "{{ stack }}: {{ ceiling_usd }}", "dest": f"{tmp_path}/given"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}
    (tmp_path / "playbooks" / "real_run.yml").write_text(yaml.safe_dump([play]))
    whole = script("Run, and remove what is left")
    start = whole[whole.index("variables=") :]
    done = bash(start[: start.index(" || passed=1")], tmp_path, STACK="real-eks", CEILING=TEMPLATE)
    assert (tmp_path / "given").read_text() == f"real-eks: {TEMPLATE}", done.stdout
    assert not (tmp_path / "evaluated").exists()


def test_the_playbook_takes_only_a_number(tmp_path: Path) -> None:
    command = [
        str(ANSIBLE),
        str(ROOT / "playbooks" / "real_run.yml"),
        "-e",
        '{"ceiling_usd": {"__ansible_unsafe": "3 --json"}}',
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode
    assert "ceiling_usd is not a number of USD" in done.stdout
    assert "Compute the cost" not in done.stdout
