"""Scopes, as Azure has them: what lies in what, by whole segments of the path, in which upper is lower."""

from __future__ import annotations

from typing import Final

_MANAGEMENT_GROUP: Final = "/providers/microsoft.management/managementgroups/"


def within(inner: str, outer: str) -> bool:
    """Whether a scope is another one, or lies below it. Azure tells of management groups only those that are above."""
    if outer.lower().startswith(_MANAGEMENT_GROUP):
        return True
    return f"{inner.rstrip('/')}/".lower().startswith(f"{outer.rstrip('/')}/".lower())


def subscription_of(scope: str) -> str:
    """The subscription that a scope lies in, as a scope."""
    return "/".join(scope.split("/")[:3])
