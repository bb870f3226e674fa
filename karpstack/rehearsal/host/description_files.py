"""Files that describe what the simulated account has already, in the format of the cloud's API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from karpstack.text.json_file import values_at_most

_T = TypeVar("_T")
#: Of a file: bytes and values; a thousand objects of a cluster have a tenth of that.
_BYTES, _VALUES = 16 * 2**20, 500_000
#: Kinds of objects whose API server calls somebody.
_CALLING = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"})
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
        return parse(json.loads(_content(path)))
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


def refuse_calls(items: Iterable[Mapping[str, Any]]) -> None:
    """Refuse objects by which the API server, which runs on this machine, would call any address.

    Raises:
        DescriptionError: There is one.
    """
    for item in items:
        kind, name = item.get("kind"), (item.get("metadata") or {}).get("name")
        if kind in _CALLING and _has_address(item):
            raise DescriptionError(
                f"items: the {kind} {name!r:.100} has a webhook with a url, so the API server on this machine would "
                "send objects, Secrets among them, to that address; leave it out of the file"
            )


def _has_address(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_address, value))
    if not isinstance(value, dict):
        return False
    config = value.get("clientConfig")
    return (isinstance(config, dict) and bool(config.get("url"))) or any(map(_has_address, value.values()))


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_BYTES + 1)
    if len(content) > _BYTES or values_at_most(content) > _VALUES:
        raise ValueError(f"it has more than {_BYTES // 2**20} MiB or {_VALUES:,} values; leave out what nothing needs")
    return content
