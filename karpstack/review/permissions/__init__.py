"""Who may act as which identity, and what each identity may do: tables, from what the preview knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final

from rules.clouds import CLOUDS, Cloud

from ..engine import Resource
from ..model import Entry, Permission
from . import aws, azure

#: What each cloud calls identities and rights. One without a reader stops the review: no table is better than one that
#: looks complete.
READERS: Final[Mapping[Cloud, ModuleType]] = {"aws": aws, "azure": azure}


def permissions(resources: Sequence[Resource]) -> tuple[tuple[Entry, ...], tuple[Permission, ...]]:
    """The entries and the permissions of a stack, in the program's order, an identity's together."""
    entries = [entry for cloud in CLOUDS for entry in READERS[cloud].entries(resources)]
    granted = [grant for cloud in CLOUDS for grant in READERS[cloud].granted(resources)]
    names = [grant.identity for grant in (*granted, *entries)]
    order = {name: rank for rank, name in enumerate(dict.fromkeys(names))}
    return (
        tuple(sorted(entries, key=lambda entry: order[entry.identity])),
        tuple(sorted(granted, key=lambda grant: order[grant.identity])),
    )
