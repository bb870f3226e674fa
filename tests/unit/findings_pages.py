"""Write the pages of findings: one for each source, with a heading for each code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import yaml

from karpstack.components.problems import CATALOGUE
from karpstack.karpenter.findings import Catalogue
from karpstack.preflight.finding import CATALOGUE as CHECKS
from karpstack.scale_test.scenarios.problems import CATALOGUE as SCENARIOS
from karpstack.snapshot.problems import CATALOGUE as SNAPSHOTS
from karpstack.text.explanation import in_general, readable, with_subject
from tests.unit.example_stack import ROOT

FOLDER: Final = ROOT / "docs" / "reference" / "findings"
TABLES: Final = ROOT / "tests" / "unit" / "stacks"
_HEAD: Final = """\
# Findings {title}

<!-- Written by `make goldens` from {source}; do not edit. -->

{about} A code never changes. Words in braces are those of {of}.
"""
#: Keys of which the tables of the tests have only the end.
_OF_A_POOL: Final = {"requirements", "values", "key", "budgets", "kubelet", "terminationGracePeriod", "startupTaints"}


class Page(NamedTuple):
    """A page of findings.

    Attributes:
        catalogue: Its codes and texts.
        title: What follows "Findings" in its heading.
        about: Its first sentence.
        of: What the words in braces are about.
        entry: Returns the text below a code.
    """

    catalogue: Catalogue
    title: str
    about: str
    of: str
    entry: Callable[[str, Mapping[str, str]], str]

    def text(self) -> str:
        """Return the page."""
        source = self.catalogue.path.resolve().relative_to(ROOT)
        return "\n".join([_HEAD.format(source=source, **self._asdict()), *self._entries()])

    def _entries(self) -> Iterator[str]:
        for code, entry in self.catalogue.entries.items():
            yield f"## {code}\n\n{self.entry(code, entry)}"


def _of_settings(code: str, entry: Mapping[str, str]) -> str:
    kind = "Warning: " if entry.get("severity") == "warning" else ""
    said = with_subject(
        in_general(entry, "consequence"), f"`{key}`" if (key := named_key(code) or entry.get("general_key")) else ""
    )
    return f"> {kind}{said}\n\n{example(code)}{_fix(entry)}\n"


def _of_checks(_: str, entry: Mapping[str, str]) -> str:
    kind = {"warning": "Warning: ", "note": "Note: "}.get(entry.get("severity", "error"), "")
    fix = _fix(entry) or "Nothing needs to be done."
    key = f"Setting: `{entry['key']}`.\n\n" if "key" in entry else ""
    what, consequence = readable(entry["what"]), in_general(entry, "consequence")
    return f"> {kind}{what}\n\nWhat would happen: {consequence}.\n\n{key}{fix}\n"


def _of_files(_: str, entry: Mapping[str, str]) -> str:
    return "\n\n".join(filter(None, (f"> {in_general(entry, 'consequence')}", _fix(entry)))) + "\n"


def _fix(entry: Mapping[str, str]) -> str:
    fix = in_general(entry, "fix")
    return f"Fix: {fix}." if fix else ""


PAGES: Final = {
    "settings": Page(
        CATALOGUE,
        "in stack files",
        "What `pulumi preview` refuses or warns of in a stack file, by code.",
        "your stack",
        _of_settings,
    ),
    "preflight": Page(
        CHECKS,
        "of preflight",
        "What `karpstack preflight` and `karpstack preflight destroy` find in an account or a cluster, by code.",
        "your account",
        _of_checks,
    ),
    "scenarios": Page(
        SCENARIOS,
        "in scenario files",
        "Why a [scenario file](../scenarios.md) is refused, by code.",
        "the file",
        _of_files,
    ),
    "snapshots": Page(
        SNAPSHOTS,
        "in snapshots",
        "Why a [snapshot](../snapshot.md), or a file that it is made of, is refused, by code.",
        "the file",
        _of_files,
    ),
}


class Example(NamedTuple):
    """A stack file of the tests' tables that leads to a finding: its stack, its changes, and the key of the finding."""

    stack: str
    changes: Mapping[str, Any]
    key: str


@cache
def examples() -> dict[str, Example]:
    """Return the first example of each code."""
    found: dict[str, Example] = {}
    for table in ("refused.yaml", "warned.yaml"):
        for stack, changes, key, code, *_ in yaml.safe_load((TABLES / table).read_text(encoding="utf-8")):
            if isinstance(code, str):  # a row of several findings is no example of one
                found.setdefault(code, Example(stack, changes, key))
    return found


def named_key(code: str) -> str:
    """Return the key that the message of a finding names, in its example; empty without an example."""
    key = examples()[code].key if code in examples() else ""
    first = re.split(r"[.\[]", key, maxsplit=1)[0]
    if not key or first in _OF_A_POOL:
        return f"...{key}" if key else ""
    return key if ":" in first else f"karpstack:{key}"


def example(code: str) -> str:
    """Return a stack file's lines that lead to a finding; empty if no row does."""
    if code not in examples():
        return ""
    stack, changes, _ = examples()[code]
    keys = {path: "one more requirement" if path in ("+", "++") else path for path in changes}
    keys = {path: key if ":" in key or path in ("+", "++") else f"karpstack:{key}" for path, key in keys.items()}
    lines = "\n".join(f"    {keys[path]}: {json.dumps(value)}" for path, value in changes.items())
    return f"Example, in `Pulumi.{stack}.yaml` (`null`: not set):\n\n{lines}\n\n"
