"""What `pulumi up` changed, by the engine's own log of events (`--event-log`), in which each line is an event.

The form is `apitype.EngineEvent` of github.com/pulumi/pulumi (sdk/go/common/apitype/events.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from karpstack.text.shown import cut, listed

# What upgrades are known by; of other properties the names alone are told, for a value may be a secret.
_VERSIONS = ("version", "kubernetesVersion")
#: These have no secrets, so the answer shows the values of their fields.
_SHOWN: Final = ("kubernetes:karpenter.sh/v1:NodePool", "kubernetes:karpenter.sh/v1alpha1:NodeOverlay")
#: These may have secrets.
_NODE_CLASSES: Final = ("AKSNodeClass", "EC2NodeClass")
#: Fields of them that have none. The answer shows their values, and only the names of other fields.
_PLAIN: Final = frozenset({"amiFamily", "fipsMode", "imageFamily", "instanceStorePolicy", "maxPods", "osDiskSizeGB"})
_NAMED: Final = 6  # fields of one
_LONGEST: Final = 120  # characters of a value
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
    """The properties that differ; of a version, of NodePools and NodeOverlays, and of some fields also how."""
    old, new = ((step.get(side) or {}).get("inputs") or {} for side in ("old", "new"))
    for key in step.get("diffs") or ():
        before, after = old.get(key), new.get(key)
        if step["type"] in _SHOWN and key == "spec" and before and after:
            fields = list(_changed_fields("", _by_key(before), _by_key(after)))
            yield listed(fields, _NAMED) if fields else "spec, in its order only"
            continue
        if step["type"].rpartition(":")[2] in _NODE_CLASSES and key == "spec" and before and after:
            plain, others = ({field: of.get(field) for field in _PLAIN} for of in (before, after)), {*before, *after}
            fields = [*_changed_fields("", *plain)]
            fields += sorted(field for field in others - _PLAIN if before.get(field) != after.get(field))
            yield listed(fields, _NAMED) if fields else "spec"
            continue
        told = key in _VERSIONS and isinstance(before, str) and isinstance(after, str)
        yield f"{key} {before} to {after}" if told else str(key)


def _changed_fields(path: str, before: Any, after: Any) -> Iterator[str]:
    """The fields that differ: `limits.cpu 40 to 20`."""
    if before == after:
        return
    is_item = path.endswith("]") and None in (before, after)
    if not is_item and (isinstance(before, Mapping) or isinstance(after, Mapping)):
        old, new = (value if isinstance(value, Mapping) else {} for value in (before, after))
        for key in sorted({*old, *new}):
            yield from _changed_fields(f"{path}{key}" if key[0] == "[" else f"{path}.{key}", old.get(key), new.get(key))
    else:
        yield f"{path.removeprefix('.')} {_short(before)} to {_short(after)}"


def _by_key(value: Any) -> Any:
    """A value in which requirements and taints are found by their key, whatever their order."""
    if isinstance(value, Mapping):
        return {key: _by_key(item) for key, item in value.items()}
    if not isinstance(value, list) or not all(isinstance(one, Mapping) and "key" in one for one in value):
        return value
    named = {}
    for one in value:
        rest = {key: item for key, item in one.items() if key not in ("key", "operator", "effect")}
        what = one.get("operator") or one.get("effect") or ""
        named[f"[{one['key']} {what}]"] = rest["values"] if rest.keys() == {"values"} else rest or "set"
    return named if len(named) == len(value) else value


def _short(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "(not set)"
    return cut(value if isinstance(value, str) else json.dumps(value), _LONGEST)
