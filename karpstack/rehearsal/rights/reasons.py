"""Why grants stay that no rehearsal uses: data beside the policies, `components/documents/unused_rights.json`.

For each cloud a list of objects: `statement` (a `Sid`, or the name of a role), `actions` and `resources` (patterns with
`*`; left out, all of the statement's), and `reason`. With `"whole": true` it says why an assigned role stays that is
used, but could go, because others allow the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from karpstack.rehearsal.recorded_rights import Cloud
from karpstack.rehearsal.rights.judging import Grant
from karpstack.text import json_file

_ALL = ("*",)
_MOST, _DEPTH, _VALUES = 2**20, 20, 100_000  # bytes, levels and values of a file of reasons


@dataclass(frozen=True)
class Reason:
    """Why some grants of a statement or a role stay."""

    statement: str
    actions: Sequence[str]
    resources: Sequence[str]
    text: str
    whole: bool = False

    def is_about(self, grant: Grant) -> bool:
        """Whether it gives a reason for a grant."""
        return (
            self.statement == grant.statement
            and any(fnmatchcase(grant.action, pattern) for pattern in self.actions)
            and any(fnmatchcase(grant.resource, pattern) for pattern in self.resources)
        )

    def __str__(self) -> str:
        return f"{self.statement} ({', '.join(self.actions)} on {', '.join(self.resources)})"


class ReasonsError(Exception):
    """The file cannot be read; the text says which, why and what to do."""


def read(path: Path, cloud: Cloud) -> list[Reason]:
    """The reasons of one cloud.

    Raises:
        ReasonsError: The file is missing, or has another shape.
    """
    try:
        entries = json_file.read(path, most=_MOST, depth=_DEPTH, values=_VALUES)[cloud]
        return [
            Reason(
                str(one["statement"]),
                one.get("actions", _ALL),
                one.get("resources", _ALL),
                str(one["reason"]),
                bool(one.get("whole")),
            )
            for one in entries
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.why if isinstance(error, json_file.FileError) else f"{type(error).__name__}: {error}"
        raise ReasonsError(
            f"{path} gives no reasons ({why}), so that every unused right would be an error; name a file as "
            f"components/documents/unused_rights.json is one, with a list for {cloud!r}"
        ) from error


def reason_for(grant: Grant, reasons: Iterable[Reason], *, whole: bool = False) -> str:
    """The first reason that is about a grant, or about all of what it is part of; empty when there is none."""
    return next((one.text for one in reasons if one.whole == whole and one.is_about(grant)), "")


def stale(reasons: Iterable[Reason], grants: Iterable[Grant]) -> list[Reason]:
    """Reasons for grants that do not exist."""
    known = list(grants)
    return [reason for reason in reasons if not any(reason.is_about(grant) for grant in known)]


def unneeded_reasons(reasons: Iterable[Reason], unused: Iterable[Grant]) -> list[Reason]:
    """Reasons for grants that were all used."""
    return stale((reason for reason in reasons if not reason.whole), unused)
