"""Reads a report.json, which somebody else may have written, and refuses what is not one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..text import shown
from .schema import SCHEMA, Report

BYTES = 64 * 1024 * 1024  # thirty times the report of 5,000 pods
_FIX = "run the scale test again, or make the report anew from its timeline"


class ReportError(ValueError):
    """What is no report that can be used; the text has a line for each thing that is wrong."""


def read(path: Path) -> dict[str, Any]:
    """The report of a file, in which every value is what `schema` says.

    Raises:
        ReportError: It cannot be read or is not a report of this schema.
    """
    try:
        with path.open("rb") as file:
            content = file.read(BYTES + 1)
    except OSError as error:
        raise ReportError(f"its report.json cannot be read ({error.strerror})") from error
    if len(content) > BYTES:
        raise ReportError(f"its report.json has more than {BYTES // 2**20} MiB, so it is not read; {_FIX}")
    return parse(content)


def parse(content: bytes) -> dict[str, Any]:
    """The report that JSON holds, in which every value is what `schema` says.

    Raises:
        ReportError: It is not a report of this schema.
    """
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
