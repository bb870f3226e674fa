"""What is read of an answer in JSON or XML: so many bytes and values in so much time, an object, a list of objects."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from urllib3.exceptions import HTTPError, IncompleteRead

from .deadlines import within
from .json_file import values_at_most

SECONDS: Final = 120  # for a question, with all its repetitions
PAGES: Final = 1_000  # of one list
BYTES: Final = 64 * 1024 * 1024  # of one answer; a page of 500 large pods has a tenth of that
BYTES_IN_ALL: Final = 2 * 1024**3  # of all answers to one who asks; 100,000 pods have half of that
SECONDS_IN_ALL: Final = 1_800
_CHUNK: Final = 2**16  # bytes
VALUES: Final = 4_000_000  # of one answer; each takes some hundred bytes of memory
_LONGEST: Final = 300  # characters of an answer that refuses
_Answer = TypeVar("_Answer")


class AnswerError(Exception):
    """An answer that cannot be used; the text says why."""


@dataclass
class Allowance:
    """What all answers to one who asks may have together, so that no number of pages fills the memory.

    Attributes:
        seconds: For all of them, from now on.
        size: Bytes that are left.
    """

    seconds: float = SECONDS_IN_ALL
    size: int = field(default_factory=lambda: BYTES_IN_ALL)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def left(self) -> float:
        """Return the seconds that are left for another answer.

        Raises:
            AnswerError: There are none.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise AnswerError(f"all answers together take longer than {self.seconds:g} s")
        return left

    def take(self, content: bytes) -> None:
        """Count an answer.

        Raises:
            AnswerError: It is one too many.
        """
        self.size -= len(content)
        if self.size < 0:
            raise AnswerError(f"all answers together are longer than {BYTES_IN_ALL} bytes")


def read(
    ask: Callable[[], _Answer],
    response: Callable[[_Answer], Any],
    seconds: float = math.inf,
    allowance: Allowance | None = None,
) -> tuple[_Answer, bytes]:
    """Return an answer and its body. Bytes and values are limited, and the time from the request to the last byte.

    Args:
        ask: Sends the request, and returns the answer as soon as its headers have arrived.
        response: Returns urllib3's response of the answer.
        seconds: How long all of it may take, if that is less than `SECONDS`.
        allowance: What is left for all answers.

    Raises:
        AnswerError: The answer is longer, takes longer, holds more, or cannot be read.
    """

    def act() -> tuple[_Answer, bytes]:
        try:
            answer = ask()
        except HTTPError:  # some of urllib3's errors are a ValueError too
            raise
        except ValueError as error:  # urllib3 parses the address of a redirect also if it does not follow it
            raise AnswerError(f"the answer cannot be read: {error}") from error
        return answer, _body(response(answer))

    seconds = min(seconds, SECONDS, allowance.left() if allowance else SECONDS)
    try:
        answer, content = within(seconds, act)
    except TimeoutError as error:
        raise AnswerError(str(error)) from error
    if max(values_at_most(content), content.count(b"<")) > VALUES:  # of JSON, or of XML
        raise AnswerError(f"the answer has more than {VALUES:,} values")
    if allowance:
        allowance.take(content)
    return answer, content


def _body(response: Any) -> bytes:
    content = bytearray()
    # read1 returns the bytes that have arrived, so the size is checked early.
    while chunk := response.read1(_CHUNK, decode_content=True):
        content += chunk
        if len(content) > BYTES:
            raise AnswerError(f"the answer is longer than {BYTES} bytes")
    if response.length_remaining:
        raise IncompleteRead(response.tell(), response.length_remaining)
    return bytes(content)


def parse(content: bytes) -> dict[str, Any]:
    """The object that an answer is.

    Raises:
        AnswerError: It is no JSON, or another value.
    """
    found = parse_any(content)
    if not isinstance(found, dict):
        raise AnswerError(f"the answer is no object: {begins(content)}")
    return found


def parse_any(content: bytes) -> Any:
    """The value that an answer is.

    Raises:
        AnswerError: It is no JSON.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer is no JSON ({error}): {begins(content)}") from error


def items(page: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects in a page of a list.

    Raises:
        AnswerError: It holds no list, or something else in it.
    """
    listed = page.get(key)
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise AnswerError(f"the answer has no list of objects under {key}")
    yield from listed


def begins(content: bytes) -> str:
    """The beginning of an answer, for people."""
    return content[:_LONGEST].decode(errors="replace")
