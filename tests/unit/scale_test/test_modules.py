"""The playbooks' modules, as `ansible-doc` reads them: from their text, without running them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

MODULES = sorted((Path(__file__).resolve().parents[3] / "playbooks" / "library").glob("karpstack_*.py"))


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
