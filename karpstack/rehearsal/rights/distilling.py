"""A recording without what no right depends on: small enough to keep, and with the same judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.recorded_rights import ANY_ROLE, Document, Principal, Question, Recording, Use, add


def distilled(recording: Recording) -> Recording:
    """The same with fewer questions.

    Condition keys that no statement mentions go; questions that differ only in the value of a key of which every
    statement takes any (`StringLike: *`) become one, with the value of the first.
    """
    return Recording(
        recording.cloud, [_distilled(principal) for principal in recording.principals], recording.scenarios
    )


def _distilled(principal: Principal) -> Principal:
    wanted: dict[str, set[str]] = {}
    for document in principal.documents.values():
        for key, patterns in _conditions(document):
            wanted.setdefault(key, set()).update(patterns)
    any_value = {key for key, patterns in wanted.items() if patterns == {"*"}}
    found: dict[tuple[Any, ...], Use] = {}
    for use in principal.uses:
        asked = use.question
        context = asked.context
        if context != ANY_ROLE:
            context = {key: value for key, value in context.items() if key in wanted}
        question = Question(asked.action, asked.resource, context)
        alike = Question(
            asked.action, asked.resource, {key: "" if key in any_value else value for key, value in context.items()}
        )
        add(found, alike.key, Use(question, use.count, use.refused))
    return Principal(principal.name, principal.documents, list(found.values()))


def _conditions(document: Document) -> list[tuple[str, list[str]]]:
    """Condition keys of an IAM document with what they are held against; an assignment of Azure has none."""
    found = []
    for statement in policies.statements(document):
        keys: Mapping[str, Any]
        for keys in statement.get("Condition", {}).values():
            found += [(key, [value] if isinstance(value, str) else list(value)) for key, value in keys.items()]
    return found
