"""What is wrong with a scenario: findings, whose words are in `findings.yaml`, and what people read of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic_core import ErrorDetails, PydanticCustomError

from karpstack.karpenter.findings import Catalogue, Finding
from karpstack.text import shown

CATALOGUE: Final = Catalogue(Path(__file__).with_name("findings.yaml"))
_REFUSED: Final = "refused"
_UNTIL: Final = "the scenario cannot run until this is fixed"
#: Codes of what would not keep a scenario from being run by itself, or says so.
_BY_THEMSELVES: Final = ("key-unknown", "key-missing")


class ScenarioError(ValueError):
    """Scenarios that cannot be run; the text has one line for each thing to mend.

    Attributes:
        findings: What is wrong, where it is about keys of one file.
    """

    def __init__(self, text: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(text)
        self.findings = tuple(findings)


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


def refuse(code: str, /, **words: object) -> PydanticCustomError:
    """Return the error by which a validator refuses a value."""
    consequence, fix, _ = CATALOGUE.words(code, words)
    return PydanticCustomError(
        _REFUSED, "{text}", {"text": shown.visible(f"{consequence}; {fix}"), "code": code, "words": words}
    )


def refused(details: ErrorDetails) -> tuple[str, dict[str, object]] | None:
    """Return code and words of what `refuse` refused; None for another error of pydantic's."""
    context = details.get("ctx", {})
    return (context["code"], context["words"]) if details["type"] == _REFUSED else None


def readable_message(details: ErrorDetails) -> str:
    """What pydantic says of an error, or who raised it."""
    said = details["msg"]
    return said.removeprefix("Value error, ") if details["type"] == "value_error" else f"{said[0].lower()}{said[1:]}"


def sentence(found: Finding) -> str:
    """A finding on one line: where, what, and how to mend it."""
    parts = found.key.split(".")
    step = f" (this is step {int(parts[1]) + 1})" if parts[0] == "steps" and parts[1:2] and parts[1].isdigit() else ""
    value = f"{found.value}: " if found.code != "key-missing" else ""
    why = "; ".join(
        part for part in (found.consequence, found.fix, _UNTIL if found.code not in _BY_THEMSELVES else "") if part
    )
    return f"{found.where}: {value}{why}{step}"


def message(findings: Iterable[Finding]) -> str:
    """What people read of a file's findings, a line each."""
    return shown.message([sentence(one) for one in findings])
