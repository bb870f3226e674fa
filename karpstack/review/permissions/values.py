"""Values of a preview for people: those that are known as they are, the others with what they wait for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..engine import SECRET, Resource, is_known, name_of

UNSAID: Final = "not known yet"


def text(resource: Resource, *path: str) -> str:
    """The value at a path; one that is not known is told by the resources that it comes from."""
    value: Any = resource.inputs
    for name in path:
        if not isinstance(value, Mapping):
            break
        value = value.get(name)
    if value is None:
        return ""
    if value == SECRET:
        return SECRET
    if not is_known(value) or isinstance(value, Mapping):
        names = [name_of(urn) for urn in resource.source(*path)]
        return f"of {', '.join(names)}" if names else UNSAID
    return str(value)


def shown(value: Any) -> str:
    """A value inside a document; what is not known in it is said."""
    if not is_known(value):
        return SECRET if value == SECRET else UNSAID
    return value if isinstance(value, str) else json.dumps(value)


def listed(value: Any) -> tuple[str, ...]:
    """IAM takes a single value wherever it takes a list."""
    if value is None:
        return ()
    return tuple(shown(entry) for entry in value) if isinstance(value, list | tuple) else (shown(value),)


def target(
    resource: Resource, name: str, candidates: Mapping[str, Resource], outputs: Sequence[str]
) -> Resource | None:
    """The resource that a property refers to: by where its value comes from, else by the value itself."""
    for urn in resource.source(name):
        if urn in candidates:
            return candidates[urn]
    value = resource.inputs.get(name)
    if value is None or not is_known(value):
        return None
    for candidate in candidates.values():
        held = [candidate.outputs.get(key, candidate.inputs.get(key)) for key in outputs]
        if value in held:
            return candidate
    return None
