"""Words of the project's old dialect do not come back: language.yaml has them, with the better word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.unit.example_stack import ROOT

WORDS = yaml.safe_load(Path(__file__).with_name("language.yaml").read_text(encoding="utf-8"))
#: The folder whose docstrings are the help of commands.
COMMANDS = "karpstack/cli/"
DOCUMENTS = ("docs", "karpstack", "playbooks", "policies", "examples")
CATALOGUES = ("findings.yaml", "rules.yaml", "grants.yaml")
PYTHON = ("components", "karpstack", "playbooks", "policies")
#: Arguments whose value a user reads.
HELP = {"help", "description", "epilog"}


class Line(NamedTuple):
    """A line that people read."""

    path: str
    number: int
    text: str


def documents() -> Iterator[Line]:
    """The lines of documents and catalogues."""
    paths = [path for path in ROOT.glob("*.md") if path.is_file()]
    for folder in DOCUMENTS:
        paths += (ROOT / folder).rglob("*.md")
    for folder in PYTHON:
        paths += (path for name in CATALOGUES for path in (ROOT / folder).rglob(name))
    for path in paths:
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield Line(path.relative_to(ROOT).as_posix(), number, text)


def python() -> Iterator[tuple[bool, Line]]:
    """The lines of docstrings, and, with True, of help texts and descriptions of settings."""
    for folder in PYTHON:
        for path in (ROOT / folder).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    if ast.get_docstring(node) and isinstance(first := node.body[0], ast.Expr):
                        text = ast.get_docstring(node, clean=False) or ""
                        yield from (
                            (name.startswith(COMMANDS), Line(name, first.lineno + n, one))
                            for n, one in enumerate(text.split("\n"))
                        )
                elif isinstance(node, ast.keyword) and node.arg in HELP:
                    parts = [one for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
                    yield from ((True, Line(name, one.lineno, str(one.value))) for one in parts)


def found(lines: list[Line], words: list[list[str]]) -> list[str]:
    """Return what is wrong: the file, the line, the word and the better one."""
    better = [(re.compile(rf"\b(?:{word})\b", re.IGNORECASE), instead) for word, instead in words]
    any_word = re.compile("|".join(pattern.pattern for pattern, _ in better), re.IGNORECASE)
    return [
        f'{line.path}:{line.number}: "{match[0]}": write {instead}'
        for line in lines
        if any_word.search(line.text)
        for pattern, instead in better
        if (match := pattern.search(line.text))
    ]


@pytest.fixture(scope="module")
def read() -> list[tuple[bool, Line]]:
    """Every line, and whether it is a document's."""
    return [*((True, line) for line in documents()), *python()]


def test_no_word_of_the_list_is_anywhere(read: list[tuple[bool, Line]]) -> None:
    assert found([line for _, line in read], WORDS["everywhere"]) == []


def test_no_word_of_the_list_is_in_documents_and_help(read: list[tuple[bool, Line]]) -> None:
    assert found([line for is_document, line in read if is_document], WORDS["documents"]) == []


def test_a_word_is_named_with_its_file_and_the_better_word() -> None:
    assert found([Line("a.md", 3, "Write it anew.")], [["anew", "again"]]) == ['a.md:3: "anew": write again']
