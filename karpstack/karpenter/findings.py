"""Findings: one shape for whatever is wrong, and the catalogues that hold their words.

A rule in code decides; the catalogue beside it, a YAML file, says by the finding's code what would happen and how to
mend it. The code never changes, so tests, documentation and users can name it. `karpstack.text.findings` renders them.
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
        code: Names the rule, for example `eks-pod-cidr-too-small`; it never changes.
        key: The setting or field, as `pulumi config set --path` takes it: `karpstack:network.podCidr`. Empty for none.
        value: What was found there, as JSON; `(not set)` or `(secret)` otherwise.
        consequence: What would happen; without `what`, what is wrong and what would happen.
        fix: What to do; empty where nothing needs to be done.
        severity: Only an error refuses something.
        what: What is wrong, in a sentence that names the thing; empty where key, value and consequence say it.
        subject: The thing that it is about: a resource, a NodePool, a check. Empty for the stack.
        file: The file in which the key stands; empty if there is none.
        line: The line in that file, from 1; 0 if it is unknown.
        link: Where this is documented.
        told_by: The call that told it, `iam:GetRole` or `GET /api/v1/services`; empty where it was none.
    """

    code: str
    key: str
    value: str
    consequence: str
    fix: str
    severity: Severity = "error"
    what: str = ""
    subject: str = ""
    file: str = ""
    line: int = 0
    link: str = ""
    told_by: str = ""

    @property
    def warning(self) -> bool:
        """Whether it refuses nothing."""
        return self.severity != "error"

    @property
    def place(self) -> str:
        """`Pulumi.eks.yaml:12`, as much of it as is known."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file

    @property
    def where(self) -> str:
        """`Pulumi.eks.yaml:12: karpstack:network.podCidr`, as much of it as is known."""
        return ": ".join(filter(None, (self.place, self.key)))

    @property
    def found(self) -> str:
        """What it is about, and what is wrong, on one line; the value where no words say what is wrong."""
        return ": ".join(filter(None, (self.subject, self.what or f"{self.key} = {self.value}")))

    @property
    def message(self) -> str:
        """Where it is, what it is about, and what is wrong, on one line."""
        return ": ".join(filter(None, (self.place, self.found)))

    def __str__(self) -> str:
        message, consequence, fix = map(readable, (self.message, self.consequence, self.fix))
        return "\n    ".join(filter(None, (message, consequence, fix and f"fix: {fix}")))


class Catalogue:
    """The words of findings, by their codes."""

    def __init__(self, path: Path) -> None:
        """`path` is a YAML file: code -> `consequence`, `fix`, and as needed `what`, `key`, `link` and `severity`.

        `general_consequence`, `general_fix` and `general_key` are for documents, which do not know the user's input.
        """
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
        found = self.finding(code, words)
        return found.consequence, found.fix, found.severity

    def finding(
        self,
        code: str,
        words: Mapping[str, object],
        *,
        key: str = "",
        value: str = "",
        severity: Severity | None = None,
        subject: str = "",
        told_by: str = "",
    ) -> Finding:
        """Return a finding with the words of its code.

        Args:
            code: Of an entry.
            words: What stands in the braces of its texts; a list is shown with commas.
            key: The setting or field, where it is not the entry's to say.
            value: What was found there.
            severity: Where it is not the entry's to say.
            subject: What it is about.
            told_by: The call that told it.
        """
        entry: Mapping[str, Any] = self.entries[code]
        said = {name: _said(word) for name, word in words.items()}
        what, consequence, fix = (entry.get(text, "").format(**said) for text in ("what", "consequence", "fix"))
        key = key or entry.get("key", "").format(**said)
        severity, link = severity or entry.get("severity", "error"), entry.get("link", "")
        return Finding(code, key, value, consequence, fix, severity, what, subject, link=link, told_by=told_by)


def readable(text: str) -> str:
    """Return a text in which each character is seen: those that a terminal obeys are escaped. Cut if it is long."""
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown)


def _said(word: object) -> object:
    # A network is an Iterable too, of all its addresses.
    if isinstance(word, (Sequence, Set)) and not isinstance(word, str):
        return ", ".join(map(str, word))
    return word
