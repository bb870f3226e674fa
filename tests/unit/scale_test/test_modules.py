"""The playbooks' modules, as `ansible-doc` reads them: from their text, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
MODULES = sorted((PLAYBOOKS / "library").glob("karpstack_*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_tells_what_it_is(path: Path) -> None:
    told = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    documentation = yaml.safe_load(told["DOCUMENTATION"])
    assert documentation["module"] == path.stem
    assert documentation["short_description"]
    assert all("description" in option for option in documentation["options"].values())
    assert isinstance(yaml.safe_load(told["EXAMPLES"]), list)
    assert isinstance(yaml.safe_load(told["RETURN"]), dict | None)


def _actions(content: Any) -> Iterator[dict[str, Any]]:
    """Every task of `karpstack_action` in a playbook or a file of tasks."""
    if isinstance(content, list):
        for inner in content:
            yield from _actions(inner)
    if isinstance(content, dict):
        if action := content.get("karpstack_action"):
            yield action
        for inner in content.values():
            yield from _actions(inner)


@pytest.mark.parametrize("path", [p for p in sorted(PLAYBOOKS.rglob("*.yml")) if "karpstack_action" in p.read_text()])
def test_a_task_gives_an_action_the_arguments_that_it_takes(path: Path) -> None:
    for action in _actions(yaml.safe_load(path.read_text(encoding="utf-8"))):
        subject, _, name = action["name"].partition(".")
        module = import_module(f"playbooks.actions.{subject}")
        assert all(issubclass(error, Exception) for error in module.ERRORS)
        takes = signature(getattr(module, name)).parameters
        given = {"check", *action.get("arguments", {})}
        assert given <= {*takes, "check"}
        assert given >= {key for key, one in takes.items() if one.default is Parameter.empty}
