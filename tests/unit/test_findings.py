"""The catalogue of findings: each code is used, each text gets its words; the pages in docs/reference/findings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter

import pytest

from karpstack.components.problems import CATALOGUE, finding
from karpstack.components.settings.schema_checks import _shown
from karpstack.karpenter.findings import Catalogue
from karpstack.preflight.finding import CATALOGUE as CHECKS
from karpstack.scale_test.scenarios.problems import CATALOGUE as SCENARIOS
from karpstack.snapshot.problems import CATALOGUE as SNAPSHOTS
from karpstack.text.explanation import readable
from tests.unit import findings_pages
from tests.unit.example_stack import ROOT

SOURCES = sorted((ROOT / "components").rglob("*.py"))
PREFLIGHT = [
    *sorted((ROOT / "karpstack" / "preflight").rglob("*.py")),
    ROOT / "karpstack" / "real_run" / "leftovers.py",
]
SCENARIO_FILES = sorted((ROOT / "karpstack" / "scale_test" / "scenarios").glob("*.py"))
SNAPSHOT_FILES = sorted((ROOT / "karpstack" / "snapshot").glob("*.py"))
#: Catalogue, the modules that use it, and how many of its codes stand in calls with their words, at least.
USED = [(CHECKS, PREFLIGHT, 100), (SCENARIOS, SCENARIO_FILES, 60), (SNAPSHOTS, SNAPSHOT_FILES, 28)]
#: Functions that make a finding, where their code stands, and the words that they add themselves.
HOLDERS = {"finding": 0, "refuse": 0, "_holds": 2}
HELD = {"_holds": {"pool", "waits"}}
#: Arguments of these functions that are no words of a text.
OF_FINDINGS = {"severity", "file", "key", "value"}
#: Functions that make a finding, and where their code stands among the arguments.
MAKERS = {"finding": 0, "replacing": 0, "refuse": 0, "UserDataError": 0, "_of_requirements": 0, "say": 0}
#: What these functions add themselves; of a judge that says it, what it knows of its stack.
ADDED = {
    "replacing": {"was"},
    "say": {
        *("cluster", "region", "vpc_id", "namespace", "ranges", "discovery_tag"),
        *("resource_group", "state", "location", "node_group"),
    },
}


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
        assert wanted - {None} <= given | ADDED.get(name, set()), (code, wanted, given)
        assert name == "say" or given <= wanted | {"warning"}, (code, wanted, given)
        seen += 1
    assert seen > 200


@pytest.mark.parametrize(("catalogue", "sources", "least"), USED)
def test_each_text_gets_its_words_and_no_others(catalogue: Catalogue, sources: list[Path], least: int) -> None:
    """A call may choose between codes, whose words it gives together."""
    seen: dict[str, str] = {}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in HOLDERS:
                continue
            choice = node.args[HOLDERS[node.func.id] :][:1]
            codes = {str(part.value) for one in choice for part in ast.walk(one) if isinstance(part, ast.Constant)}
            codes &= set(catalogue.entries)
            given = {word.arg for word in node.keywords} - OF_FINDINGS
            if None in given or not codes:
                continue
            used = {code: wanted(catalogue.entries[code]) - OF_FINDINGS for code in codes}
            assert set().union(*used.values()) == given | HELD.get(node.func.id, set()), (path, used, given)
            seen |= dict.fromkeys(used, path.name)
    assert len(seen) >= least


def wanted(entry: Mapping[str, str]) -> set[str]:
    """What stands in braces in the texts of an entry."""
    texts = [entry.get(text, "") for text in ("what", "consequence", "fix", "key")]
    return {field for text in texts for _, field, _, _ in Formatter().parse(text) if field}


@pytest.mark.parametrize(("catalogue", "sources", "_"), [(CATALOGUE, SOURCES, 0), *USED])
def test_each_code_is_used(catalogue: Catalogue, sources: list[Path], _: int) -> None:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    by_cloud = {code for code in catalogue.entries if f'"{code.rpartition("-")[0]}-{{subject.cloud}}"' in texts}
    assert [code for code in catalogue.entries if f'"{code}"' not in texts and code not in by_cloud] == []


def test_no_code_is_in_two_catalogues() -> None:
    codes = [code for catalogue in (CATALOGUE, CHECKS, SCENARIOS, SNAPSHOTS) for code in catalogue.entries]
    assert [code for code, number in Counter(codes).items() if number > 1] == []


@pytest.mark.parametrize("name", findings_pages.PAGES)
def test_a_page_shows_no_format_of_python_and_no_empty_fix(name: str) -> None:
    text = findings_pages.PAGES[name].text()
    assert not re.search(r"^(?:>|Fix|What).*\{\w+[!:][^ ]", text, re.MULTILINE)
    assert "Fix: ." not in text
    assert not re.search(r"^(?:> |Fix: |What would happen: )'?\{\w+\}'?\.?$", text, re.MULTILINE)


def test_braces_of_a_value_are_no_format() -> None:
    assert readable("set [{{alias: al2023}}] of {used:g}") == "set [{alias: al2023}] of {used}"


@pytest.mark.parametrize("name", findings_pages.PAGES)
def test_the_page_is_the_catalogues(name: str, request: pytest.FixtureRequest) -> None:
    path, text = findings_pages.FOLDER / f"{name}.md", findings_pages.PAGES[name].text()
    if request.config.getoption("--update-goldens"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("value", "said"), [({"a": "secret"}, "an object with a"), (None, "(not set)"), ("x", '"x"')])
def test_what_a_schema_refuses_is_shown_as_it_is_read(value: object, said: str) -> None:
    assert finding("max-pods-invalid", "key", _shown(value)).value == said
