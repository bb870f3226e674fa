"""Findings in pydantic's models: how a validator refuses a value with a code, and how the code is read again."""

from __future__ import annotations

from typing import Final

from pydantic_core import ErrorDetails, PydanticCustomError

from karpstack.karpenter.findings import Catalogue

from .shown import visible

_REFUSED: Final = "refused"


def refuse(catalogue: Catalogue, code: str, /, **words: object) -> PydanticCustomError:
    """Return the error by which a validator refuses a value.

    Args:
        catalogue: Has the words of the code.
        code: Of an entry.
        words: What stands in the braces of the entry.
    """
    consequence, fix, _ = catalogue.words(code, words)
    return PydanticCustomError(
        _REFUSED, "{text}", {"text": visible(f"{consequence}; {fix}"), "code": code, "words": words}
    )


def refused(details: ErrorDetails) -> tuple[str, dict[str, object]] | None:
    """Return code and words of what `refuse` refused; None for another error of pydantic's."""
    context = details.get("ctx", {})
    return (context["code"], context["words"]) if details["type"] == _REFUSED else None


def readable_message(details: ErrorDetails) -> str:
    """What pydantic says of an error, or who raised it."""
    said = details["msg"]
    return said.removeprefix("Value error, ") if details["type"] == "value_error" else f"{said[0].lower()}{said[1:]}"
