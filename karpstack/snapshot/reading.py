"""Reads and writes snapshots: as a whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from karpstack.karpenter.findings import Finding
from karpstack.text import files, json_file, shown
from karpstack.text.json_file import FileError
from karpstack.text.validation import readable_message, refused

from .formats import WORDS, models_in
from .model import KIND, VERSION, Snapshot
from .problems import SnapshotError, finding

__all__ = ["Read", "SnapshotError", "as_data", "check_output", "checked", "explained", "load", "unreadable", "write"]

_MOST: Final = 64 * 2**20  # bytes; 5,000 pods have less than two million
_DEPTH: Final = 40
_VALUES: Final = 1_000_000  # the example of 1,000 pods has less than ten thousand
_MISTAKES: Final = 20_000  # to say all of more takes memory that nobody has
_GZIP_WINDOW: Final = 31  # as zlib has it: with gzip's header
_BEGINNING: Final = 200  # bytes
_BEGINS: Final = re.compile(rb'\s*\{\s*"kind":\s*"%b"' % KIND.encode())
_OF_A_FOLDER: Final = "exports of kubectl in a folder are read with `karpstack snapshot convert`"
#: Fields that other files have, and what to do with those.
_OTHERS: Final = {
    "items": "it is an export of kubectl; read it with `karpstack snapshot convert`",
    "captured": "it is kubereplay's; read it with `karpstack snapshot convert`",
    "pod_lifecycles": "it is a trace of SimKube's; read it with `karpstack snapshot convert`",
}


class Read(NamedTuple):
    """A snapshot, and what of its file was skipped because it was asked to be: a sentence each."""

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
        raise unreadable(error) from error
    try:
        return checked(data, known_only=known_only)
    except SnapshotError as error:
        raise SnapshotError.of(*(replace(one, file=str(path)) for one in error.findings)) from error


def unreadable(error: FileError) -> SnapshotError:
    """The error of a file that cannot be read."""
    fix = f"{error.fix}; {_OF_A_FOLDER}" if Path(error.path).is_dir() else error.fix
    return SnapshotError.of(finding("snapshot-file-unreadable", error.path, why=error.why, how=fix))


def checked(data: Any, *, known_only: bool = False) -> Read:
    """A snapshot from what JSON holds; as `load` otherwise.

    Raises:
        SnapshotError: As of `load`.
    """
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise SnapshotError.of(_no_snapshot(data))
    passed_over: list[str] = []
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        if not known_only:
            raise SnapshotError.of(
                finding("snapshot-version-newer", "", "version", shown.value(version), version=VERSION)
            )
        passed_over.append(f"version: {shown.value(version)}: read as if it were {VERSION}")
        data = {**data, "version": VERSION}
    try:
        return Read(_validated(data), tuple(passed_over))
    except ValidationError as error:
        if error.error_count() > _MISTAKES:
            raise SnapshotError.of(finding("snapshot-too-many-mistakes", count=error.error_count())) from error
        details = error.errors(include_url=False)
    unknown = [one for one in details if one["type"] == "extra_forbidden"]
    if not known_only or not unknown:
        raise SnapshotError.of(*map(_explained, details))
    for one in unknown:
        data = _without(data, one["loc"])
        passed_over.append(f"{shown.key(one['loc'])}: not known, so it is skipped")
    try:
        return Read(_validated(data), tuple(passed_over))
    except ValidationError as error:
        raise explained(error) from error


def explained(error: ValidationError) -> SnapshotError:
    """The error of what pydantic says is wrong."""
    return SnapshotError.of(*map(_explained, error.errors(include_url=False)))


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
        raise SnapshotError.of(finding("snapshot-output-exists", message=str(error))) from error


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


def _no_snapshot(data: Any) -> Finding:
    keys = data if isinstance(data, Mapping) else {}
    instead = next((what for key, what in _OTHERS.items() if key in keys), "take one with playbooks/snapshot.yml")
    found = shown.value(keys.get("kind")) if "kind" in keys else "missing"
    return finding("snapshot-kind", "", "kind", found, kind=KIND, instead=instead)


def _explained(details: ErrorDetails) -> Finding:
    """One of pydantic's errors."""
    words: dict[str, object] = {}
    match details["type"]:
        case "extra_forbidden":
            code, words = "snapshot-key-unknown", {"known": _keys(details["loc"][:-1])}
        case "missing":
            code = "snapshot-key-missing"
        case "string_pattern_mismatch":
            pattern = str(details["ctx"]["pattern"])
            code, words = "snapshot-pattern", {"pattern": WORDS.get(pattern, f"like {pattern}")}
        case _:
            code, words = refused(details) or ("snapshot-value-invalid", {"message": readable_message(details)})
    of_all = code == "snapshot-key-missing" or not details["loc"]
    value = "" if of_all else shown.value(details["input"])
    return finding(code, "", shown.key(details["loc"]) or "(the whole file)", value, **words)


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
