"""Answers of clouds and API servers, whose faults are errors that the checks know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from karpstack.text import answers

from .finding import NotAskedError

#: What is raised where an answer in JSON is not as the one who reads it expects.
OTHER_SHAPE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_Answer = TypeVar("_Answer")


def read(
    call: str, ask: Callable[[], _Answer], response: Callable[[_Answer], Any], allowance: answers.Allowance | None
) -> tuple[_Answer, bytes]:
    """Return an answer and its body, as `answers.read` in karpstack/text does.

    Raises:
        NotAskedError: The answer, or all together, is longer or takes longer.
    """
    with _of(call):
        return answers.read(ask, response, allowance=allowance)


def parse(call: str, content: bytes) -> dict[str, Any]:
    """The object that an answer is.

    Raises:
        NotAskedError: It is no JSON, or another value.
    """
    with _of(call):
        return answers.parse(content)


def items(call: str, page: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects in a page of a list.

    Raises:
        NotAskedError: It holds no list, or something else in it.
    """
    with _of(call):
        yield from answers.items(page, key)


@contextmanager
def _of(call: str) -> Iterator[None]:
    try:
        yield
    except answers.AnswerError as error:
        raise NotAskedError(call, str(error), refused=False) from error
