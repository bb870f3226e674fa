"""docs/reference/environment.md lists every variable of the code, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from karpstack.rehearsal.session.speed import DEFAULT
from karpstack.rehearsal.timing import Timing
from tests.unit.example_stack import ROOT

PAGE = ROOT / "docs" / "reference" / "environment.md"
NAME = re.compile(r"\b(?:KARPSTACK|REHEARSAL)_[A-Z]+(?:_[A-Z]+)*\b")
ROW = re.compile(r"^\| `([A-Z_]+)` \|(?:.*\| ([\d.]+)?.* \|$)?", re.MULTILINE)


def sources() -> Iterator[Path]:
    for folder in ("components", "karpstack", "playbooks", "policies"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".go", ".yml", ".yaml", "") and path.stat().st_size < 400_000:
                yield path
    yield ROOT / "Makefile"
    yield ROOT / "tests" / "cloud" / "test_stories.py"


def test_the_page_has_each_variable_of_the_code() -> None:
    used = {name for path in sources() for name in NAME.findall(path.read_text(encoding="utf-8"))}
    used |= {f"REHEARSAL_{field.name.upper()}" for field in fields(Timing)}
    assert {name for name, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))} == used


def test_the_page_has_the_defaults_of_the_settings_of_a_rehearsal() -> None:
    said = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
    for field in fields(Timing):
        assert float(said[f"REHEARSAL_{field.name.upper()}"]) == field.default
    assert float(said["REHEARSAL_SPEED"]) == DEFAULT
