"""Files beside a stack's that describe what its rehearsed account has already, in the words of the cloud's API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

_T = TypeVar("_T")


class DescriptionError(ValueError):
    """A file is not what the cloud would answer, or the rehearsal cannot play it; the text names place and fix."""


def read(
    path: Path, parse: Callable[[Any], _T], error: type[DescriptionError], *, what: str, command: str, page: str
) -> _T:
    """Read a file.

    Args:
        path: Where it is.
        parse: Makes a model of its JSON.
        error: What is raised.
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
        first = invalid.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise error(
            f"{path}: {place}: {first['msg']}, so that this {what} could not be rehearsed; write it as "
            f"`{command}` does, see {page}"
        ) from invalid
    except (OSError, ValueError, RecursionError) as broken:
        raise error(f"{path} cannot be read as JSON: {broken}; see {page}") from broken
