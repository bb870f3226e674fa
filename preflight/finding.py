"""What a look finds, and how checks are run: every one of them, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from scale_test.text.shown import cut

#: error: it is in the way. warning: it may be, or it costs. note: worth knowing.
Severity = Literal["error", "warning", "note"]
Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        severity: Only errors are in the way.
        what: What is the case.
        consequence: What would happen.
        fix: What to do; empty where nothing needs to be done.
        told_by: The call that told it, `iam:GetRole` or `GET /api/v1/services`; empty where it was none.
    """

    severity: Severity
    what: str
    consequence: str
    fix: str
    told_by: str


@dataclass(frozen=True)
class Checked:
    """One check: its name, and what it found."""

    name: str
    findings: tuple[Finding, ...]


_LONGEST: Final = 1_000  # characters of what a cloud says of itself


class NotAskedError(Exception):
    """A question got no answer.

    Attributes:
        call: What was asked, as `Finding.told_by` says it.
        refused: Whether a right is missing; otherwise it failed in another way.
    """

    def __init__(self, call: str, reason: str, *, refused: bool) -> None:
        """`reason` is in the words of who was asked."""
        super().__init__(cut(reason, _LONGEST))
        self.call, self.refused = call, refused


class UnknowableError(Exception):
    """Nothing can be asked at all: no credentials, no cluster, no configuration. The text has the fix."""


def run(checks: Mapping[str, Callable[[Subject], Iterable[Finding]]], subject: Subject) -> list[Checked]:
    """Run all checks. One that gets no answer says so, beside what it had found before."""
    return [Checked(name, _findings(check, subject)) for name, check in checks.items()]


def in_the_way(checked: Iterable[Checked]) -> list[Finding]:
    """The errors."""
    return [finding for one in checked for finding in one.findings if finding.severity == "error"]


def _findings(check: Callable[[Subject], Iterable[Finding]], subject: Subject) -> tuple[Finding, ...]:
    found: list[Finding] = []
    try:
        for finding in check(subject):
            found.append(finding)  # one by one: what came before an error is kept
    except NotAskedError as error:
        found.append(
            Finding(
                "warning",
                f"could not be judged: {error}",
                "whatever this check looks for would go unnoticed",
                f"needs {error.call}" if error.refused else "see why the call fails, and look again",
                error.call,
            )
        )
    except Exception as error:
        # An answer may lack what it always had. That one must not hide the other checks, nor look like a finding.
        found.append(
            Finding(
                "warning",
                f"could not be judged: {type(error).__name__}: {error}",
                "whatever this check looks for would go unnoticed",
                "see whether what is asked answers as it should; if it does, this check has a defect: report it",
                "",
            )
        )
    return tuple(found)
