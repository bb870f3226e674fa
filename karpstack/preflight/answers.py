"""What is read of an answer in JSON: so many bytes, an object, and otherwise an error that the checks know."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from urllib3.exceptions import IncompleteRead

from karpstack.text.json_file import exceeds_values

from .finding import NotAskedError

SECONDS: Final = 120  # for a question, with all its repetitions
PAGES: Final = 1_000  # of one list
BYTES: Final = 64 * 1024 * 1024  # of one answer; a page of 500 large pods has a tenth of that
_CHUNK: Final = 2**16  # bytes
VALUES: Final = 4_000_000  # of one answer; each takes some hundred bytes of memory
_LONGEST: Final = 300  # characters of an answer that refuses


def read(call: str, chunks: Iterable[bytes]) -> bytes:
    """A body, of a size and in a time that can be handled.

    Raises:
        NotAskedError: It is longer, or takes longer.
    """
    until = time.monotonic() + SECONDS
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > BYTES:
            raise NotAskedError(call, f"the answer is longer than {BYTES} bytes", refused=False)
        if time.monotonic() > until:
            raise NotAskedError(call, f"the answer takes longer than {SECONDS} s", refused=False)
    return bytes(content)


def chunks(response: Any) -> Iterator[bytes]:
    """What urllib3 reads of a body, as it comes: who waits for a whole chunk waits for as long as a server drips."""
    while chunk := response.read1(_CHUNK, decode_content=True):
        yield chunk
    if response.length_remaining:
        raise IncompleteRead(response.tell(), response.length_remaining)


def parse(call: str, content: bytes) -> dict[str, Any]:
    """The object that an answer is.

    Raises:
        NotAskedError: It is no JSON, or another value.
    """
    if exceeds_values(content, VALUES):
        raise NotAskedError(call, f"the answer has more than {VALUES:,} values", refused=False)
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
