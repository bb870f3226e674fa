"""The catalogue of findings: each code is used, each text gets its words; docs/reference/findings.md."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import yaml

from karpstack.components.problems import CATALOGUE, finding
from karpstack.components.settings.schema_checks import _shown
from karpstack.karpenter.findings import Catalogue
from karpstack.preflight.finding import CATALOGUE as CHECKS
from karpstack.scale_test.scenarios.problems import CATALOGUE as SCENARIOS
from karpstack.snapshot.problems import CATALOGUE as SNAPSHOTS
from tests.unit.example_stack import ROOT

SOURCES = sorted((ROOT / "components").rglob("*.py"))
PREFLIGHT = [*sorted((ROOT / "karpstack" / "preflight").rglob("*.py")), ROOT / "karpstack" / "real_run" / "left.py"]
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
PAGE = ROOT / "docs" / "reference" / "findings.md"
ABOUT_FILES = [
    ("scenario files", "scale_test/scenarios", SCENARIOS),
    ("snapshots and the files that they are made of", "snapshot", SNAPSHOTS),
]
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
    parts.append(
        "# Findings of preflight\n\nWhat `karpstack preflight` and `karpstack preflight destroy` find in an account or "
        "a cluster. Generated from `karpstack/preflight/findings.yaml`.\n"
    )
    for code, entry in CHECKS.entries.items():
        kind = {"warning": "Warning: ", "note": "Note: "}.get(entry.get("severity", "error"), "")
        fix = f"Fix: {entry['fix']}.\n" if "fix" in entry else "Nothing needs to be done.\n"
        key = f"Setting: `{entry['key']}`.\n\n" if "key" in entry else ""
        parts.append(
            f"## {code}\n\n> {kind}{entry['what']}\n\nWhat would happen: {entry['consequence']}.\n\n{key}{fix}"
        )
    for about, folder, catalogue in ABOUT_FILES:
        parts.append(f"# Findings about {about}\n\nGenerated from `karpstack/{folder}/findings.yaml`.\n")
        for code, entry in catalogue.entries.items():
            fix = f"\n\nFix: {entry['fix']}." if "fix" in entry else ""
            parts.append(f"## {code}\n\n> {entry['consequence']}{fix}\n")
    return "\n".join(parts)


def test_the_page_is_the_catalogues(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(("value", "said"), [({"a": "secret"}, "an object with a"), (None, "(not set)"), ("x", '"x"')])
def test_what_a_schema_refuses_is_shown_as_it_is_read(value: object, said: str) -> None:
    assert finding("max-pods-invalid", "key", _shown(value)).value == said
