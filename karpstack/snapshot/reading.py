"""Reads and writes snapshots: as a whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from karpstack.text import files, json_file, shown
from karpstack.text.json_file import FileError

from .formats import WORDS, models_in
from .model import KIND, VERSION, Snapshot

_MOST: Final = 64 * 2**20  # bytes; 5,000 pods have less than two million
_DEPTH: Final = 40
_VALUES: Final = 1_000_000  # the example of 1,000 pods has less than ten thousand
_MISTAKES: Final = 20_000  # to say all of more takes memory that nobody has
_GZIP_WINDOW: Final = 31  # as zlib has it: with gzip's header
_BEGINNING: Final = 200  # bytes
_BEGINS: Final = re.compile(rb'\s*\{\s*"kind":\s*"%b"' % KIND.encode())
#: Fields that other files have, and what to do with those.
_OTHERS: Final = {
    "items": "it is an export of kubectl; read it with `karpstack snapshot convert`",
    "captured": "it is kubereplay's; read it with `karpstack snapshot convert`",
    "pod_lifecycles": "it is a trace of SimKube's; read it with `karpstack snapshot convert`",
}


class SnapshotError(ValueError):
    """A file that is no snapshot, or not a whole one; the text has each key, value, consequence and fix."""


class Read(NamedTuple):
    """A snapshot, and what of its file was passed over because it was asked to be: a sentence each."""

    snapshot: Snapshot
    passed_over: tuple[str, ...] = ()


def load(path: Path, *, known_only: bool = False) -> Read:
    """Read a snapshot, plain or compressed by gzip.

    Args:
        path: The file.
        known_only: Read a file of a newer format, and one with keys that are not known, as far as it is known.

    Raises:
        SnapshotError: It is no snapshot of this format, or holds what cannot be; nothing of it is loaded.
    """
    try:
        data = json_file.read(path, most=_MOST, depth=_DEPTH, values=_VALUES)
    except FileError as error:
        raise SnapshotError(shown.message([str(error)])) from error
    try:
        return checked(data, known_only=known_only)
    except SnapshotError as error:
        raise SnapshotError(f"{shown.visible(path)} is not loaded:\n{error}") from error


def checked(data: Any, *, known_only: bool = False) -> Read:
    """A snapshot from what JSON holds; as `load` otherwise.

    Raises:
        SnapshotError: As of `load`.
    """
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise SnapshotError(_no_snapshot(data))
    passed_over: list[str] = []
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        if not known_only:
            raise SnapshotError(
                f"version: {shown.value(version)}: a newer format than this one ({VERSION}), whose fields could mean "
                "something else; take a newer karpstack, take the snapshot anew with this one, or read what is known "
                "of it with --known-only"
            )
        passed_over.append(f"version: {shown.value(version)}: read as if it were {VERSION}")
        data = {**data, "version": VERSION}
    try:
        return Read(_validated(data), tuple(passed_over))
    except ValidationError as error:
        if error.error_count() > _MISTAKES:
            raise SnapshotError(
                f"(the whole file): has {error.error_count():,} mistakes, so it is no snapshot that karpstack wrote "
                "and nothing of it is read; take it again with playbooks/snapshot.yml"
            ) from error
        details = error.errors(include_url=False)
    unknown = [one for one in details if one["type"] == "extra_forbidden"]
    if not known_only or not unknown:
        raise SnapshotError(shown.message([_explained(one) for one in details]))
    for one in unknown:
        data = _without(data, one["loc"])
        passed_over.append(f"{shown.key(one['loc'])}: not known, so it is passed over")
    try:
        return Read(_validated(data), tuple(passed_over))
    except ValidationError as error:
        raise SnapshotError(explained(error)) from error


def explained(error: ValidationError) -> str:
    """What is wrong, a line each: key, value, consequence and fix."""
    return shown.message([_explained(one) for one in error.errors(include_url=False)])


def as_data(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as JSON has it, without what is as when it is not said."""
    return snapshot.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def check_output(path: Path, option: str) -> None:
    """Refuse a path at which a snapshot may not be written: only an older snapshot is replaced.

    Raises:
        SnapshotError: Something else is there.
    """
    try:
        files.check_output(path, option, "snapshot", _begins_as_one)
    except files.OutputError as error:
        raise SnapshotError(str(error)) from error


def write(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot as a whole: compressed where the name ends in `.gz`. See `check_output` first.

    Raises:
        OSError: The file cannot be written; what was there is as before.
    """
    text = (json.dumps(as_data(snapshot), indent=2) + "\n").encode()
    # Without a time in it: the same snapshot is the same file.
    files.write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _begins_as_one(beginning: bytes) -> bool:
    with suppress(zlib.error):
        beginning = zlib.decompressobj(_GZIP_WINDOW).decompress(beginning, _BEGINNING)
    return _BEGINS.match(beginning) is not None


def _validated(data: Any) -> Snapshot:
    # As JSON: only there is a time a text, and only by their aliases are keys read.
    return Snapshot.model_validate_json(json.dumps(data), by_alias=True, by_name=False)


def _no_snapshot(data: Any) -> str:
    keys = data if isinstance(data, Mapping) else {}
    what = next((what for key, what in _OTHERS.items() if key in keys), "take one with playbooks/snapshot.yml")
    found = shown.value(keys.get("kind")) if "kind" in keys else "missing"
    return f"kind: {found}: only {KIND} is one, so nothing could be read from it; {what}"


def _explained(details: ErrorDetails) -> str:
    """One of pydantic's errors as key, value, consequence and fix."""
    key, value = shown.key(details["loc"]) or "(the whole file)", shown.value(details["input"])
    match details["type"]:
        case "extra_forbidden":
            known = ", ".join(_keys(details["loc"][:-1]))
            return f"{key}: {value}: unknown, so it would have no effect; use of {known}, or give --known-only"
        case "missing":
            return f"{key}: missing, so nothing of the file is read; add it"
        case "string_pattern_mismatch":
            words = WORDS.get(str(details["ctx"]["pattern"]), "right")
            return f"{key}: {value}: Kubernetes would refuse it, for it is not {words}; mend it"
        case "value_error":
            message = details["msg"].removeprefix("Value error, ")
            return f"{key}: {message}" if key == "(the whole file)" else f"{key}: {value}: {message}"
    message = f"{details['msg'][0].lower()}{details['msg'][1:]}"
    return f"{key}: {value}: {message}; nothing of the file is read until it is mended"


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys of the mapping at a place of a snapshot."""
    model: type[BaseModel] = Snapshot
    for part in location:
        for name, field in model.model_fields.items():
            if part == (field.alias or name):
                model = next(models_in(field.annotation), model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _without(data: Any, location: tuple[int | str, ...]) -> Any:
    """The same without what is at a place."""
    first, *rest = location
    if not rest:
        return {key: value for key, value in data.items() if key != first}
    if isinstance(data, list):
        return [_without(one, tuple(rest)) if place == first else one for place, one in enumerate(data)]
    if isinstance(data, dict) and first in data:
        return {**data, first: _without(data[first], tuple(rest))}
    # Pydantic names a member of a union too, which is no key of the file.
    return _without(data, tuple(rest))
