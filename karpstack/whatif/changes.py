"""What `pulumi up` changed, by the engine's own log of events (`--event-log`), in which each line is an event.

The form is `apitype.EngineEvent` of github.com/pulumi/pulumi (sdk/go/common/apitype/events.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What upgrades are known by; of other properties the names alone are told, for a value may be a secret.
_VERSIONS = ("version", "kubernetesVersion")
# Of a replacement there are three steps; this is the one that stands for it.
_CHANGING = ("create", "update", "delete", "replace", "import")


class ChangesError(ValueError):
    """The log cannot be read; the text says why."""


def changes(log: Path) -> list[dict[str, str]]:
    """The resources that were changed, in the engine's order: `op`, `type`, `name`, and `what` of an update.

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
            differing = ", ".join(_changed_properties(step))
            yield {
                "op": step["op"],
                "type": step["type"],
                "name": step["urn"].rpartition("::")[2],
                **({"what": differing} if differing else {}),
            }


def _changed_properties(step: dict[str, Any]) -> Iterator[str]:
    """The properties that differ; of a version also how."""
    old, new = ((step.get(side) or {}).get("inputs") or {} for side in ("old", "new"))
    for key in step.get("diffs") or ():
        before, after = old.get(key), new.get(key)
        told = key in _VERSIONS and isinstance(before, str) and isinstance(after, str)
        yield f"{key} {before} to {after}" if told else str(key)
