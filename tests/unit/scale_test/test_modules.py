"""The collection: its modules agree with their actions and their tasks, and its version is the project's."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from playbooks.plugins.module_utils.documentation import argument_spec, has_check_mode

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = ROOT / "playbooks"
MODULES = sorted((PLAYBOOKS / "plugins" / "modules").glob("*.py"))
ACTION = "karpstack.scale_test.action"
# Imported here: some imports start a process, which a test of this tier may not.
SUBJECTS = {
    path.stem: import_module(f"playbooks.plugins.module_utils.actions.{path.stem}")
    for path in (PLAYBOOKS / "plugins" / "module_utils" / "actions").glob("[a-z]*.py")
}


def constants(path: Path) -> dict[str, str]:
    """The documents of a module, read from its text as `ansible-doc` reads them."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_is_documented_completely(path: Path) -> None:
    documents = constants(path)
    documentation, returned = yaml.safe_load(documents["DOCUMENTATION"]), yaml.safe_load(documents["RETURN"])
    assert documentation["module"] == path.stem
    assert documentation["short_description"]
    assert documentation["attributes"]["check_mode"]["support"] in ("full", "partial", "none")
    assert all({"description", "type"} <= set(one) for one in (documentation["options"] | returned).values())
    assert all("returned" in one for one in returned.values())
    for task in yaml.safe_load(documents["EXAMPLES"]):
        options = task[f"karpstack.scale_test.{path.stem}"]
        required = {name for name, option in documentation["options"].items() if option.get("required")}
        assert required <= set(options) <= set(documentation["options"])


@pytest.mark.parametrize("path", [path for path in MODULES if path.stem != "action"], ids=lambda path: path.stem)
def test_a_modules_options_are_the_arguments_of_its_action(path: Path) -> None:
    documents = constants(path)
    action = _function("recorder.record" if path.stem == "recorder" else f"{path.stem}.{path.stem}")
    takes = {key: one for key, one in signature(action).parameters.items() if key != "check"}
    options = argument_spec(documents["DOCUMENTATION"])
    assert set(options) == set(takes)
    given = {key for key, option in options.items() if option.get("required") or "default" in option}
    assert given == {key for key, one in takes.items() if one.default is Parameter.empty}
    assert has_check_mode(documents["DOCUMENTATION"]) == ("check" in signature(action).parameters)


def test_the_choices_of_the_module_action_are_the_actions_of_tasks() -> None:
    (path,) = (path for path in MODULES if path.stem == "action")
    documentation = yaml.safe_load(constants(path)["DOCUMENTATION"])
    choices = documentation["options"]["name"]["choices"]
    used = [one["name"] for path in TASKS for one in _actions(yaml.safe_load(path.read_text(encoding="utf-8")))]
    assert choices == sorted(set(used))
    named = documentation["attributes"]["check_mode"]["details"]
    assert [one for one in choices if f"V({one})" in named] == [
        one for one in choices if "check" in signature(_function(one)).parameters
    ]


def _function(name: str) -> Any:
    subject, _, function = name.partition(".")
    return getattr(SUBJECTS[subject], function)


def _actions(content: Any) -> Iterator[dict[str, Any]]:
    """Every task of the module `action` in a playbook or a file of tasks."""
    if isinstance(content, list):
        for inner in content:
            yield from _actions(inner)
    if isinstance(content, dict):
        if action := content.get(ACTION):
            yield action
        for inner in content.values():
            yield from _actions(inner)


TASKS = [path for path in sorted(PLAYBOOKS.rglob("*.yml")) if ACTION in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: str(path.relative_to(PLAYBOOKS)))
def test_a_task_gives_an_action_the_arguments_that_it_takes(path: Path) -> None:
    for action in _actions(yaml.safe_load(path.read_text(encoding="utf-8"))):
        function = _function(action["name"])
        assert all(issubclass(error, Exception) for error in SUBJECTS[action["name"].partition(".")[0]].ERRORS)
        takes = signature(function).parameters
        given = {"check", *action.get("arguments", {})}
        assert given <= {*takes, "check"}
        assert given >= {key for key, one in takes.items() if one.default is Parameter.empty}


def test_the_collection_has_the_version_of_the_project() -> None:
    collection = yaml.safe_load((PLAYBOOKS / "galaxy.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    assert (collection["namespace"], collection["version"]) == (project["name"], version)
    assert f"Alpha ({version})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"karpstack-scale_test-{version}.tar.gz" in (PLAYBOOKS / "README.md").read_text(encoding="utf-8")


def test_every_playbook_can_be_named() -> None:
    """For `ansible-playbook karpstack.scale_test.NAME`, playbooks/NAME.yml of the collection imports NAME.yml."""
    plays = {path.name for path in PLAYBOOKS.glob("*.yml") if "hosts:" in path.read_text(encoding="utf-8")}
    named = {path.name: yaml.safe_load(path.read_text()) for path in (PLAYBOOKS / "playbooks").iterdir()}
    assert {name: f"../{name}" for name in plays} == {
        name: task["ansible.builtin.import_playbook"] for name, (task,) in named.items()
    }
