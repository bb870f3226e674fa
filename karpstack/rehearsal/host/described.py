"""Files beside a stack's that describe what its simulated account has already, in the words of the cloud's API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

_T = TypeVar("_T")
#: So many mistakes of a file are told at once.
_MOST = 20


class DescriptionError(ValueError):
    """A file is not what the cloud would answer, or the rehearsal cannot play it; the text names place and fix."""


def read(
    path: Path, parse: Callable[[Any], _T], error: type[DescriptionError], *, what: str, command: str, page: str
) -> _T:
    """Read a file.

    Args:
        parse: Makes a model of its JSON.
        what: What it describes, in words: `network`.
        command: Whose answer it is to be.
        page: The page that says how it is written.

    Raises:
        DescriptionError: It is not what the cloud would answer; an `error`, with the file's path.
    """
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except DescriptionError as refused:
        raise error(f"{path}: {refused}") from refused
    except ValidationError as invalid:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in invalid.errors()[:_MOST])
        raise error(
            f"{path}: {wrong}, so that this {what} could not be rehearsed; write it as `{command}` does, see {page}"
        ) from invalid
    except json.JSONDecodeError as broken:
        raise error(
            f"{path}, line {broken.lineno}, column {broken.colno}: {broken.msg}, so it is no JSON and nothing of it "
            f"could be rehearsed; mend that line, or write the file again as {page} says"
        ) from broken
    except (OSError, ValueError, RecursionError) as broken:
        raise error(f"{path} cannot be read as JSON: {broken}; see {page}") from broken
