"""IAM policy documents: reading them statement by statement. Judges nothing but that they can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .rule import Judgement, Properties
from .shapes import POLICY_DOCUMENT
from .values import UnreadableError, parsed

#: One value: no wildcard, and no variable, which IAM fills in from the request itself.
EXACT = re.compile(r"(?!.*\$\{)[^*?]+")

#: What a statement has. IAM does not say whether it reads keys in other letters.
_KEYS = frozenset(
    {"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"}
)
_EFFECTS = ("Allow", "Deny")
#: (where the statement is, the statement, judgement)
StatementCheck = Callable[[str, Properties, Judgement], None]


def documents(check: StatementCheck) -> Callable[[Properties, Judgement], None]:
    """Judge a resource that has one document, in `policy`, or several, in `inlinePolicies`."""

    def judge(resource: Properties, judgement: Judgement) -> None:
        if "policy" in set(resource):
            _allowed("policy", resource["policy"], check, judgement)
        inline = resource.get("inlinePolicies") or []
        for index in range(len(inline)):
            with judgement.part():
                # An empty entry is how a role says that it has no inline policies.
                if document := inline[index].get("policy"):
                    _allowed(f"inlinePolicies[{index}].policy", document, check, judgement)

    return judge


def _allowed(path: str, document: Any, check: StatementCheck, judgement: Judgement) -> None:
    """Judge each statement that allows something."""
    for where, statement in statements(path, document, judgement):
        with judgement.part():
            if statement.get("Effect") == "Allow":
                check(where, statement, judgement)


def statements(path: str, document: Any, judgement: Judgement) -> Iterator[tuple[str, Properties]]:
    """Each statement of a document, which is JSON text or an object, and where it is.

    One that is unknown leaves the judgement incomplete.

    Raises:
        UnreadableError: It is none.
    """
    content = parsed(document, POLICY_DOCUMENT, "a policy document", path)
    if content.get("Statement") is None:
        raise UnreadableError(path, document, "a policy document")
    entries = listed(content["Statement"])
    for index in range(len(entries)):
        with judgement.part():
            statement = entries[index]
            where = f"{path}, statement {statement.get('Sid', index)}"
            if set(statement) - _KEYS or statement.get("Effect") not in _EFFECTS:
                raise UnreadableError(where, dict(statement), f"a statement of {', '.join(sorted(_KEYS))}")
            yield where, statement


def covers(statement: Properties, action: str) -> bool:
    """Return whether Action or NotAction of a statement includes an action, which is written in lower case."""
    inverted = "NotAction" in set(statement)
    patterns = listed(statement.get("NotAction" if inverted else "Action"))
    return any(fnmatchcase(action, pattern.lower()) for pattern in patterns) is not inverted


def listed(value: Any) -> Any:
    """IAM takes a single value wherever it takes a list."""
    if value is None:
        return []
    return value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
