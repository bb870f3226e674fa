"""Small files that one command writes and a later one reads: whole or not at all, and readable by their owner alone.

A record that was cut, broken or made by something else is told in a sentence and treated as absent: whoever has lost
a record can begin again, but nobody can mend one in a half-dead rehearsal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from karpstack.text import files

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LOG = logging.getLogger(__name__)

Record = TypeVar("Record", bound="DataclassInstance")


def write(path: Path, record: DataclassInstance) -> None:
    """Write a dataclass of numbers, texts, and lists or mappings of them, as JSON."""
    files.write(path, json.dumps(asdict(record), indent=2), private=True)


def read(path: Path, kind: type[Record]) -> Record | None:
    """A record as `write` left it; None where there is none, or what is there is no such record.

    Args:
        kind: Class of the record. Keys that it does not know are skipped, those with a default can be missing.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        _tell(path, str(error))
        return None
    if not isinstance(found, Mapping):
        _tell(path, "it is no object")
        return None
    hints = get_type_hints(kind)
    known = {field.name: found[field.name] for field in fields(kind) if field.name in found}
    if wrong := [key for key, value in known.items() if not _fits(value, hints[key])]:
        _tell(path, f"{wrong[0]} is no {hints[wrong[0]]}")
        return None
    try:
        return kind(**known)
    except TypeError as error:
        _tell(path, str(error))
        return None


@cache  # A command reads the same record several times.
def _tell(path: Path, why: str) -> None:
    _LOG.warning("%s is damaged, so it is treated as absent: %s", path, why)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of a type; bool is no number here."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is dict:
        return isinstance(value, dict) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if kind is list:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    return type(value) in ((int, float) if kind is float else (kind,))
