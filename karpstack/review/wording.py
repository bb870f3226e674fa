"""Sentences that the documents share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from .changes import OPERATIONS
from .model import LEVELS, Cost, Entry, Judged, Level, Permission, Pool, Review

_DOING = {
    "create": "to create",
    "update": "to update",
    "replace": "to replace",
    "delete": "to delete",
    "import": "to import",
    "forget": "to forget",
    "read": "to read",
    "same": "unchanged",
}
#: What the pack without a configuration is called.
BASELINE = "baseline"
_HEADLINES = {"passed": "Passed", "refused": "Refused", "failed": "The preview failed"}


def headline(review: Review) -> str:
    """The verdict, and how many rules were not judged everywhere: those have not passed."""
    gaps = len({gap.rule for gap in review.not_judged})
    verdict = _HEADLINES[review.verdict]
    return f"{verdict}, {gaps} {plural('rule', gaps)} not judged." if gaps else f"{verdict}."


def judge(review: Review, missing: Path | None = None) -> str:
    """Which configuration of the pack judged; `missing` is the stack's own, where it would have and is not there."""
    if review.pack_configuration != BASELINE:
        return review.pack_configuration
    found = f"the {BASELINE} of the policy pack"
    return f"{found}, for there is no {missing.parent.name}/{missing.name}" if missing else found


def doing(operation: str) -> str:
    """`to create` for `create`; an operation that is not known is called as the engine calls it."""
    return _DOING.get(operation, operation)


def totals(review: Review) -> list[tuple[str, int]]:
    """Operations in order, with how many resources meet with each."""
    known = dict.fromkeys([*OPERATIONS, *(count.operation for count in review.counts)])
    return [(operation, review.total(operation)) for operation in known if review.total(operation)]


def summary(review: Review) -> str:
    """What is created, found and paid, in a sentence or three."""
    resources = ", ".join(f"{number} {doing(name)}" for name, number in totals(review)) or "nothing was previewed"
    if review.beside:
        beside = plural("component", review.beside) + " or " + plural("provider", review.beside)
        resources += f"; beside them {review.beside} {beside}, which Pulumi counts too"
    findings = plural("finding", len(review.findings))
    tally = f"{len(review.mandatory)} mandatory and {len(review.advisory)} advisory {findings}"
    if (different := len(group_by_text(review.findings))) < len(review.findings):
        tally += f", which say {different} different {plural('thing', different)}"
    sentences = [f"Resources: {resources}.", f"{tally}." if review.findings else "No findings."]
    if review.pools:
        sentences.append(f"NodePools: {stack_cost(review.cost, review.pools)}.")
    return " ".join(filter(None, [*sentences, review.assumed]))


def stack_cost(cost: Cost, pools: Sequence[Pool]) -> str:
    """The ceiling of all NodePools together, with what it leaves out."""
    if not pools:
        return "no NodePools in this stack"
    unbounded = [pool.name for pool in pools if pool.unbounded]
    unknown = [pool.name for pool in pools if pool.unknown]
    text = f"up to {money(cost.usd)} USD/h"
    if len(unbounded) + len(unknown) == len(pools):
        text = "no ceiling"
    if cost.allowed is not None:
        text += f"{', more than' if cost.exceeded else ' of'} the {money(cost.allowed)} that the policies allow"
    if unbounded:
        text += f", and nothing bounds {', '.join(unbounded)}"
    if unknown:
        text += f", without {', '.join(unknown)}, which {'is' if len(unknown) == 1 else 'are'} not known"
    return text


def money(usd: float | None) -> str:
    """`0.0960`, `12.30`, `1,204`; empty where there is none."""
    if usd is None:
        return ""
    if 0 < usd < 1:
        return f"{usd:.4f}"
    return f"{usd:,.2f}" if usd < 1000 else f"{usd:,.0f}"


def plural(word: str, number: int) -> str:
    """With an s, where it is not one."""
    return word if number == 1 else f"{word}s"


def by_severity(findings: Sequence[Judged]) -> list[tuple[Level, list[list[Judged]]]]:
    """Judgeds, those alike together, the most severe first; severities without any are left out."""
    groups = [(level, group_by_text([each for each in findings if each.level == level])) for level in LEVELS]
    return [(level, group) for level, group in groups if group]


def group_by_text(findings: Sequence[Judged]) -> list[list[Judged]]:
    """Group the findings of several resources that have the same text, in the order of their first ones."""
    groups: dict[Judged, list[Judged]] = {}
    for finding in findings:
        groups.setdefault(replace(finding, subject="", urn=""), []).append(finding)
    return list(groups.values())


def identities(entries: Iterable[Entry], permissions: Iterable[Permission]) -> list[str]:
    """The names of identities, each once."""
    return list(dict.fromkeys([*(grant.identity for grant in permissions), *(grant.identity for grant in entries)]))


def subject(resource: str) -> str:
    """What a finding is about."""
    return resource or "the stack"
