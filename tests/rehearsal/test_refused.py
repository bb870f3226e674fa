"""Stacks that cannot work, by the real engine: `up` stops before anything is made, and says why (refused.yaml).

That an example comes up where nothing is wrong, with its stories, is for `make soak` with its CONFIG_FILE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack

CASES = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


def change(content: Any, changes: Mapping[str, Any]) -> Any:
    for path, value in changes.items():
        *parents, last = (int(key) if key.lstrip("-").isdigit() else key for key in str(path).split("."))
        place = content
        for key in parents:
            place = place[key]
        if last == "+":
            place.append(value)
        elif value is None:
            place.pop(last)
        else:
            place[last] = value
    return content


def written(folder: Path, case: Mapping[str, Any]) -> RehearsedStack:
    """The example with what is changed in the case."""
    example, stack = case["example"].split("/")
    for file in (ROOT / "examples" / example).glob(f"Pulumi.{stack}.*"):
        (folder / file.name).write_text(file.read_text())
    configuration = folder / f"Pulumi.{stack}.yaml"
    if "config" in case:
        content = yaml.safe_load(configuration.read_text())
        change(content["config"], case["config"])
        configuration.write_text(yaml.safe_dump(content))
    for kind in case.keys() & {"network", "cluster"}:
        file = folder / f"Pulumi.{stack}.{kind}.json"
        file.write_text(json.dumps(change(json.loads(file.read_text()), case[kind])))
    return RehearsedStack(StackFolder(stack, folder / "state" / stack), configuration)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['example'].split('/')[1]}: {case['said'][-1]}")
def test_what_is_wrong_is_told_before_anything_is_made(tmp_path: Path, case: Mapping[str, Any]) -> None:
    stack = written(tmp_path, case)
    result = stack.command("up")
    assert result.returncode != 0
    for words in case["said"]:
        assert words in result.stdout
    assert "Traceback" not in result.stdout
    if ".json: " in case["said"][0]:
        # Pulumi has not begun: it would only have said that nobody listens.
        assert "Updating" not in result.stdout
    elif "nothing was created" in case["said"][0]:
        assert not stack.made()
