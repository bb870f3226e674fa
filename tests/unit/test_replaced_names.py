"""Tests give their own collaborators as arguments; few of them replace a name in our modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
OURS = ("karpstack", "rules", "playbooks")
#: As `monkeypatch` and `unittest.mock` have them.
REPLACE = {"setattr", "delattr", "setitem", "delitem", "patch", "object", "dict"}


def replaced(file: Path) -> Iterator[str]:
    """Yield where a file replaces a name of a module, or of a class, of ours."""
    text = file.read_text(encoding="utf-8")
    if "patch" not in text:
        return
    tree = ast.parse(text)
    imported = {
        name.asname or name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPLACE:
            target: ast.AST | None = node.args[0] if node.args and "patch" in ast.unparse(node.func) else None
            while isinstance(target, ast.Attribute):
                target = target.value
            if isinstance(target, ast.Name):
                found = imported.get(target.id, "")
            else:
                found = str(target.value) if isinstance(target, ast.Constant) else ""
            if found.partition(".")[0] in OURS:
                yield f"{file.relative_to(TESTS)}:{node.lineno}: {found}"


def test_few_tests_replace_a_name_of_ours() -> None:
    found = [place for file in sorted(TESTS.rglob("*.py")) for place in replaced(file)]
    assert found, "the count itself works"
    assert len(found) < 60, "\n".join(found)
