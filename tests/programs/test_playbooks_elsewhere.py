"""The playbooks find their modules and roles from whatever folder they are run, with any configuration of Ansible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
PLAYS = sorted(path.name for path in PLAYBOOKS.glob("*.yml") if "hosts:" in path.read_text())


@pytest.mark.parametrize("name", PLAYS)
def test_a_playbook_is_understood_in_another_folder(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    result = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "--syntax-check", str(PLAYBOOKS / name)],
        cwd=tmp_path,
        env=environment | {"ANSIBLE_HOME": str(tmp_path / "ansible"), "HOME": str(tmp_path), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
