"""What is read of an answer in JSON: so many bytes, an object, and otherwise an error that the checks know."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from .finding import NotAskedError

SECONDS: Final = 120  # for a question, with all its repetitions
PAGES: Final = 1_000  # of one list
_BYTES: Final = 64 * 1024 * 1024  # of one answer; a page of 500 large pods has a tenth of that
_LONGEST: Final = 300  # characters of an answer that refuses
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def read(call: str, chunks: Iterable[bytes]) -> bytes:
    """A body, of a size and in a time that can be handled.

    Raises:
        NotAskedError: It is longer, or takes longer.
    """
    until = time.monotonic() + SECONDS
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > _BYTES:
            raise NotAskedError(call, f"the answer is longer than {_BYTES} bytes", refused=False)
        if time.monotonic() > until:
            raise NotAskedError(call, f"the answer takes longer than {SECONDS} s", refused=False)
    return bytes(content)


def parse(call: str, content: bytes) -> dict[str, Any]:
    """The object that an answer is.

    Raises:
        NotAskedError: It is no JSON, or another value.
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotAskedError(call, f"the answer is no JSON ({error}): {begins(content)}", refused=False) from error
    if not isinstance(found, dict):
        raise NotAskedError(call, f"the answer is no object: {begins(content)}", refused=False)
    return found


def items(call: str, page: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects in a page of a list.

    Raises:
        NotAskedError: It holds no list, or something else in it.
    """
    listed = page.get(key)
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise NotAskedError(call, f"the answer has no list of objects under {key}", refused=False)
    yield from listed


def begins(content: bytes) -> str:
    """The beginning of an answer, for people."""
    return content[:_LONGEST].decode(errors="replace")


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine: a proxy has no business between."""
    return (urlsplit(url).hostname or "").lower() in _LOOPBACK
