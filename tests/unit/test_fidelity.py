"""docs/understanding/fidelity.md: a comment in each row names a test, a table or a golden that exists."""

from __future__ import annotations

import re

import pytest

from tests.unit.example_stack import ROOT

TABLES = (ROOT / "docs" / "understanding" / "fidelity.md").read_text(encoding="utf-8").partition("## A change")[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLES.splitlines()
    if line.startswith("| ") and not line.startswith(("| --- ", "| in a real "))
]
PATHS = [path for part in ("tests", "policies") for path in (ROOT / part).rglob("*.*") if path.suffix != ".pyc"]
FILES = {path.name for path in PATHS}
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in PATHS if path.suffix == ".py")


def exists(name: str) -> bool:
    """Whether there is such a file, test or policy."""
    if "/" in name or "." in name:
        return (ROOT / name).is_file() or name in FILES
    return f"def {name}(" in SOURCES or f'"{name}"' in SOURCES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_names_what_refuses_and_a_test_that_exists(row: list[str]) -> None:
    _, program, rehearsal = row
    assert program
    named = re.findall(r"[^ ,]+", rehearsal.removesuffix(" -->").partition(" <!-- ")[2])
    assert named
    assert [name for name in named if not exists(name)] == []
