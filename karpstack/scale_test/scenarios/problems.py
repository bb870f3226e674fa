"""What is wrong with a scenario: findings, whose words are in `findings.yaml`, and what people read of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from karpstack.karpenter.findings import Catalogue, Finding
from karpstack.text import shown, validation
from karpstack.text.findings import FindingsError, line

CATALOGUE: Final = Catalogue(Path(__file__).with_name("findings.yaml"))
_UNTIL: Final = "the scenario cannot run until this is fixed"
#: Codes of what would not keep a scenario from being run by itself, or says so.
_BY_THEMSELVES: Final = ("key-unknown", "key-missing")


#: Return the error by which a validator refuses a value, of a code and its words.
refuse: Final = partial(validation.refuse, CATALOGUE)


class ScenarioError(FindingsError):
    """Scenarios that cannot be run; the text has one line for each thing to mend."""


class ContradictionError(ValueError):
    """What is wrong between several keys of a scenario."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(f"{one.key}: {one.consequence}" for one in findings))
        self.findings = findings


def finding(code: str, key: str, value: object, /, **words: object) -> Finding:
    """Return a finding about a key of a scenario file.

    Args:
        code: Of an entry of `findings.yaml`.
        key: The key, with dots between its parts.
        value: What is there.
        words: What stands in the braces of the entry.
    """
    return CATALOGUE.finding(code, words, key=key, value=shown.value(value))


def sentence(found: Finding) -> str:
    """A finding on one line: where, what, and how to mend it."""
    parts = found.key.split(".")
    step = f" (this is step {int(parts[1]) + 1})" if parts[0] == "steps" and parts[1:2] and parts[1].isdigit() else ""
    shown_value = found.value if found.code != "key-missing" else ""
    return line(replace(found, value=shown_value), _UNTIL if found.code not in _BY_THEMSELVES else "") + step


def message(findings: Iterable[Finding]) -> str:
    """What people read of a file's findings, a line each."""
    return shown.message([sentence(one) for one in findings])
