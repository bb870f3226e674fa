"""Reads a report.json, which somebody else may have written, and refuses what is not one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from karpstack.text import shown
from karpstack.text.files import ResultError, read_result
from karpstack.text.json_file import values_at_most

from .schema import SCHEMA, Report

BYTES = 64 * 1024 * 1024  # thirty times the report of 5,000 pods
_VALUES = 2_000_000  # five times those of 5,000 pods
_FIX = "run the scale test again, or make the report again from its timeline"


class ReportError(ValueError):
    """What is no report that can be used; the text has a line for each thing that is wrong."""


def read(path: Path) -> dict[str, Any]:
    """The report of a file, in which every value is what `schema` says.

    Raises:
        ReportError: It cannot be read or is not a report of this schema.
    """
    try:
        content = read_result(path.parent, path.name, most=BYTES)
    except ResultError as error:
        raise ReportError(f"its report cannot be read: {error}; or {_FIX}") from error
    if content is None:
        raise ReportError("its report.json cannot be read (it is not there)")
    return parse(content)


def parse(content: bytes) -> dict[str, Any]:
    """The report that JSON holds, in which every value is what `schema` says.

    Raises:
        ReportError: It is not a report of this schema.
    """
    if values_at_most(content) > _VALUES:
        raise ReportError(f"its report.json has more than {_VALUES:,} values, so it is not read; {_FIX}")
    try:
        report = Report.model_validate_json(content, strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        for details in errors:
            if details["loc"] == ("schema",) and details["type"] == "literal_error":
                had = shown.value(details["input"])
                raise ReportError(f"the report has schema {had}, only schema {SCHEMA} can be used: {_FIX}") from error
        lines = [
            f"{shown.key(details['loc']) or 'report.json'}: {shown.value(details['input'])}: {details['msg']}, "
            f"so it is not a report; {_FIX}"
            for details in errors[: shown.LINES + 1]
        ]
        raise ReportError(shown.message(lines)) from error
    return report.model_dump(mode="json", by_alias=True, exclude_unset=True)
