"""Locks: nobody changes or deletes what lies under one, whatever roles they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..finding import Finding
from .asking import Azure
from .scopes import subscription_of, within
from .subject import LOCKS, Subject

CALL: Final = "Microsoft.Authorization/locks/read"
READ_ONLY: Final = "ReadOnly"
_PROVIDER: Final = "/providers/Microsoft.Authorization/locks/"


def locks(subject: Subject) -> Iterator[Finding]:
    """Read-only locks that would stop `up`, and others that would stop a later `destroy`."""
    zone = subject.settings.cluster.own_dns_zone
    addons = subject.settings.addons
    stores = [*addons.registry_ids, *addons.vault_ids]
    existing = [*subject.settings.existing_subnet_ids, *([zone] if zone else []), *stores]
    nodes = subject.azure.group(subject.names.node_resource_group)
    for scope, lock in found(subject.azure, subject.group, nodes, *existing):
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


def found(azure: Azure, *scopes: str) -> list[tuple[str, dict[str, Any]]]:
    """Locks that count for some scopes: on them, on what they lie in, on something in them; each with its scope.

    Raises:
        NotAskedError: Azure does not tell.
    """
    # A subnet may be another subscription's.
    asked = {subscription_of(scope).lower(): subscription_of(scope) for scope in scopes}
    every = [
        (_scope(lock["id"]), lock)
        for subscription in asked.values()
        for lock in azure.all(CALL, f"{subscription}/providers/Microsoft.Authorization/locks", LOCKS)
    ]
    return [
        (locked, lock)
        for locked, lock in every
        if any(within(scope, locked) or within(locked, scope) for scope in scopes)
    ]


def removes(lock: dict[str, Any]) -> str:
    """The command that removes a lock."""
    return f"az lock delete --ids {lock['id']}, if who put it there agrees"


def _scope(identifier: str) -> str:
    at = identifier.lower().rindex(_PROVIDER.lower())
    return identifier[:at]
