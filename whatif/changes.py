"""What `pulumi up` changed, by the engine's own log of events (`--event-log`), in which each line is an event.

The form is `apitype.EngineEvent` of github.com/pulumi/pulumi (sdk/go/common/apitype/events.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Of a replacement there are three steps; this is the one that stands for it.
_CHANGING = ("create", "update", "delete", "replace", "import")


class ChangesError(ValueError):
    """The log cannot be read; the text says why."""


def changes(log: Path) -> list[dict[str, str]]:
    """The resources that were changed, in the engine's order: `op`, `type`, `name`.

    Raises:
        ChangesError: There is no such log, or a line of it is no event.
    """
    try:
        return list(_changed(log.read_text().splitlines()))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ChangesError(f"{log}: Pulumi's events cannot be read ({error})") from error


def _changed(lines: list[str]) -> Iterator[dict[str, str]]:
    for line in lines:
        event: dict[str, Any] = json.loads(line)
        step = (event.get("resourcePreEvent") or {}).get("metadata")
        if step and step["op"] in _CHANGING:
            yield {"op": step["op"], "type": step["type"], "name": step["urn"].rpartition("::")[2]}
