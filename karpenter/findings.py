"""Findings: one shape for whatever is wrong, and the catalogues that hold their words.

A rule in code decides; the catalogue beside it, a YAML file, says by the finding's code what would happen and how to
mend it. The code never changes, so tests, documentation and users can name it. Nothing is rendered here but text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import yaml

#: error: refused. warning: it may be meant, or it costs something. note: worth knowing.
Severity = Literal["error", "warning", "note"]
_LONGEST: Final = 1_000  # characters of one text
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or may be.

    Attributes:
        code: Names the rule, for example `pod-cidr-too-small`; it never changes.
        key: What it is about: a setting as `pulumi config set --path` takes it, `karpstack:network.podCidr`.
        value: What was found there, as JSON; `(not set)` or `(secret)` otherwise.
        consequence: What is wrong, and what would happen.
        fix: What to do.
        severity: Only an error refuses something.
    """

    code: str
    key: str
    value: str
    consequence: str
    fix: str
    severity: Severity = "error"

    @property
    def warning(self) -> bool:
        """Whether it refuses nothing."""
        return self.severity != "error"

    def __str__(self) -> str:
        key, value, consequence, fix = map(readable, (self.key, self.value, self.consequence, self.fix))
        return f"{key} = {value}\n    {consequence}\n    fix: {fix}"


class Catalogue:
    """The words of findings, by their codes."""

    def __init__(self, path: Path) -> None:
        """`path` is a YAML file: code -> `consequence`, `fix` and, if it is no error, `severity`."""
        self.path = path

    @cached_property
    def entries(self) -> Mapping[str, Mapping[str, str]]:
        """The entries of the file; read when the first finding is made, for a right configuration needs none."""
        entries: dict[str, dict[str, str]] = yaml.load(self.path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506
        return entries

    def words(self, code: str, words: Mapping[str, object]) -> tuple[str, str, Severity]:
        """Return consequence, fix and severity of a code.

        Args:
            code: Of an entry.
            words: What stands in the braces of its texts; a list is shown with commas.
        """
        entry: Mapping[str, Any] = self.entries[code]
        said = {name: _said(word) for name, word in words.items()}
        return entry["consequence"].format(**said), entry["fix"].format(**said), entry.get("severity", "error")


def readable(text: str) -> str:
    """Return a text in which each character is seen: those that a terminal obeys are escaped. Cut if it is long."""
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown)


def _said(word: object) -> object:
    # A network is an Iterable too, of all its addresses.
    if isinstance(word, (Sequence, Set)) and not isinstance(word, str):
        return ", ".join(map(str, word))
    return word
