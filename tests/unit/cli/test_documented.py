"""Every command line in the documentation fits the application: the command exists, and takes these words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.exceptions import Exit, TyperException

from karpstack.cli.assistance import CATALOGUES
from karpstack.karpenter.findings import Catalogue
from tests.unit.command_line import parsed

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("docs", "karpstack", "playbooks", "policies", "examples", "components", "tests")
#: A command at the beginning of a line of a code block, also inside of `$(...)`.
_IN_A_BLOCK = re.compile(r"^(?: {4,}|\t|)(?:\$ )?(?:[A-Z_]+=\S+ )*(?:eval \"\$\()?(?:\.venv/bin/)?karpstack (.+)$")
_IN_A_SENTENCE = re.compile(r"`karpstack ([^`\n]+)`")
#: A word that stands for others, or a value that the reader's input has.
_PLACEHOLDER = re.compile(r"\.\.\.|^\[|\]$|<[^>]+>|\{|\|")


def pages() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    return [path for path in (*found, *ROOT.glob("*.md")) if "decisions" not in path.parts and path.is_file()]


def commands(path: Path) -> Iterator[tuple[str, bool]]:
    """The command lines of a page, and whether each stands in a block of code, where it is whole."""
    fenced = False
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        found = _IN_A_BLOCK.match(line)
        if found and (fenced or line.startswith(("    ", "\t"))):
            yield found[1], True
        elif not fenced:
            yield from ((one, False) for one in _IN_A_SENTENCE.findall(line))


def words(line: str) -> list[str]:
    """The words of a command line; none where one of them stands for others."""
    plain = re.split(r"\s+#|\s*[;&>)]|\s\|\s", line)[0]
    try:
        found = shlex.split(plain)
    except ValueError:  # a quote around the command, whose beginning is not here
        found = shlex.split(plain.rstrip("\"'"))
    return [] if any(_PLACEHOLDER.search(word) for word in found) else found


LINES = sorted(
    {
        (path.relative_to(ROOT).as_posix(), line, whole)
        for path in pages()
        for line, whole in commands(path)
        if words(line)
    }
)
#: What is missing where a sentence only names a command or an option.
SHORT = ("Missing argument", "Missing option", "Usage:")


def test_the_documentation_has_commands() -> None:
    assert len([line for line in LINES if line[2]]) > 40


def test_an_explained_code_exists() -> None:
    known = {code for path in CATALOGUES.values() for code in Catalogue(path).entries}
    explained = {words(line)[1] for _, line, whole in LINES if whole and line.startswith("explain ")}
    assert explained
    assert explained <= known


@pytest.mark.parametrize(("page", "line", "whole"), LINES)
def test_a_documented_command_is_one(page: str, line: str, whole: bool) -> None:
    try:
        parsed(words(line))
    except Exit:
        pass  # --help, --version
    except TyperException as error:
        said = error.format_message()
        if whole or not (said.startswith(SHORT) or said.endswith("requires an argument.")):
            pytest.fail(f"{page}: karpstack {line}: {said}")
