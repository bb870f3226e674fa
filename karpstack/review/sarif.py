"""review.sarif: the findings in the Static Analysis Results Interchange Format 2.1.0, for code scanning.

A finding is a result; one that an exception excuses is a result with a suppression; what could not be judged is a
notification of the run, for it is no result. https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from karpstack.text.findings import result, sarif, sarif_message

from . import wording
from .model import Excused, Judged, Level, NotJudged, Review, RuleText

_ROOT: Final = "%SRCROOT%"
#: Scores as CVSS has them, by which code scanning sorts into critical, high, medium and low.
_SCORES: Final[Mapping[Level, str]] = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
_LEVELS: Final[Mapping[Level, str]] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


def render(review: Review) -> str:
    """The file."""
    return json.dumps(document(review), indent=2, ensure_ascii=False) + "\n"


def document(review: Review) -> dict[str, Any]:
    """The file's content."""
    known = {rule.name: index for index, rule in enumerate(review.rules)}
    driver: dict[str, Any] = {
        "name": "karpstack policies",
        "rules": [_rule(rule) for rule in review.rules],
    }
    if review.pack_version:
        driver["version"] = review.pack_version
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"karpstack-review/{review.stack}/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The folder with Pulumi.yaml."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(review, known)],
        "results": [
            *(_finding(review, finding, known) for finding in review.findings),
            *(_excused(review, excused, known) for excused in review.excused if excused.finding.what),
        ],
    }
    return sarif(run)


def _rule(rule: RuleText) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.description},
        "fullDescription": {"text": f"{rule.description} {rule.rationale}"},
        "help": {
            "text": f"{rule.rationale} {rule.consequence}\nFix: {rule.remediation}\nSee {rule.url}",
            "markdown": f"{rule.rationale}\n\n**Otherwise:** {rule.consequence}\n\n**Fix:** {rule.remediation}\n\n"
            f"See <{rule.url}>",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "security-severity": _SCORES[rule.severity],
            "precision": "high",
            "tags": ["security", rule.group],
        },
    }


def _finding(review: Review, finding: Judged, known: Mapping[str, int]) -> dict[str, Any]:
    enforcement = "mandatory" if finding.mandatory else "advisory"
    return {
        **_result(review, finding, known),
        "properties": {"enforcement": enforcement, "severity": finding.level},
    }


def _excused(review: Review, excused: Excused, known: Mapping[str, int]) -> dict[str, Any]:
    reason = f"{excused.reason} (until {excused.until})"
    return {
        **_result(review, excused.finding, known),
        "suppressions": [{"kind": "external", "status": "accepted", "justification": reason}],
    }


def _result(review: Review, finding: Judged, known: Mapping[str, int]) -> dict[str, Any]:
    made = result(replace(finding, subject=finding.subject or "The stack"))
    (place,) = made["locations"]
    place["physicalLocation"]["artifactLocation"] = {"uri": quote(review.configuration), "uriBaseId": _ROOT}
    place["logicalLocations"] = [_logical(review, finding.subject, finding.urn)]
    # The same finding on the same resource, wherever its line has moved to.
    digest = _digest(review.stack, finding.code, finding.urn, finding.what)
    made["partialFingerprints"] = {"karpstackFinding/v1": digest}
    if finding.code in known:
        made["ruleIndex"] = known[finding.code]
    return made


def _logical(review: Review, resource: str, urn: str) -> dict[str, str]:
    return {
        "name": resource or review.stack,
        "fullyQualifiedName": urn or f"{review.project}/{review.stack}",
        "kind": "resource",
    }


def _invocation(review: Review, known: Mapping[str, int]) -> dict[str, Any]:
    notifications = [_notification(review, unjudged, known) for unjudged in review.not_judged]
    notifications += [{"level": "error", "message": sarif_message(failure)} for failure in review.failures]
    return {
        "executionSuccessful": review.verdict != "failed",
        "toolExecutionNotifications": notifications,
    }


def _notification(review: Review, unjudged: NotJudged, known: Mapping[str, int]) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": unjudged.rule}
    if unjudged.rule in known:
        rule["index"] = known[unjudged.rule]
    return {
        "level": "note",
        "message": sarif_message(
            f"{unjudged.rule} was not judged for {wording.subject(unjudged.resource)}: {unjudged.why}"
        ),
        "associatedRule": rule,
        "locations": [{"logicalLocations": [_logical(review, unjudged.resource, unjudged.urn)]}],
    }


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
