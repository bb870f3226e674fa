"""Azure Resource Graph: the queries that Karpenter asks, read clause by clause.

A query is `Resources`, then `where` clauses over type, resource group and tags. Any other clause is refused by name:
an answer to a question that was not understood would be a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.arm.store import Resource, Store
from rehearsal.azure.identity.access import Access

Test = Callable[[Resource], bool]

_TYPE = re.compile(r'where type == "([^"]+)"')
_GROUP = re.compile(r'where resourceGroup == "([^"]+)"')
_TAGGED = re.compile(r'where tags has_cs "([^"]+)"')
_UNTAGGED = re.compile(r'where not\(tags has_cs "([^"]+)"\)')


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
    if match := _TYPE.fullmatch(clause):
        return _equal(lambda resource: resource.type.lower(), match[1].lower())
    if match := _GROUP.fullmatch(clause):
        return _equal(lambda resource: resource.id.group.lower(), match[1].lower())
    if match := _TAGGED.fullmatch(clause):
        return _tagged(match[1], wanted=True)
    if match := _UNTAGGED.fullmatch(clause):
        return _tagged(match[1], wanted=False)
    raise _unknown(clause)


def _equal(read: Callable[[Resource], str], value: str) -> Test:
    return lambda resource: read(resource) == value


def _tagged(name: str, *, wanted: bool) -> Test:
    # `has_cs` looks for a whole term in the text of the tags: a key or a value.
    return lambda resource: (
        any(name in (key, value) for key, value in (resource.body.get("tags") or {}).items()) == wanted
    )


def _row(resource: Resource) -> dict[str, Any]:
    return {
        **resource.shown(),
        "type": resource.type.lower(),
        "resourceGroup": resource.id.group.lower(),
        "subscriptionId": resource.id.subscription,
    }


def _unknown(clause: str) -> ArmError:
    return ArmError("InvalidQuery", f"The rehearsal's Resource Graph does not understand '{clause}'.")
