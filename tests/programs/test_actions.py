"""The collection's modules, run as Ansible runs them: their options, check mode, and a toolkit that is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_MODULES = "playbooks.plugins.modules"


def run(module: str, options: dict[str, Any], *, check: bool = False, before: str = "") -> dict[str, Any]:
    """Return what a module answers. `before` is Python that runs in its process first."""
    code = f"import runpy; {before}\nrunpy.run_module({f'{_MODULES}.{module}'!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check}}),
        env={"PYTHONPATH": str(ROOT), "KUBECONFIG": "/proc/none"},
        capture_output=True,
        text=True,
        check=False,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _given(*names: str) -> dict[str, Any]:
    return {"names": [*names], "words": [], "playbooks": []}


@pytest.mark.parametrize(
    ("name", "arguments", "check", "result"),
    [
        ("run.variables", {"known": ["y"], "given": _given("x"), "switches": {}}, True, {"changed": False}),
        ("run.variables", {"known": ["stack"], "given": _given("stac"), "switches": {}}, False, "did you mean stack?"),
        ("run.lock", {"path": "/proc/none/lock", "owner": 1}, True, {"skipped": True}),
        ("run.lock", {"path": "/proc/none/lock", "owner": 1}, False, "No such file"),
        ("run.lock", {"owner": "nobody"}, False, "run.lock: path: Missing required argument; owner: Input should be a"),
        ("run.lock", {"path": "x", "owner": 1, "ower": 1}, False, "run.lock: ower: Unexpected keyword argument"),
        ("run.look", {}, False, "value of name must be one of"),
        ("move.move", {}, False, "value of name must be one of"),  # it has a module of its own
    ],
)
def test_an_action_is_called_with_its_arguments(
    name: str, arguments: dict[str, Any], check: bool, result: str | dict[str, bool]
) -> None:
    answer = run("action", {"name": name, "arguments": arguments}, check=check)
    if isinstance(result, str):
        assert answer["failed"]
        assert result in answer["msg"]
    else:
        assert result.items() <= answer.items()


OPTIONS: dict[str, dict[str, Any]] = {
    "action": {"name": "run.variables", "arguments": {"known": [], "given": _given(), "switches": {}}},
    "compare": {"before": "/proc/none", "after": "/proc/none", "dest": "/proc/none/x.html", "rules": {}},
    "move": {"state": "undone", "groups": ["general"]},
    "preflight": {"stack": "eks", "project": "/proc/none"},
    "recorder": {"timeline": "/proc/none/timeline.jsonl", "state": "stopped"},
    "snapshot": {"out": "/proc/none/snapshot.json"},
}


def test_the_recorder_is_skipped_in_check_mode() -> None:
    answer = run("recorder", OPTIONS["recorder"], check=True)
    assert answer["skipped"]
    assert "does not support check mode" in answer["msg"]


@pytest.mark.parametrize("module", OPTIONS)
def test_an_unknown_option_is_refused(module: str) -> None:
    answer = run(module, {**OPTIONS[module], "colour": "red"})
    assert answer["failed"]
    assert "Unsupported parameters" in answer["msg"]
    assert "colour" in answer["msg"]


@pytest.mark.parametrize(
    ("module", "missing"), [*((module, "karpstack") for module in OPTIONS), ("move", "kubernetes")]
)
def test_a_missing_toolkit_is_said_with_the_command_that_installs_it(module: str, missing: str) -> None:
    answer = run(module, OPTIONS[module], before=f"import sys; sys.modules[{missing!r}] = None")
    assert answer["failed"]
    assert answer["msg"].startswith(f"{sys.executable} cannot import the toolkit karpstack (")
    assert answer["msg"].endswith(
        f"so this task cannot run; run: {sys.executable} -m pip install 'karpstack[scale-test]'"
    )


@pytest.mark.parametrize(
    ("module", "options", "says"),
    [
        ("compare", {"rules": {"colour": 1}}, "before = /proc/none: its report.json cannot be read"),
        ("move", {}, "there is no kubeconfig"),
        ("move", {"state": "drained"}, "state is drained but all of the following are missing: node"),
        ("preflight", {}, "Pulumi.eks.yaml"),
        ("recorder", {"state": "started"}, "started but all of the following are missing: stack, stack_outputs"),
        ("snapshot", {"exports": ["/proc/none"]}, "/proc/none: cannot be read"),
    ],
)
def test_what_a_module_cannot_do_is_said(module: str, options: dict[str, Any], says: str) -> None:
    answer = run(module, {**OPTIONS[module], **options})
    assert answer["failed"]
    assert says in answer["msg"]
