"""Azure Resource Graph: the queries that Karpenter asks, read clause by clause.

A query is `Resources`, then `where` clauses over type, resource group and tags. Any other clause is refused by name:
an answer to a question that was not understood would be a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.store import Resource, Store
from karpstack.rehearsal.azure.identity.access import Access

Test = Callable[[Resource], bool]

#: Clauses, and what tells whether a resource meets one. `has_cs` looks for a whole term in the text of the tags.
_CLAUSES: dict[str, Callable[[Resource, str], bool]] = {
    r'where type == "([^"]+)"': lambda resource, value: resource.type.lower() == value.lower(),
    r'where resourceGroup == "([^"]+)"': lambda resource, value: resource.id.group.lower() == value.lower(),
    r'where tags has_cs "([^"]+)"': lambda resource, value: _has_tag(resource, value),
    r'where not\(tags has_cs "([^"]+)"\)': lambda resource, value: not _has_tag(resource, value),
}


def query(store: Store, access: Access, caller: str, text: str) -> dict[str, Any]:
    """Answer one query with the resources that the caller may read.

    Raises:
        ArmError: The query has a clause that the rehearsal does not know.
    """
    source, *clauses = [part.strip() for part in text.split("|")]
    if source.lower() != "resources":
        raise _unknown(source)
    tests = [_test(clause) for clause in clauses]
    data = [
        _row(resource)
        for resource in store.below("/")
        if all(test(resource) for test in tests) and access.reads(caller, resource.type, resource.id.text)
    ]
    return {"totalRecords": len(data), "count": len(data), "data": data, "facets": [], "resultTruncated": "false"}


def _test(clause: str) -> Test:
    for pattern, meets in _CLAUSES.items():
        if match := re.fullmatch(pattern, clause):
            return partial(_meets, meets, match[1])
    raise _unknown(clause)


def _meets(meets: Callable[[Resource, str], bool], value: str, resource: Resource) -> bool:
    return meets(resource, value)


def _has_tag(resource: Resource, term: str) -> bool:
    return any(term in pair for pair in (resource.body.get("tags") or {}).items())


def _row(resource: Resource) -> dict[str, Any]:
    return {
        **resource.shown(),
        "type": resource.type.lower(),
        "resourceGroup": resource.id.group.lower(),
        "subscriptionId": resource.id.subscription,
    }


def _unknown(clause: str) -> ArmError:
    return refused("InvalidQuery", clause=clause)
