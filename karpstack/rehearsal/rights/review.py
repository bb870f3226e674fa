"""The rights of a rehearsal's principals with the reasons of those that nothing used, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karpstack.rehearsal.recorded_rights import Recording, Use
from karpstack.rehearsal.rights import reasons
from karpstack.rehearsal.rights.judging import Grant, GrantUse, Judgement, judge
from karpstack.rehearsal.rights.reasons import Reason


@dataclass(frozen=True)
class Row:
    """One action of one statement: what it was used for.

    Attributes:
        statement: `Sid`, or role and scope.
        action: The action, as granted.
        asked: The actions that were asked for, where that is a pattern.
        calls: How many questions it answered with yes.
        alone: How many of them nothing else would have answered so.
        resources: What was asked for, without region and account, with how often.
        conditions: Condition keys that were held against the questions, with the values seen.
    """

    statement: str
    action: str
    asked: Sequence[str]
    calls: int
    alone: int
    resources: Sequence[tuple[str, int]]
    conditions: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Unused:
    """Grants of one statement that nothing used and that stay for one reason, which is empty when nobody gave one."""

    statement: str
    actions: Sequence[str]
    resources: Sequence[str]
    reason: str


@dataclass(frozen=True)
class Review:
    """Of one recording.

    Attributes:
        rows: What was used.
        unused: What was not.
        spare: Assigned roles without any one of which nothing would have been refused, with the reasons why they stay.
        least: Of roles of Azure: the actions that a role would need instead, by scope.
        problems: Sentences: what was asked without a right, what has no reason, reasons for what is not there.
        notes: Sentences that are no problem: reasons for what was used after all.
    """

    rows: Sequence[Row]
    unused: Sequence[Unused]
    spare: Mapping[str, str]
    least: Mapping[str, Sequence[str]]
    problems: Sequence[str]
    notes: Sequence[str]

    @property
    def shown(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "used": [
                {**vars(row), "resources": dict(row.resources), "conditions": dict(row.conditions)} for row in self.rows
            ],
            "unused": [vars(one) for one in self.unused],
            "spare": dict(self.spare),
            "least": dict(self.least),
            "problems": list(self.problems),
            "notes": list(self.notes),
        }


def review(recording: Recording, known: Sequence[Reason], lacking: Sequence[str] = ()) -> Review:
    """Judge a recording by its own documents.

    Args:
        recording: What was asked.
        known: Why rights stay that nothing used.
        lacking: What the recording is not of, in words. Where it lacks something, nobody is advised to take a right
            away: what is lacking may need it.
    """
    judgements = [judge(recording.cloud, principal) for principal in recording.principals]
    grants = [grant for judgement in judgements for grant in judgement.grants]
    unused = [grant for judgement in judgements for grant in judgement.unused]
    stale = reasons.stale(known, grants)
    grouped = list(_unused(unused, known))
    spare = dict(_spare(judgements, known))
    advice = [
        *(
            f"{one.statement}: {', '.join(one.actions)} on {', '.join(one.resources)} was not used, and nobody says "
            "why it stays; take it out of the policy, or give the reason"
            for one in grouped
            if not one.reason
        ),
        *(
            f"{name} was used, but nothing would have been refused without it; take it out, or say why it stays"
            for name, reason in spare.items()
            if not reason
        ),
    ]
    if advice and lacking:
        advice = [
            f"the recording is incomplete, so whether what it shows as unused without a reason can go is not known "
            f"({len(advice)} times); it lacks of the whole soak: {', '.join(lacking)}"
        ]
    problems = [
        *(text for judgement in judgements for text in _wrong(judgement)),
        *advice,
        *(f"the reason for {one} is about no right that there is; take it out" for one in stale),
    ]
    notes = [
        f"the reason for {one} is not needed: all of it was used"
        for one in reasons.unneeded_reasons(known, unused)
        if one not in stale
    ]
    rows = [row for judgement in judgements for row in _rows(judgement)]
    least = _least(judgements) if recording.cloud == "azure" else {}
    return Review(rows, grouped, spare, least, problems, notes)


def _spare(judgements: Iterable[Judgement], known: Sequence[Reason]) -> Iterator[tuple[str, str]]:
    """Used documents that could go as a whole; those that nothing used are told grant by grant."""
    for judgement in judgements:
        used = {grant.document: grant for grant, answered in judgement.grants.items() if answered.calls}
        for name in judgement.spare:
            if name in used:
                yield _where(used[name]), reasons.reason_for(used[name], known, whole=True)


def _least(judgements: Iterable[Judgement]) -> dict[str, list[str]]:
    """Actions by the scope of the role that allowed them."""
    found: dict[str, set[str]] = {}
    for judgement in judgements:
        for grant, answered in judgement.grants.items():
            if answered.calls:
                found.setdefault(short_resource(grant.resource), set()).update(answered.actions)
        for use in judgement.any_role:
            found.setdefault("the subscription", set()).add(use.question.action)
    return {scope: sorted(actions) for scope, actions in sorted(found.items())}


def _rows(judgement: Judgement) -> Iterator[Row]:
    by_action: dict[tuple[str, str], list[GrantUse]] = {}
    for grant, answered in judgement.grants.items():
        if answered.calls:
            by_action.setdefault((_where(grant), grant.action), []).append(answered)
    for (statement, action), parts in by_action.items():
        resources: Counter[str] = Counter()
        conditions: dict[str, set[str]] = {}
        for part in parts:
            for name, count in part.resources.items():
                resources[short_resource(name)] += count
            for key, values in part.conditions.items():
                conditions.setdefault(key, set()).update(values)
        yield Row(
            statement,
            action,
            sorted(set().union(*(part.actions for part in parts)) - {action}),
            sum(part.calls for part in parts),
            sum(part.alone for part in parts),
            sorted(resources.items()),
            [(key, sorted(values)) for key, values in sorted(conditions.items())],
        )


def _unused(grants: Sequence[Grant], known: Sequence[Reason]) -> Iterator[Unused]:
    """One entry for all grants of a statement with one reason and the same resources."""
    resources: dict[tuple[str, str, str], list[str]] = {}
    for grant in grants:
        key = (_where(grant), reasons.reason_for(grant, known), grant.action)
        resources.setdefault(key, []).append(short_resource(grant.resource))
    actions: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (statement, reason, action), names in resources.items():
        actions.setdefault((statement, reason, tuple(names)), []).append(action)
    for (statement, reason, where), what in actions.items():
        yield Unused(statement, what, where, reason)


def _wrong(judgement: Judgement) -> Iterator[str]:
    for use in judgement.refused:
        yield f"{judgement.principal} asked for {_use_text(use)}, and no right allows it"
    for use in judgement.unknown:
        yield (
            f"{judgement.principal} asked for {_use_text(use)}, and the rehearsal does not know on which resources; "
            "teach karpstack/rehearsal/aws/iam/questions.py"
        )


def _use_text(use: Use) -> str:
    return f"{use.question.action} on {use.question.pattern} ({use.count} times)"


def _where(grant: Grant) -> str:
    """A statement by its `Sid`; a role by its name and what its scope is."""
    if grant.document.startswith(f"{grant.statement} on "):
        return f"{grant.statement} on {short_resource(grant.resource)}"
    return grant.statement


def short_resource(resource: str) -> str:
    """A resource without what is the same everywhere: `instance/*` of an ARN, the end of a resource ID."""
    if resource.startswith("arn:"):
        return resource.split(":", 5)[5]
    if resource.startswith("/subscriptions/"):
        group, _, provided = resource.partition("/providers/")
        name = group.rpartition("/resourceGroups/")[2]
        return f"{name}: {provided.partition('/')[2]}" if provided else name
    return resource
