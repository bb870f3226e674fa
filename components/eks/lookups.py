"""Lookups of objects that may not exist: "not found" and "access denied" are different answers.

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


def get_if_exists(ask: Callable[[], _Answer], unknown: str) -> _Answer | None:
    """Return the answer; None if the account says that the object does not exist.

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


def exists(ask: Callable[[], object], unknown: str) -> bool:
    """Whether at least one such object exists; the arguments are those of `get_if_exists`."""
    try:
        return get_if_exists(ask, unknown) is not None
    except Exception as error:  # as above
        if aws_answers.is_several(str(error)):
            return True
        raise


@contextmanager
def name_missing_permission(section: str, field: str, value: object, unknown: str) -> Iterator[None]:
    """Name the missing permission if AWS denies one of the lookups inside.

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
        raise aws_answers.permission_error(section, field, value, str(error), what) from error
