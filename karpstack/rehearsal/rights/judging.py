"""What was asked, held against what is granted: which grant answered which question, and which none.

A grant is the smallest part of a document that could be taken away: one action of one statement on one resource
pattern, or one action of a role that is assigned on a scope.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.azure.arm.identifiers import within
from karpstack.rehearsal.azure.identity.roles import Role
from karpstack.rehearsal.recorded_rights import (
    ANY_ROLE,
    UNKNOWN,
    Cloud,
    Document,
    Principal,
    Question,
    Use,
    generalised,
)

#: Stands for the values of a condition key of which a statement takes any.
ANY: Final = "(any)"


@dataclass(frozen=True)
class Grant:
    """One right.

    Attributes:
        document: Name of the policy; of role and scope.
        statement: Its `Sid`; the role's name.
        action: As written: an action, or a pattern of some.
        resource: ARN pattern, or scope.
    """

    document: str
    statement: str
    action: str
    resource: str


@dataclass
class GrantUse:
    """What a grant was used for.

    Attributes:
        calls: Questions that it answered with yes.
        alone: Those of them that no other grant would have answered so: without it they are refused.
        actions: What was asked for, where the grant is a pattern.
        resources: Patterns of what was asked for, with how often.
        conditions: Condition keys of the statement, with the values that met them, made-up names left out; `ANY` where
            the statement takes any.
    """

    calls: int = 0
    alone: int = 0
    actions: set[str] = field(default_factory=set)
    resources: Counter[str] = field(default_factory=Counter)
    conditions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


@dataclass(frozen=True)
class Judgement:
    """Of one role or identity.

    Attributes:
        principal: Its name.
        grants: Each grant of its documents, with what it was used for.
        refused: What no grant allows, whether the cloud of that run refused it or not.
        unknown: Actions of which nothing is known but that they were asked.
        any_role: What any of the principal's roles allows, and so says nothing of one of them.
        spare: Documents without any one of which nothing more would be refused.
    """

    principal: str
    grants: Mapping[Grant, GrantUse]
    refused: Sequence[Use]
    unknown: Sequence[Use]
    any_role: Sequence[Use]
    spare: Sequence[str]

    @property
    def unused(self) -> list[Grant]:
        """Grants that answered nothing."""
        return [grant for grant, answered in self.grants.items() if not answered.calls]


def judge(cloud: Cloud, principal: Principal, documents: Mapping[str, Document] | None = None) -> Judgement:
    """Hold what a principal asked against its own documents, or against others, of shapes that `checking` takes."""
    rules = list(_rules(cloud, principal.documents if documents is None else documents))
    found = {rule.grant: GrantUse() for rule in rules}
    needed: set[str] = set()
    refused, unknown, any_role = [], [], []
    for use in principal.uses:
        question = use.question
        if question.resource == UNKNOWN:
            unknown.append(use)
            continue
        if question.context == ANY_ROLE and rules:
            any_role.append(use)
            continue
        met = [] if any(rule.denies(question) for rule in rules) else [rule for rule in rules if rule.allows(question)]
        if not met:
            refused.append(use)
        if len(documents_of := {rule.grant.document for rule in met}) == 1:
            needed |= documents_of
        for rule in met:
            answered = found[rule.grant]
            answered.calls += use.count
            answered.alone += use.count if len(met) == 1 else 0
            answered.actions.add(question.action)
            answered.resources[question.pattern] += use.count
            for key, patterns in rule.conditions.items():
                values = question.context.get(key, "absent")
                named = [ANY] if patterns == ["*"] else _many(values)
                answered.conditions[key].update(map(generalised, named))
    spare = sorted({rule.grant.document for rule in rules} - needed)
    return Judgement(principal.name, found, refused, unknown, any_role, spare)


def without_action(document: Document, action: str) -> dict[str, Any]:
    """An IAM document that does not allow an action any more, whichever statement did; for what that would refuse."""
    statements = []
    for statement in policies.statements(document):
        actions = [one for one in _many(statement["Action"]) if one != action]
        if actions:
            statements.append({**statement, "Action": actions})
    return {**document, "Statement": statements}


class _Rule(Protocol):
    """One grant, and whether it answers questions."""

    grant: Grant
    conditions: Mapping[str, Sequence[str]]

    def allows(self, question: Question) -> bool: ...

    def denies(self, question: Question) -> bool: ...


class _AwsRule:
    """A statement of IAM with one of its actions and one of its resources."""

    def __init__(self, grant: Grant, statement: Mapping[str, Any]) -> None:
        self.grant = grant
        self.conditions: Mapping[str, Sequence[str]] = {
            key: _many(patterns)
            for wanted in statement.get("Condition", {}).values()
            for key, patterns in wanted.items()
        }
        self._document = {"Statement": [{**statement, "Action": grant.action, "Resource": grant.resource}]}

    def allows(self, question: Question) -> bool:
        return self._decision(question) == "allowed"

    def denies(self, question: Question) -> bool:
        return self._decision(question) == "explicitDeny"

    def _decision(self, question: Question) -> str:
        if not policies.action_matches(self.grant.action, question.action):
            return "implicitDeny"  # as most do, without a look at the rest
        return policies.decision([self._document], question.action, question.resource, question.context)


class _AzureRule:
    """An assignment with one of the role's actions."""

    def __init__(self, grant: Grant, excluded: Sequence[str]) -> None:
        self.grant = grant
        self.conditions: Mapping[str, Sequence[str]] = {}
        self._role = Role("", grant.statement, (grant.action,), tuple(excluded))

    def allows(self, question: Question) -> bool:
        return self._role.allows(question.action) and within(question.resource, self.grant.resource)

    def denies(self, question: Question) -> bool:
        return False


def _rules(cloud: Cloud, documents: Mapping[str, Document]) -> Iterator[_Rule]:
    return _aws_rules(documents) if cloud == "aws" else _azure_rules(documents)


def _aws_rules(documents: Mapping[str, Document]) -> Iterator[_AwsRule]:
    for name, document in documents.items():
        for statement in policies.statements(document):
            for action in _many(statement["Action"]):
                for resource in _many(statement["Resource"]):
                    yield _AwsRule(Grant(name, str(statement.get("Sid", "")), action, resource), statement)


def _azure_rules(documents: Mapping[str, Document]) -> Iterator[_AzureRule]:
    for name, assignment in documents.items():
        for action in assignment["actions"]:
            grant = Grant(name, assignment["role"], action, assignment["scope"])
            yield _AzureRule(grant, assignment["notActions"])


def _many(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
