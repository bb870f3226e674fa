"""Values that have come from somebody else's program: read as what a rule takes them for, or not at all.

A rule says `spec.limits.cpu` and means a quantity. Where there is something else, reading it raises UnreadableError
with the place and the value, so that no rule has to ask, and none ends in a TypeError of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulumi_policy.proxy import UnknownValueError

_LONGEST: Final = 2_000
_LONGEST_VALUE: Final = 120

#: In the shape of an object: any key that has no shape of its own.
EACH: Final = "*"


@dataclass(frozen=True)
class Kind:
    """What a single value may be: in words for people, and as a test."""

    words: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True)
class Either:
    """Several shapes, of which the first that fits counts."""

    shapes: tuple[Shape, ...]


#: A kind; an object's shapes by key; a list with the shape of each entry in it; None for anything.
Shape = Kind | Either | Mapping[str, "Shape"] | list["Shape"] | None


class UnreadableError(Exception):
    """A value is not what a rule takes it for; the text says where, what was expected and what is there."""

    def __init__(self, path: str, value: Any, wanted: str, urn: str | None = None) -> None:
        """`path` is that in the resource; `urn` is the resource's, where the reader has several."""
        of = f" of {name_of(urn)}" if urn else ""
        super().__init__(f"{path or 'the resource'}{of} is not {wanted} and can't be judged: {_shown(value)}.")
        self.urn = urn


def read(value: Any, shape: Shape, path: str = "", urn: str | None = None) -> Any:
    """A value in which reading anything of another shape raises UnreadableError; None, which is nothing, has any.

    Args:
        value: Objects, lists and scalars; reading one of them may raise UnknownValueError.
        shape: What it is expected to be.
        path: Where it stands in its resource, for people.
        urn: The resource's, where the reader has several.

    Raises:
        UnreadableError: The value itself is of another shape.
    """
    if value is None:
        return None
    fitting = _fitting(value, shape)
    if fitting is _NONE_FITS:
        raise UnreadableError(path, value, _words(shape), urn)
    if isinstance(value, Mapping):
        return _Object(value, fitting if isinstance(fitting, Mapping) else {}, path, urn)
    if _is_list(value):
        return _List(value, fitting[0] if isinstance(fitting, list) else None, path, urn)
    return value


def parsed(text: Any, shape: Shape, wanted: str, path: str, urn: str | None = None) -> Any:
    """The same for an object that may be written as JSON text; `wanted` says what it is.

    Raises:
        UnreadableError: It is neither.
    """
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise UnreadableError(path, text, wanted, urn) from error
    if not isinstance(value, Mapping):
        raise UnreadableError(path, text, wanted, urn)
    return read(value, shape, path, urn)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice, and which of them counts is the reader's choice")
    return found


def readable(text: str) -> str:
    """A text that can be shown: not too long, and with nothing in it that a terminal obeys."""
    cut = _cut(text, _LONGEST)
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in cut)


class _Object(Mapping[str, Any]):
    def __init__(self, content: Mapping[str, Any], shapes: Mapping[str, Shape], path: str, urn: str | None) -> None:
        self._content = content
        self._shapes = shapes
        self._path = path
        self._urn = urn

    def __getitem__(self, key: str) -> Any:
        path = f"{self._path}.{key}" if self._path else key
        return read(
            _entry(self._content, key, self._urn), self._shapes.get(key, self._shapes.get(EACH)), path, self._urn
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


class _List(Sequence[Any]):
    def __init__(self, content: Sequence[Any], shape: Shape, path: str, urn: str | None) -> None:
        self._content = content
        self._shape = shape
        self._path = path
        self._urn = urn

    def __getitem__(self, index: Any) -> Any:
        path = f"{self._path}[{index}]"
        value = _entry(self._content, index, self._urn)
        if value is None and self._shape is not None:
            raise UnreadableError(path, value, _words(self._shape), self._urn)
        return read(value, self._shape, path, self._urn)

    def __len__(self) -> int:
        return len(self._content)


def _entry(content: Any, key: Any, urn: str | None) -> Any:
    """What is at a key or an index; one that is unknown names its resource, where the reader has several."""
    try:
        return content[key]
    except UnknownValueError as unknown:
        if urn is None:
            raise
        raise UnknownValueError(unknown.unknown_type_sentinel, [name_of(urn), *unknown.props]) from unknown


def name_of(urn: str) -> str:
    """The logical name of the resource."""
    return urn.rsplit("::", 1)[-1]


_NONE_FITS: Final = Kind("nothing", lambda _: False)


def _fitting(value: Any, shape: Shape) -> Shape:
    """The part of a shape that a value has; `_NONE_FITS` where there is none."""
    fits = True
    match shape:
        case Either():
            fitting = (_fitting(value, part) for part in shape.shapes)
            return next((part for part in fitting if part is not _NONE_FITS), _NONE_FITS)
        case Kind():
            fits = shape.accepts(value)
        case list():
            fits = _is_list(value)
        case Mapping():
            fits = isinstance(value, Mapping)
    return shape if fits else _NONE_FITS


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _words(shape: Shape) -> str:
    match shape:
        case Either():
            return " or ".join(map(_words, shape.shapes))
        case Kind():
            return shape.words
        case list():
            return "a list"
    return "an object"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if _is_list(value):
        return "a list"
    return "nothing" if value is None else _cut(json.dumps(value, default=str), _LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
