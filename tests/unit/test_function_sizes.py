"""No function is longer than a screen: ruff holds complexity and statements, this test holds lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("components", "karpstack", "playbooks", "policies", "tests")
#: Lines of a function without its docstring.
MOST = 60
#: Arguments of a command read best in one list.
PARSERS = "lists the arguments of a command"
EXCEPTIONS = {
    ("karpstack/cli/whatif.py", "_stack"): PARSERS,
    ("karpstack/pull_request/__main__.py", "parser"): PARSERS,
}


def functions() -> Iterator[tuple[str, str, int]]:
    """File, name and lines of each function."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                described = ast.get_docstring(node) is not None
                documented = (first.end_lineno or 0) - first.lineno + 1 if described else 0
                yield str(path.relative_to(ROOT)), node.name, (node.end_lineno or 0) - node.lineno + 1 - documented


def test_functions_are_short() -> None:
    long = [(file, name, lines) for file, name, lines in functions() if lines > MOST]
    assert [one for one in long if one[:2] not in EXCEPTIONS] == [], f"split what has more than {MOST} lines"


def test_exceptions_are_few() -> None:
    assert len(EXCEPTIONS) <= 3
