"""The module `karpstack_action`, as Ansible runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "arguments", "check", "result"),
    [
        ("run.variables", {"names": ["x"], "known": ["y"]}, True, {"changed": False}),
        ("run.variables", {"names": ["stac"], "known": ["stack"]}, False, "did you mean stack?"),
        ("run.lock", {"path": "/proc/none/lock", "owner": 1}, True, {"skipped": True}),
        ("run.lock", {"path": "/proc/none/lock", "owner": 1}, False, "No such file"),
        ("run.lock", {"owner": "nobody"}, False, "run.lock: path: Missing required argument; owner: Input should be a"),
    ],
)
def test_an_action_is_called_with_its_arguments(
    name: str, arguments: object, check: bool, result: str | dict[str, bool]
) -> None:
    given = {"name": name, "arguments": arguments, "_ansible_check_mode": check}
    done = subprocess.run(
        [sys.executable, ROOT / "playbooks" / "library" / "karpstack_action.py"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    if isinstance(result, str):
        assert told["failed"]
        assert result in told["msg"]
    else:
        assert result.items() <= told.items()
