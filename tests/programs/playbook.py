"""Playbooks as people run them: `ansible-playbook` in a folder of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def play(playbook: Path | str, folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run a playbook, one of ours by its name; return the exit code and what was printed."""
    settings = {
        **{"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "ansible")},
        **{"ANSIBLE_FORCE_COLOR": "0", "PWD": str(folder)},
    }
    result = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), str(ROOT / "playbooks" / playbook), *arguments],
        cwd=folder,
        env={**os.environ, **settings, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return result.returncode, result.stdout
