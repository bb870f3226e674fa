"""The workflow of a real run: what its inputs may be, and how Ansible gets them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "real-run.yml"


@pytest.mark.parametrize(
    ("ceiling", "code"),
    [
        *(("3", 0), ("2.50", 0)),
        *(
            ("{{ lookup('pipe', 'id') }}", 2),
            ("3 stack=x", 2),
            ("3\nx", 2),
            ("", 2),
            ("$(id)", 2),
            ("-1", 2),
            ("3}", 2),
        ),
    ],
)
def test_a_ceiling_is_a_number(ceiling: str, code: int) -> None:
    job: Any = yaml.safe_load(WORKFLOW.read_text())["jobs"]["run"]
    first = job["steps"][0]
    environment = {**os.environ, "STACK": "real-eks", "CEILING": ceiling}
    assert subprocess.run([first["shell"], "-ec", first["run"]], env=environment, check=False).returncode == code


def test_ansible_gets_no_variable_as_a_template() -> None:
    """What stands behind `-e name=` is one; JSON is data."""
    assert "ansible-playbook" in WORKFLOW.read_text()
    assert not re.search(r"-e [\"']?\w+=", WORKFLOW.read_text())
