"""IAM policy documents: whom a trust policy lets in, and which actions an identity policy allows.

Trust policies are evaluated with their conditions, identity policies with resources and conditions where it is known
what IAM asks about a request (`questions`), and by action alone where it is not. Resource policies of queues are
evaluated for the one question that an event rule asks. Policy variables (`${aws:username}`) are not filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

Statement = Mapping[str, Any]
#: Condition keys of a request and their values; several where a key has several at once (`aws:TagKeys`).
Context = Mapping[str, str | Sequence[str]]
_SET_OPERATOR = re.compile(r"(ForAnyValue|ForAllValues):(.+)")
_NOT_IMPLEMENTED = "the rehearsal does not evaluate the condition operator {}; write it with StringEquals or StringLike"


def statements(document: str | Mapping[str, Any]) -> list[Statement]:
    """The statements of a policy document, whether it holds one or a list."""
    parsed = json.loads(document) if isinstance(document, str) else document
    return _many(parsed.get("Statement", []))


def trust_refusal(
    document: str | Mapping[str, Any],
    principal_type: str,
    principal: str,
    actions: Iterable[str],
    context: Context,
) -> str:
    """Why a trust policy does not let a principal do all of some actions; empty when it does.

    Args:
        document: The role's AssumeRolePolicyDocument.
        principal_type: `Service`, `Federated` or `AWS`.
        principal: For example `pods.eks.amazonaws.com`.
        actions: For example `sts:AssumeRole`.
        context: Condition keys of the request and their values; a key that is not in it has no value.
    """
    parts = statements(document)
    for action in actions:
        reasons: list[str] = []
        allowed = False
        for statement in parts:
            if not _names(statement, action) or not _is_for(statement, principal_type, principal):
                continue
            failed = failed_condition(statement, context)
            if failed:
                reasons.append(failed)
            elif statement.get("Effect") == "Deny":
                return f"its trust policy denies {action} to {principal}"
            else:
                allowed = True
        if not allowed:
            if reasons:
                return f"its trust policy allows {action} to {principal} only under a condition: {reasons[0]}"
            return f"its trust policy does not allow {action} to {principal}"
    return ""


def allows_action(documents: Iterable[str | Mapping[str, Any]], action: str) -> bool:
    """Whether some identity policy allows an action on anything and none denies it without a condition."""
    allowed = False
    for document in documents:
        for statement in statements(document):
            if not _names(statement, action):
                continue
            if statement.get("Effect") != "Deny":
                allowed = True
            elif not statement.get("Condition") and "*" in _many(statement.get("Resource", "*")):
                return False
    return allowed


def matching_statements(
    documents: Iterable[str | Mapping[str, Any]], action: str, resource: str
) -> Iterator[Statement]:
    """The statements of identity policies that name an action and a resource, whatever their conditions."""
    for document in documents:
        for statement in statements(document):
            if _names(statement, action) and _covers(statement, resource):
                yield statement


def decision(documents: Iterable[str | Mapping[str, Any]], action: str, resource: str, context: Context) -> str:
    """What identity policies say to an action on a resource, in IAM's words: allowed, explicitDeny, implicitDeny."""
    met = [one for one in matching_statements(documents, action, resource) if not failed_condition(one, context)]
    if any(one.get("Effect") == "Deny" for one in met):
        return "explicitDeny"
    return "allowed" if met else "implicitDeny"


def allows_service(
    document: str | Mapping[str, Any], service: str, action: str, resource: str, context: Context
) -> bool:
    """Whether a resource policy lets an AWS service do an action on the resource.

    A Deny for everybody counts as well, unless its condition is not met: the service comes over TLS.
    """
    allowed = False
    for statement in statements(document):
        principal = statement.get("Principal")
        everybody = principal == "*" or (isinstance(principal, Mapping) and "*" in _many(principal.get("AWS", [])))
        if not _names(statement, action) or not (everybody or _is_for(statement, "Service", service)):
            continue
        if not any(_matches(pattern, resource) for pattern in _many(statement.get("Resource", "*"))):
            continue
        if failed_condition(statement, {"aws:SecureTransport": "true", **context}):
            continue
        if statement.get("Effect") == "Deny":
            return False
        allowed = True
    return allowed


def failed_condition(statement: Statement, context: Context) -> str:
    """The first condition of a statement that the request does not meet, in words; empty when it meets all."""
    values = {key.lower(): value for key, value in context.items()}
    for operator, wanted in statement.get("Condition", {}).items():
        for key, patterns in wanted.items():
            found = values.get(key.lower())
            if not _holds(operator, found, [str(item) for item in _many(patterns)]):
                shown = "absent" if found is None else repr(found)
                return f"{operator} {key} {_many(patterns)}, and here it is {shown}"
    return ""


def evaluates(operator: str) -> bool:
    """Whether conditions with an operator (`StringLike`) are evaluated; `failed_condition` refuses others."""
    try:
        _holds(operator, "value", ["pattern"])
    except NotImplementedError:
        return False
    return True


def _holds(operator: str, found: str | Sequence[str] | None, patterns: list[str]) -> bool:
    if match := _SET_OPERATOR.fullmatch(operator):
        quantifier = all if match[1] == "ForAllValues" else any
        # Of a key without values all values hold, and none does.
        return quantifier(_value_holds(match[2], value, patterns) for value in _many(found or []))
    if found is None or isinstance(found, str):
        return _value_holds(operator, found, patterns)
    return any(_value_holds(operator, value, patterns) for value in found)


def _value_holds(operator: str, found: str | None, patterns: list[str]) -> bool:
    name = operator
    if name.endswith("IfExists"):
        if found is None:
            return True
        name = name.removesuffix("IfExists")
    if name == "Null":
        return (found is None) == (patterns[0].lower() == "true")
    negative = "Not" in name
    base = name.replace("Not", "")
    if base == "StringEquals":
        hit = found in patterns
    elif base == "StringEqualsIgnoreCase":
        hit = found is not None and found.lower() in [pattern.lower() for pattern in patterns]
    elif base == "Bool":
        hit = found is not None and found.lower() == patterns[0].lower()
    elif base in ("StringLike", "ArnLike", "ArnEquals"):
        hit = found is not None and any(_matches(pattern, found) for pattern in patterns)
    else:
        raise NotImplementedError(_NOT_IMPLEMENTED.format(operator))
    return hit != negative


def _names(statement: Statement, action: str) -> bool:
    if "NotAction" in statement:
        return not any(action_matches(pattern, action) for pattern in _many(statement["NotAction"]))
    return any(action_matches(pattern, action) for pattern in _many(statement.get("Action", [])))


@lru_cache(maxsize=1 << 16)  # each call is held against all of the same few statements
def action_matches(pattern: str, action: str) -> bool:
    """Whether a pattern of a statement (`ec2:Describe*`) is of an action; neither tells upper from lower case."""
    return _matches(pattern.lower(), action.lower())


def _matches(pattern: str, text: str) -> bool:
    """Whether a text is what a pattern says; IAM knows `*` and `?`, and a bracket is a bracket."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _covers(statement: Statement, resource: str) -> bool:
    if "NotResource" in statement:
        return not any(_matches(pattern, resource) for pattern in _many(statement["NotResource"]))
    return any(_matches(pattern, resource) for pattern in _many(statement.get("Resource", [])))


def _is_for(statement: Statement, principal_type: str, principal: str) -> bool:
    named = statement.get("Principal")
    return isinstance(named, Mapping) and principal in _many(named.get(principal_type, []))


def _many(value: Any) -> list[Any]:
    return list(_flat(value))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield from value
    else:
        yield value
