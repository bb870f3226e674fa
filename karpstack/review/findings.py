"""From the policies' events to findings, exceptions in force, and what could not be judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from rules.exception_rules import EXCEPTIONS_IN_FORCE
from rules.exceptions import Granted
from rules.rule import Rule
from rules.tokens import STACK

from .engine import ONLY_THEN, PolicyEvent, Resource, name_of, token_of, waits
from .model import SEVERITIES, Excused, Finding, NotJudged, Severity
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
        self._places = places
        findings: list[Finding] = []
        self._excused: list[Excused] = []
        self._not_judged: dict[tuple[str, str, str], NotJudged] = {}
        for event in events:
            if not_run := _NOT_RUN.search(event.message):
                self._not(event, not_run[1].strip())
            elif event.policy == EXCEPTIONS_IN_FORCE.name and (excused := self._exception(event)):
                self._excused.append(excused)
            else:
                findings.append(self._finding(event))
        order = {severity: rank for rank, severity in enumerate(SEVERITIES)}
        findings.sort(key=lambda said: (order[said.severity], not said.mandatory, said.rule, said.resource))
        self.findings = tuple(findings)

    @property
    def excused(self) -> tuple[Excused, ...]:
        """The exceptions in force, one for each finding that they excused."""
        return tuple(self._excused)

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """What was not judged, each once."""
        return tuple(self._not_judged.values())

    def _finding(self, event: PolicyEvent) -> Finding:
        rule = self._rules.get(event.policy)
        resource, urn = _about(event.urn)
        severity = rule.severity.value if rule else event.severity
        said: dict[str, str] = {}
        if rule:
            said = {"consequence": rule.consequence, "remediation": rule.remediation, "url": rule.url}
        return Finding(
            rule=event.policy,
            severity=_severity(severity),
            mandatory=event.level == "mandatory",
            resource=resource,
            urn=urn,
            description=rule.description if rule else "",
            violation=rule.finding_in(event.message) if rule else event.message,
            place=self._places.of(self._resources.get(urn), event.policy),
            **said,
        )

    def _exception(self, event: PolicyEvent) -> Excused | None:
        report = EXCEPTIONS_IN_FORCE.finding_in(event.message)
        resource, urn = _about(event.urn)
        for granted in self._exceptions:
            if (violation := granted.finding_in(report)) is not None:
                return Excused(
                    rule=granted.rule,
                    pattern=granted.resource,
                    reason=granted.reason,
                    until=granted.until.isoformat(),
                    resource=resource,
                    urn=urn,
                    violation=violation,
                    place=self._places.of(self._resources.get(urn), granted.rule),
                )
        return None

    def _not(self, event: PolicyEvent, why: str) -> None:
        resource, urn = _about(event.urn)
        if later := _LATER.fullmatch(why):
            path = later[1].split(".")
            about = self._resources.get(urn)
            if about is None:  # a rule about the whole stack, which names the resource in the path itself
                about = self._by_name.get(path.pop(0))
            why = f"{later[1]} is {waits(about, *path) if about else ONLY_THEN}"
        self._not_judged.setdefault(
            (event.policy, urn, why), NotJudged(rule=event.policy, resource=resource, urn=urn, why=why)
        )


def _about(urn: str) -> tuple[str, str]:
    """Name and URN; both are empty for the stack itself."""
    return ("", "") if not urn or token_of(urn) == STACK else (name_of(urn), urn)


def _severity(text: str) -> Severity:
    for severity in SEVERITIES:
        if severity == text:
            return severity
    return "medium"  # another pack's rule that says none
