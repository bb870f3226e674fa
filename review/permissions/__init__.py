"""Who may act as which identity, and what each identity may do: tables, from what the preview knows."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import Resource
from ..model import Entry, Permission
from . import aws, azure


def permissions(resources: Sequence[Resource]) -> tuple[tuple[Entry, ...], tuple[Permission, ...]]:
    """The entries and the permissions of a stack, in the program's order, an identity's together."""
    entries = [*aws.entries(resources), *azure.entries(resources)]
    granted = [*aws.granted(resources), *azure.granted(resources)]
    names = [*(one.identity for one in granted), *(one.identity for one in entries)]
    order = {name: rank for rank, name in enumerate(dict.fromkeys(names))}
    return (
        tuple(sorted(entries, key=lambda one: order[one.identity])),
        tuple(sorted(granted, key=lambda one: order[one.identity])),
    )
