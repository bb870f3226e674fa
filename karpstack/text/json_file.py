"""Reads JSON that somebody else may have written: plain, or compressed by gzip, and within limits.

Standard library only, as `files` is.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Final, NoReturn

from .files import open_file
from .shown import cut, visible

_GZIP: Final = b"\x1f\x8b"
#: What begins a value, or parts two: an upper bound of how many values there are, found before any is made.
_COLUMNS, _BEFORE = 500, 60  # characters
_STRUCTURE: Final = (b"{", b"[", b",")
_OUTPUTS: Final = 64 * 2**20, 100, 1_000_000  # bytes, levels and values of a stack's outputs
_PART: Final = "take a part of the cluster, for example some of its namespaces"


class FileError(ValueError):
    """A file that is not read; the text says which, why, and what to do.

    Attributes:
        path: The file.
        why: What is wrong with it.
        fix: What to do.
    """

    def __init__(self, path: Path, why: str, fix: str) -> None:
        super().__init__(f"{path}: {why}, so nothing of it is read; {fix}")
        self.path, self.why, self.fix = path, why, fix


def read(path: Path, *, most: int, depth: int, values: int) -> Any:
    """What a JSON file holds.

    Args:
        path: The file.
        most: Bytes at most, when it is not compressed.
        depth: Levels of lists and mappings at most.
        values: Values at most, in all lists and mappings together.

    Raises:
        FileError: It cannot be read, is not JSON, holds a key twice, or is larger or deeper than it may be.
    """
    return parse(content(path, most=most), path, depth=depth, values=values)


def outputs(path: Path) -> dict[str, Any]:
    """The outputs of a stack, as `pulumi stack output --json` prints them.

    Raises:
        FileError: As of `read`, or it is no object.
    """
    most, depth, values = _OUTPUTS
    fix = "give --outputs a file with what `pulumi stack output --json` prints"
    try:
        found = read(path, most=most, depth=depth, values=values)
    except FileError as error:
        raise FileError(path, error.why, fix) from error
    if not isinstance(found, dict):
        raise FileError(path, f"is no object of outputs, but {type(found).__name__} in JSON", fix)
    return found


def content(path: Path, *, most: int) -> bytes:
    """The bytes of a file, not compressed.

    Raises:
        FileError: It cannot be read, or holds more than `most` bytes.
    """
    try:
        with open_file(path) as file:
            compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if compressed:
                with gzip.open(file) as inside:
                    found = inside.read(most + 1)
            else:
                found = file.read(most + 1)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror or error})", "give a file that can") from error
    except (EOFError, zlib.error) as error:
        raise FileError(path, f"half a compressed file ({error})", "copy it again") from error
    if len(found) > most:
        raise FileError(path, f"has more than {most // 2**20} MiB", _PART)
    return found


def parse(text: bytes, path: Path, *, depth: int, values: int) -> Any:
    """What JSON holds; `path` is named in errors.

    Raises:
        FileError: As of `read`.
    """
    if values_at_most(text) > values:
        raise FileError(path, f"has more than {values:,} values", _PART)
    try:
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except RecursionError as error:
        raise _too_deep(path, depth) from error
    except ValueError as error:
        why = f"not JSON ({cut(visible(_where(error)), 200)})"
        raise FileError(path, why, "write it with `kubectl get -o json` or `karpstack snapshot`") from error
    _measure(value, path, depth)
    return value


def values_at_most(text: bytes) -> int:
    """How many values JSON may hold, at most; known before anything is made of it."""
    return sum(map(text.count, _STRUCTURE))


def _where(error: ValueError) -> str:
    """What is wrong, and where: of a long line, the text before, for nobody counts columns there."""
    if not isinstance(error, json.JSONDecodeError) or error.colno <= _COLUMNS:
        return str(error)
    return f"{error.msg}: line {error.lineno}, after {error.doc[error.pos - _BEFORE : error.pos]!r}"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {cut(repr(twice), 60)} is there twice, of which one would be lost")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _measure(value: Any, path: Path, depth: int) -> None:
    """Refuse what is too deep, and numbers that are none to reckon with."""
    level = [value]
    for _ in range(depth + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, float) and not math.isfinite(one):
                raise FileError(path, "has a number that is too large to reckon with", "write another")
        if not below:
            return
        level = below
    raise _too_deep(path, depth)


def _too_deep(path: Path, depth: int) -> FileError:
    return FileError(path, f"more than {depth} levels deep", "nothing of a cluster is so deep")
