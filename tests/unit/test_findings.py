"""The catalogue of findings: each code is used, each text gets its words, and docs/findings.md shows an example."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from string import Formatter
from typing import Any

import pytest
import yaml

from components.problems import CATALOGUE, finding
from components.settings.schema_checks import _shown
from tests.unit.example_stack import ROOT

SOURCES = sorted((ROOT / "components").rglob("*.py"))
#: Functions that make a finding, and where their code stands among the arguments.
MAKERS = {"finding": 0, "replacing": 0, "refuse": 0, "UserDataError": 0, "_of_requirements": 0, "_of": 1}
#: What these functions add themselves.
ADDED = {"replacing": {"was"}}
PAGE = ROOT / "docs" / "findings.md"
TABLES = ROOT / "tests" / "unit" / "stacks"


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Each call that makes a finding of a code that it names: the function, the call, the code."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                code = node.args[MAKERS[node.func.id] :][:1]
                if code and isinstance(code[0], ast.Constant):
                    yield node.func.id, node, str(code[0].value)


def test_each_text_gets_its_words() -> None:
    seen = 0
    for name, call, code in calls():
        given = {keyword.arg for keyword in call.keywords}
        if None in given:
            continue
        entry = CATALOGUE.entries[code]
        wanted = {field for text in (entry["consequence"], entry["fix"]) for _, field, _, _ in Formatter().parse(text)}
        assert wanted - {None} == given - {"warning"} | (ADDED.get(name, set()) & wanted), (code, wanted, given)
        seen += 1
    assert seen > 200


def test_each_code_is_used() -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert [code for code in CATALOGUE.entries if f'"{code}"' not in texts] == []


@cache
def examples() -> dict[str, tuple[str, dict[str, Any]]]:
    """For each code the first row of the tables of stack files that leads to it: the stack, and what is changed."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for table in ("refused.yaml", "warned.yaml"):
        for stack, changes, _, code, *_ in yaml.safe_load((TABLES / table).read_text(encoding="utf-8")):
            if isinstance(code, str):  # a row of several findings is no example of one
                found.setdefault(code, (stack, changes))
    return found


def example(code: str) -> str:
    """A stack file's lines that lead to a finding; empty if no row does."""
    if code not in examples():
        return ""
    stack, changes = examples()[code]
    keys = {path: "one more requirement" if path in ("+", "++") else path for path in changes}
    keys = {path: key if ":" in key or path in ("+", "++") else f"karpstack:{key}" for path, key in keys.items()}
    lines = "\n".join(f"    {keys[path]}: {json.dumps(value)}" for path, value in changes.items())
    return f"Example, in `Pulumi.{stack}.yaml` (`null`: not set):\n\n{lines}\n\n"


def page() -> str:
    """The page of all findings."""
    parts = [
        "# Findings\n\nWhat `pulumi preview` refuses or warns of in a stack file, by code. A code never changes. In "
        "braces stands what the program knows of your stack. Generated from `components/findings.yaml` and the tests' "
        "stack files by `make goldens`.\n"
    ]
    for code, entry in CATALOGUE.entries.items():
        kind = "Warning: " if entry.get("severity") == "warning" else ""
        said = " ".join(entry["consequence"].split())
        parts.append(f"## {code}\n\n> {kind}{said}\n\n{example(code)}Fix: {' '.join(entry['fix'].split())}.\n")
    return "\n".join(parts)


def test_the_page_is_the_catalogues(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(("value", "said"), [({"a": "secret"}, "an object with a"), (None, "(not set)"), ("x", '"x"')])
def test_what_a_schema_refuses_is_shown_as_it_is_read(value: object, said: str) -> None:
    assert finding("max-pods-invalid", "key", _shown(value)).value == said
