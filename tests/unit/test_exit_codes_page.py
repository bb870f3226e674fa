"""docs/reference/exit-codes.md has the codes of all commands; what they mean for some commands is written by hand."""

from __future__ import annotations

import pytest

from karpstack.text.codes import Code
from tests.unit.example_stack import ROOT

PAGE = ROOT / "docs" / "reference" / "exit-codes.md"
HEAD = """\
# Exit codes

<!-- Written by `make goldens` from karpstack/text/codes.py: the first table. -->

Exit codes of `karpstack`, the same for every command:

| code | meaning |
| --- | --- |
"""


REST = "\n## What 1 and 3 mean, by command\n"


def test_the_page_has_each_code(request: pytest.FixtureRequest) -> None:
    written = HEAD + "".join(f"| {code.value} | {code.meaning} |\n" for code in Code)
    rest = REST + PAGE.read_text(encoding="utf-8").partition(REST)[2]
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written + rest, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written + rest
