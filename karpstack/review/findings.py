"""From the policies' events to findings, exceptions in force, and what could not be judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from rules.exception_rules import EXCEPTIONS_IN_FORCE
from rules.exceptions import Granted
from rules.rule import Rule
from rules.tokens import STACK

from karpstack.karpenter.findings import Severity

from .engine import ONLY_THEN, PolicyEvent, Resource, name_of, token_of, waits
from .model import LEVELS, Excused, Judged, Level, NotJudged
from .places import Places

_NOT_RUN: Final = re.compile(r"can't run policy '[^']+' from policy pack '[^']+' during preview: (.*)", re.DOTALL)
_LATER: Final = re.compile(r"\w+ value at \.?(.*) can't be known during preview")


class Verdicts:
    """What the pack said of one preview."""

    def __init__(
        self,
        events: Iterable[PolicyEvent],
        rules: Mapping[str, Rule],
        resources: Mapping[str, Resource],
        exceptions: Iterable[Granted],
        places: Places,
    ) -> None:
        """Sort the events; `rules` and `resources` are by name and by URN, `exceptions` are the configured ones."""
        self._rules = rules
        self._resources = resources
        self._by_name = {resource.name: resource for resource in resources.values()}
        # A report may begin like that of a shorter one.
        self._exceptions = sorted(exceptions, key=lambda granted: len(str(granted)), reverse=True)
        self._places, self._file = places, places.uri
        findings: list[Judged] = []
        self._excused: list[Excused] = []
        self._not_judged: dict[tuple[str, str, str], NotJudged] = {}
        for event in events:
            if not_run := _NOT_RUN.search(event.message):
                self._not(event, not_run[1].strip())
            elif event.policy == EXCEPTIONS_IN_FORCE.name and (excused := self._exception(event)):
                self._excused.append(excused)
            else:
                findings.append(self._finding(event))
        findings.sort(key=lambda said: (LEVELS.index(said.level), not said.mandatory, said.code, said.subject))
        self.findings = tuple(findings)

    @property
    def excused(self) -> tuple[Excused, ...]:
        """The exceptions in force, one for each finding that they excused."""
        return tuple(self._excused)

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """What was not judged, each once."""
        return tuple(self._not_judged.values())

    def _finding(self, event: PolicyEvent) -> Judged:
        rule = self._rules.get(event.policy)
        level = _level(rule.severity.value if rule else event.severity)
        severity: Severity = "error" if event.level == "mandatory" else "note" if level == "low" else "warning"
        found = self._about(event.policy, event.urn, rule.finding_in(event.message) if rule else event.message)
        found = replace(found, severity=severity, level=level)
        if rule is None:
            return found
        return replace(
            found,
            what=found.what or rule.description,
            consequence=rule.consequence,
            fix=rule.remediation,
            link=rule.url,
            description=rule.description,
        )

    def _about(self, rule: str, urn: str, what: str) -> Judged:
        """What is said of a resource, or of the stack."""
        subject, urn = _subject(urn)
        place = self._places.of(self._resources.get(urn), rule)
        return Judged(rule, place.key, "", "", "", "note", what, subject, self._file, place.line, urn=urn)

    def _exception(self, event: PolicyEvent) -> Excused | None:
        report = EXCEPTIONS_IN_FORCE.finding_in(event.message)
        for granted in self._exceptions:
            if (violation := granted.finding_in(report)) is not None:
                return Excused(
                    finding=self._about(granted.rule, event.urn, violation),
                    pattern=granted.resource,
                    reason=granted.reason,
                    until=granted.until.isoformat(),
                )
        return None

    def _not(self, event: PolicyEvent, why: str) -> None:
        resource, urn = _subject(event.urn)
        if later := _LATER.fullmatch(why):
            path = later[1].split(".")
            about = self._resources.get(urn)
            if about is None:  # a rule about the whole stack, which names the resource in the path itself
                about = self._by_name.get(path.pop(0))
            why = f"{later[1]} is {waits(about, *path) if about else ONLY_THEN}"
        self._not_judged.setdefault(
            (event.policy, urn, why), NotJudged(rule=event.policy, resource=resource, urn=urn, why=why)
        )


def _subject(urn: str) -> tuple[str, str]:
    """Name and URN; both are empty for the stack itself."""
    return ("", "") if not urn or token_of(urn) == STACK else (name_of(urn), urn)


def _level(text: str) -> Level:
    for level in LEVELS:
        if level == text:
            return level
    return "medium"  # another pack's rule that says none
