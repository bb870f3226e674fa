"""Locks: nobody changes or deletes what lies under one, whatever roles they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..finding import Finding, finding
from .api_versions import LOCKS
from .asking import Azure
from .rights import existing_subnets
from .scopes import subscription_of, within
from .subject import ExistingSubject, StackSubject, Subject

CALL: Final = "Microsoft.Authorization/locks/read"
READ_ONLY: Final = "ReadOnly"
_PROVIDER: Final = "/providers/Microsoft.Authorization/locks/"


def locks(subject: StackSubject) -> Iterator[Finding]:
    """Read-only locks that would stop `up`, and others that would stop a later `destroy`."""
    for scope, lock in found(subject.azure, subject.group, *_places(subject)):
        read_only = lock["properties"]["level"] == READ_ONLY
        yield finding(
            "lock-refuses-changes" if read_only else "lock-refuses-deletion-later",
            CALL,
            name=lock["name"],
            level=lock["properties"]["level"],
            scope=scope,
            remove=removes(lock),
        )


def _places(subject: StackSubject) -> Iterator[str]:
    """What the stack changes beside its own resource group."""
    if isinstance(subject, ExistingSubject):
        if subject.machines:
            yield subject.azure.group(subject.machines)
        yield from existing_subnets(subject)
    if not isinstance(subject, Subject):
        return
    zone = subject.settings.cluster.own_dns_zone
    addons = subject.settings.addons
    yield subject.azure.group(subject.names.node_resource_group)
    yield from (*subject.settings.existing_subnet_ids, *addons.registry_ids, *addons.vault_ids)
    if zone:
        yield zone


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
