"""Questions about what may not be there: "there is none" is one answer, "whoever deploys may not ask" is another.

The SDK has one type of exception for both; `settings.aws_answers` reads its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pulumi

from ..settings import aws_answers

_Answer = TypeVar("_Answer")


class _RefusedError(Exception):
    """AWS refuses a question, and what is unknown without its answer stands in `unknown`."""

    def __init__(self, text: str, unknown: str) -> None:
        super().__init__(text)
        self.unknown = unknown


def unless_absent(ask: Callable[[], _Answer], unknown: str) -> _Answer | None:
    """An answer; None where the account says that there is no such thing.

    Args:
        ask: Asks the provider.
        unknown: What is unknown without the answer, and why that matters: `whether ...`. Said by `looking`.
    """
    try:
        return ask()
    except Exception as error:  # the SDK has no type of its own for what AWS answers
        text = str(error)
        if aws_answers.is_absent(text):
            return None
        if aws_answers.is_refused(text):
            raise _RefusedError(text, unknown) from error
        raise


def is_there(ask: Callable[[], object], unknown: str) -> bool:
    """Whether there is one such thing, or more of them; the arguments are those of `unless_absent`."""
    try:
        return unless_absent(ask, unknown) is not None
    except Exception as error:  # as above
        if aws_answers.is_several(str(error)):
            return True
        raise


@contextmanager
def looking(section: str, field: str, value: object, unknown: str) -> Iterator[None]:
    """Say of a look, whose questions are asked inside, which right is missing where AWS refuses one of them.

    Args:
        section: With `field` the setting by which that is meant which is looked at.
        field: See there.
        value: Of that setting.
        unknown: What is unknown without a question that does not say so itself.

    Raises:
        SettingsError: Whoever deploys may not ask.
    """
    try:
        yield
    except pulumi.RunError:  # of an answer, which may tell of rights too
        raise
    except Exception as error:  # as above
        if not aws_answers.is_refused(str(error)):
            raise
        what = error.unknown if isinstance(error, _RefusedError) else unknown
        raise aws_answers.not_allowed(section, field, value, str(error), what) from error
