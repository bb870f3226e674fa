"""Locks: what may not be changed or deleted while somebody has locked it, whoever asks."""

from __future__ import annotations

from karpstack.rehearsal.azure.arm.errors import refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, within
from karpstack.rehearsal.azure.arm.store import Store

LOCK_TYPE = "Microsoft.Authorization/locks"
READ_ONLY, CAN_NOT_DELETE = "ReadOnly", "CanNotDelete"


def check(store: Store, scope: str, verb: str) -> None:
    """Refuse what a lock at or above a scope forbids; for a deletion, also what one below it does.

    Args:
        store: What exists, the locks too.
        scope: Id of what is changed or deleted.
        verb: `write` or `delete`.
    """
    if ResourceId.parse(scope).type.lower() == LOCK_TYPE.lower():
        return
    forbidding = (READ_ONLY,) if verb == "write" else (READ_ONLY, CAN_NOT_DELETE)
    locked = [
        lock.id.scope
        for lock in store.of_type(LOCK_TYPE)
        if lock.properties["level"] in forbidding
        and (within(scope, lock.id.scope) or (verb == "delete" and within(lock.id.scope, scope)))
    ]
    if locked:
        raise refused("ScopeLocked", scope=scope, verb=verb, locked=",".join(locked))
