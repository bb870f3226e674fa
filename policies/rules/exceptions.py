"""Exceptions: findings that are accepted for a while, each with its reason and its last day.

They stand in one place of the pack's configuration, as the setting `granted` of the policy `exceptions`. A policy
is told its own settings only, so what that one reads is kept here, for the life of the pack's process, which is
one run of the engine. It is the first of the pack: it has read them before another rule judges anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Final

from .values import readable

_EXCUSED: Final = ". Excused: "
_UNUSED: Final = ". It excused nothing in this run; remove it if that stays so."


@dataclass(frozen=True)
class Granted:
    """One exception.

    Attributes:
        rule: Name of the rule that is not applied.
        resource: Pattern (`*`, `?`) of the names or URNs of the resources that it is not applied to.
        reason: Why.
        until: Its last day.
    """

    rule: str
    resource: str
    reason: str
    until: date

    def covers(self, rule: str, urn: str) -> bool:
        """Whether it is about this rule and this resource."""
        return rule == self.rule and any(fnmatchcase(name, self.resource) for name in (urn, urn.rsplit("::", 1)[-1]))

    def __str__(self) -> str:
        return f"{self.rule} is not applied to {self.resource} until {self.until}: {self.reason}"

    def report_text(self, finding: str | None) -> str:
        """What is reported of it: with a finding that it excused, or that there was none."""
        return f"{self}{_UNUSED if finding is None else _EXCUSED + finding}"

    def finding_in(self, report: str) -> str | None:
        """The finding in what was reported of it, empty where there was none; None in a report of another exception."""
        if report == readable(self.report_text(None)):
            return ""
        excused = readable(self.report_text(""))
        return report.removeprefix(excused) if report.startswith(excused) else None


@dataclass
class Exceptions:
    """The exceptions of this run, and what each of them has excused."""

    granted: tuple[Granted, ...] = ()
    excused: dict[Granted, set[tuple[str, str]]] = field(default_factory=dict)

    def read(self, entries: Sequence[Mapping[str, Any]], rules: Sequence[str]) -> None:
        """Take over the configured exceptions.

        Raises:
            ValueError: One of them names no rule of the pack, or no day.
        """
        granted = tuple(_granted(entry, rules) for entry in entries)
        if granted != self.granted:
            self.granted = granted
            self.excused = {}

    def expired(self, today: date) -> list[Granted]:
        """Those whose last day is over; they excuse nothing any more."""
        return [exception for exception in self.granted if exception.until < today]

    def in_force(self, today: date) -> list[Granted]:
        """Those that excuse."""
        return [exception for exception in self.granted if exception.until >= today]

    def excuses(self, rule: str, urn: str, finding: str) -> bool:
        """Whether a finding is excepted; it is noted then."""
        for exception in self.in_force(date.today()):
            if exception.covers(rule, urn):
                self.excused.setdefault(exception, set()).add((urn, finding))
                return True
        return False


def _granted(entry: Mapping[str, Any], rules: Sequence[str]) -> Granted:
    if entry["rule"] not in rules:
        raise ValueError(
            f"exceptions.granted has one for {entry['rule']!r}, which is no rule of this pack, so it would have no "
            "effect; correct its name: docs/reference/policies.md lists the rules"
        )
    try:
        until = date.fromisoformat(entry["until"])
    except ValueError as error:
        raise ValueError(
            f"exceptions.granted has one for {entry['rule']} until {entry['until']!r}, which is no day, so it would "
            "never end; write it as 2026-12-31"
        ) from error
    return Granted(entry["rule"], entry["resource"], entry["reason"], until)


#: What the pack's process has read.
GRANTED = Exceptions()
