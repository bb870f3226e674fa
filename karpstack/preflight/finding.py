"""What a look finds, and how checks are run: every one of them, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from karpstack.karpenter.findings import Catalogue, Finding, Severity
from karpstack.text.shown import cut, masked

__all__ = [
    "Checked",
    "Finding",
    "InputError",
    "NotAskedError",
    "Severity",
    "UnknowableError",
    "blockers",
    "finding",
    "run",
]
Subject = TypeVar("Subject")
#: The words of all findings of preflight.
CATALOGUE: Final = Catalogue(Path(__file__).with_name("findings.yaml"))


def finding(code: str, told_by: str, /, *, severity: Severity | None = None, **words: object) -> Finding:
    """Return a finding.

    Args:
        code: Of an entry of the catalogue.
        told_by: The call that told it, `iam:GetRole` or `GET /api/v1/services`; empty where it was none.
        severity: Where it is not the entry's to say.
        words: What the texts of the entry have in braces.
    """
    return CATALOGUE.finding(code, words, severity=severity, told_by=told_by)


@dataclass(frozen=True)
class Checked:
    """One check: its name, and what it found."""

    name: str
    findings: tuple[Finding, ...]


_LONGEST: Final = 1_000  # characters of what a cloud says of itself
_NOT_CHECKED: Final = {"check-not-permitted", "check-not-answered", "check-failed"}


class NotAskedError(Exception):
    """A question got no answer.

    Attributes:
        call: What was asked, as `Finding.told_by` says it.
        refused: Whether a right is missing; otherwise it failed in another way.
    """

    def __init__(self, call: str, reason: str, *, refused: bool) -> None:
        """`reason` is in the words of who was asked."""
        super().__init__(cut(masked(reason), _LONGEST))
        self.call, self.refused = call, refused


class UnknowableError(Exception):
    """Nothing can be asked at all: no credentials, no cluster, no configuration. The text has the fix."""


class InputError(UnknowableError):
    """A setting, an option or a file that was given cannot be used. The text has the fix."""


def run(checks: Mapping[str, Callable[[Subject], Iterable[Finding]]], subject: Subject) -> list[Checked]:
    """Run all checks. One that gets no answer says so, beside what it had found before."""
    return [Checked(name, _findings(check, subject)) for name, check in checks.items()]


def blockers(checked: Iterable[Checked]) -> list[Finding]:
    """Return the findings that are errors."""
    return [each for one in checked for each in one.findings if each.severity == "error"]


def not_checked(checked: Iterable[Checked]) -> list[Finding]:
    """The findings that say that a check got no answer."""
    return [each for one in checked for each in one.findings if each.code in _NOT_CHECKED]


def _findings(check: Callable[[Subject], Iterable[Finding]], subject: Subject) -> tuple[Finding, ...]:
    found: list[Finding] = []
    try:
        for one in check(subject):
            found.append(one)  # one by one: what came before an error is kept
    except NotAskedError as error:
        found.append(
            finding(
                "check-not-permitted" if error.refused else "check-not-answered",
                error.call,
                error=error,
                call=error.call,
            )
        )
    except Exception as error:
        # An answer may lack what it always had. That one must not hide the other checks, nor look like a finding.
        found.append(finding("check-failed", "", __name__=type(error).__name__, error=error))
    return tuple(found)
