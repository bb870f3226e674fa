"""The pages of the documentation: every page that the code names exists, and both Markdown dialects read them alike.

`make docs` checks links and headings. A code host and the site's Python-Markdown differ in lists and tables; these
tests allow only what both render in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.example_stack import ROOT

FOLDERS = ("components", "dashboards", "docs", "examples", "karpstack", "playbooks", "policies", "tests", ".github")
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".json", ".j2", ".go"}
#: `docs/how-to/facts.md`, but not the docs of another project: `karpenter.sh/docs/...`, `aws-ebs-csi-driver, docs/...`.
PAGE = re.compile(r"(?<![\w./-])docs/(?:how-to|reference|understanding|tutorials|help|contributing|decisions)/[\w./-]+")
OLD = re.compile(r"(?<![\w./-])docs/[\w-]+\.md")
OF_OTHERS = {
    "docs/install.md",
    "docs/CONFIGURATION.md",
    "docs/hosts.md",
    "docs/iam-policy.md",
    "docs/troubleshooting.md",
    "docs/a.md",
}
ITEM = re.compile(r"( *)(?:[-*]|\d+\.) ")


def texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.suffix in SUFFIXES and path.is_file())
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size < 400_000:
                yield path


def test_pages_that_are_named_exist() -> None:
    named = [(path, page) for path in texts() for page in PAGE.findall(path.read_text(encoding="utf-8"))]
    missing = [(path, page) for path, page in named if not (ROOT / page.rstrip(".")).exists()]
    assert not missing
    assert len(named) > 50


def test_no_page_has_its_old_name() -> None:
    found = {(path, page) for path in texts() for page in OLD.findall(path.read_text(encoding="utf-8"))}
    assert {(path, page) for path, page in found if page not in OF_OTHERS and not (ROOT / page).exists()} == set()


def pages() -> Iterator[Path]:
    yield from (ROOT / "docs").rglob("*.md")
    yield from (path for path in texts() if path.name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each line outside code with the line before it."""
    before, fenced, indented = "", False, False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= line.lstrip().startswith("```")
        if line.strip():
            indented = line.startswith("    ") and (indented or not (before.strip() or ITEM.match(line)))
        if not fenced and not indented:
            yield before, line
        before = line


def test_lists_and_tables_have_an_empty_line_before_them() -> None:
    for path in pages():
        for before, line in lines(path):
            if ITEM.match(line) and before.strip() and not before.startswith(" "):
                assert ITEM.match(before), (path, line)
            if line.startswith("|") and before.strip():
                assert before.startswith("|"), (path, line)


def test_lists_in_lists_are_indented_by_four() -> None:
    for path in pages():
        for before, line in lines(path):
            indent = len(line) - len(line.lstrip())
            if line.strip() and (ITEM.match(line) or not before.strip()):
                assert indent % 4 == 0, (path, line)


def test_no_page_loads_a_program_from_elsewhere() -> None:
    """The site's theme would fetch what draws such a picture."""
    for path in pages():
        assert "```mermaid" not in path.read_text(encoding="utf-8"), path
