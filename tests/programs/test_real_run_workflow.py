"""The workflow of a real run: its inputs are texts that others write, and reach Ansible as such or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
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


@pytest.mark.parametrize(
    ("stack", "variables", "said"),
    [
        ("real-eks", {"PULUMI_SHA256": "right"}, ""),
        ("real-eks", {"PULUMI_SHA256": "0" * 64}, "checksum did NOT match"),
        ("real-eks", {"PULUMI_SHA256": ""}, "the variable PULUMI_SHA256 of the repository is no SHA-256"),
        ("real-aks", {"PULUMI_SHA256": "right", "KUBELOGIN_SHA256": ""}, "the variable KUBELOGIN_SHA256"),
    ],
)
def test_only_downloads_with_a_known_digest_run(
    stack: str, variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "pulumi").mkdir()
    (tmp_path / "pulumi" / "pulumi").write_text("#!/bin/sh")
    with tarfile.open(tmp_path / "upstream.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "pulumi", "pulumi")
    shutil.rmtree(tmp_path / "pulumi")
    right = hashlib.sha256((tmp_path / "upstream.tar.gz").read_bytes()).hexdigest()
    (tmp_path / "curl").write_text("#!/bin/sh\ncp upstream.tar.gz pulumi.tar.gz\n")
    (tmp_path / "curl").chmod(0o755)
    given = {name: right if value == "right" else value for name, value in variables.items()}
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path), "STACK": stack}
    environment |= {"GITHUB_PATH": str(tmp_path / "path"), "PULUMI_VERSION": "3.0.0", "KUBELOGIN_VERSION": "1.0.0"}
    done = bash(script("Install Pulumi and kubelogin"), tmp_path, **environment, **given)
    assert (done.returncode == 0, said in done.stderr) == (not said, True), done.stderr
    assert (tmp_path / "pulumi").exists() is (given["PULUMI_SHA256"] == right)


def test_metrics_come_from_the_port_of_our_own_forward(tmp_path: Path) -> None:
    """Port 18080 belonged to whoever took it first; now kubectl takes a free one and says which."""
    play = yaml.safe_load((ROOT / "playbooks" / "real_run.yml").read_text())[0]
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "*get*) echo pod-1_uid ;;\n"
        "*' :8080') echo 'Forwarding from 127.0.0.1:43210 -> 8080'; exec sleep 60 ;;\n"
        "*) exit 1 ;;\n"
        "esac\n"
    )
    kubectl.chmod(0o755)
    forward = play["vars"]["real_run_forward"].replace('"$@"', 'echo "${KARPSTACK_METRICS_URL-none}"')
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert bash(forward, tmp_path, PATH=path).stdout.split() == ["http://127.0.0.1:43210/metrics"]
    kubectl.write_text(kubectl.read_text().replace("exec sleep 60", "exit 1").replace("echo 'Forw", ": 'Forw"))
    assert bash(forward, tmp_path, PATH=path).stdout.split() == ["none"]


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
