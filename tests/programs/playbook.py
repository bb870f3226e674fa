"""Playbooks as people run them: `ansible-playbook` in a folder of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def play(playbook: Path | str, folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run a playbook, one of ours by its name; return the exit code and what was printed."""
    process = begin(playbook, folder, *arguments, **variables)
    output, _ = process.communicate()
    return process.returncode, output


def begin(playbook: Path | str, folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Run a playbook and do not wait for its end."""
    settings = {
        **{"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "ansible")},
        # Of where a program like `make -C` was called.
        **{"ANSIBLE_FORCE_COLOR": "0", "PWD": "/"},
    }
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("ansible-playbook")), str(ROOT / "playbooks" / playbook), *arguments],
        cwd=folder,
        env={**os.environ, **settings, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
