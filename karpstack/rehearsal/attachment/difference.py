"""What changed between two sets of a resource's inputs, property by property.

Compares values only; whether a change replaces the resource is told by the paths that the resource names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_MISSING = object()


@dataclass(frozen=True)
class Change:
    """One changed value.

    Attributes:
        path: Names of maps and positions in lists that lead to it.
        kind: Whether it came, went or became another.
        replaces: Whether the resource must be replaced for it.
    """

    path: tuple[str | int, ...]
    kind: Literal["add", "delete", "update"]
    replaces: bool

    @property
    def text(self) -> str:
        """The path as the engine writes it, for example `tags["a.b"]` or `rules[0].port`."""
        text = ""
        for step in self.path:
            if isinstance(step, int):
                text += f"[{step}]"
            elif _PLAIN_NAME.fullmatch(step):
                text += f".{step}" if text else step
            else:
                text += '["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]'
        return text


def changes(old: Mapping[str, Any], new: Mapping[str, Any], replace_on: Iterable[str]) -> list[Change]:
    """The changes from `old` to `new`; a value that is unknown yet counts as changed.

    Args:
        old: The inputs before. A property that is None is not there.
        new: The inputs now.
        replace_on: Dotted names, such as `name` or `metadata.namespace`: a change at or below one replaces.
    """
    replacing = [tuple(name.split(".")) for name in replace_on]
    found = _changes((), _present(old), _present(new))
    return [Change(path, kind, any(_touches(path, name) for name in replacing)) for path, kind in found]


def _present(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None}


def _touches(path: tuple[str | int, ...], name: tuple[str, ...]) -> bool:
    # A whole map that comes or goes (`metadata`) takes what is below it (`metadata.name`) along.
    length = min(len(path), len(name))
    return path[:length] == name[:length]


def _changes(
    path: tuple[str | int, ...], old: Any, new: Any
) -> Iterator[tuple[tuple[str | int, ...], Literal["add", "delete", "update"]]]:
    if new is _MISSING:
        yield path, "delete"
    elif old is _MISSING:
        yield path, "add"
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from _changes((*path, name), old.get(name, _MISSING), new.get(name, _MISSING))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from _changes(
                (*path, index),
                old[index] if index < len(old) else _MISSING,
                new[index] if index < len(new) else _MISSING,
            )
    elif old != new or isinstance(old, bool) != isinstance(new, bool):  # 1 == True in Python
        yield path, "update"
