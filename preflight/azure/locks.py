"""Locks: nobody changes or deletes what lies under one, whatever roles they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..finding import Finding
from .asking import Azure
from .subject import LOCKS, Subject

CALL: Final = "Microsoft.Authorization/locks/read"
READ_ONLY: Final = "ReadOnly"
_PROVIDER: Final = "/providers/Microsoft.Authorization/locks/"


def locks(subject: Subject) -> Iterator[Finding]:
    """Read-only locks that would stop `up`, and others that would stop a later `destroy`."""
    groups = (subject.group, subject.azure.group(subject.names.node_resource_group))
    for scope, lock in found(subject.azure, *groups):
        read_only = lock["properties"]["level"] == READ_ONLY
        yield Finding(
            "error" if read_only else "note",
            f"the lock {lock['name']} ({lock['properties']['level']}) is on {scope}",
            "Azure refuses to make or change anything below: ScopeLocked"
            if read_only
            else "pulumi destroy will be refused, and each replacement of a resource: ScopeLocked",
            removes(lock),
            CALL,
        )


def found(azure: Azure, *groups: str) -> list[tuple[str, dict[str, Any]]]:
    """Locks that count for resource groups: on them, on something in them, on the subscription; each with its scope.

    Raises:
        NotAskedError: Azure does not tell.
    """
    every = azure.all(CALL, f"{azure.scope}/providers/Microsoft.Authorization/locks", LOCKS)
    with_scope = [(_scope(lock["id"]), lock) for lock in every]
    return [
        (scope, lock)
        for scope, lock in with_scope
        if scope.lower() == azure.scope.lower()
        or any(f"{scope}/".lower().startswith(f"{group}/".lower()) for group in groups)
    ]


def removes(lock: dict[str, Any]) -> str:
    """The command that removes a lock."""
    return f"az lock delete --ids {lock['id']}, if who put it there agrees"


def _scope(identifier: str) -> str:
    at = identifier.lower().rindex(_PROVIDER.lower())
    return identifier[:at]
