"""The pack's configuration, as `--policy-pack-config` takes it: read, and refused where it would not do what it says.

The engine checks values against the rules' schemas. It lets names pass that no rule has, and says of a shape that it
can't read no more than that; here each is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from rules.exceptions import Exceptions, Granted
from rules.rule import Rule
from rules.values import readable

from karpstack.text import json_file

#: Bytes; the examples have three thousand.
LONGEST: Final = 2**20
_DEPTH, _VALUES = 50, 100_000
_LEVELS: Final = ("advisory", "mandatory", "remediate", "disabled")
_LEVEL: Final = "enforcementLevel"
_EXCEPTIONS: Final = TypeAdapter(list[Granted])
#: The engine's name for every rule of the pack.
_ALL: Final = "all"
#: Python's types by those of JSON schemas.
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


def of_stack(project: Path, stack: str) -> Path:
    """Where a stack's own configuration is, if it has one: `policies/<stack>.json` of the project."""
    return project / "policies" / f"{stack.rpartition('/')[2]}.json"


def read(path: Path, rules: Iterable[Rule]) -> Mapping[str, Any]:
    """The configuration in a file.

    Raises:
        ValueError: There is none that can be read, or something in it would have no effect; the text says what.
    """
    try:
        content = json_file.read(path, most=LONGEST, depth=_DEPTH, values=_VALUES)
    except json_file.FileError as error:
        raise ValueError(
            f"--policy-pack-config {path} can't be read ({readable(error.why)}), so nothing was judged; name a "
            "file such as policies/production.json, or baseline"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"--policy-pack-config {path} is no object with rules, so it would configure nothing; "
            "policies/README.md shows one"
        )
    if wrong := list(_wrong(content, {rule.name: rule for rule in rules})):
        raise ValueError(f"--policy-pack-config {path} can't be used, so nothing was judged:\n" + "\n".join(wrong))
    return content


def exceptions(settings: Mapping[str, Any]) -> list[Granted]:
    """The exceptions in a configuration; none where the engine can't read them either, and says so."""
    try:
        return _EXCEPTIONS.validate_python(_entries(settings))
    except ValidationError:
        return []


def _entries(settings: Mapping[str, Any]) -> list[Any]:
    configured = settings.get("exceptions")
    granted = configured.get("granted") if isinstance(configured, Mapping) else None
    return granted if isinstance(granted, list) else []


def _wrong(content: Mapping[str, Any], rules: Mapping[str, Rule]) -> Iterator[str]:
    """A sentence for each thing that is wrong."""
    for entry in _entries(content):
        try:
            Exceptions().read([entry], list(rules))
            _EXCEPTIONS.validate_python([entry])
        except (ValidationError, AttributeError, LookupError, TypeError):
            yield _said("exceptions.granted", "has an entry that is not {rule, resource, reason, until}, all text")
        except ValueError as error:
            yield readable(str(error)).replace("\n", " ")
    for name, configured in content.items():
        if name not in rules and name != _ALL:
            yield _said(
                name, "is no rule of this pack, so it would have no effect; docs/reference/policies.md lists the rules"
            )
            continue
        settings = configured if isinstance(configured, dict) else {_LEVEL: configured}
        schemas = {_LEVEL: {"enum": _LEVELS}, **(rules[name].settings if name in rules else {})}
        for setting, value in settings.items():
            key = f"{name}.{setting}" if isinstance(configured, dict) else name
            if setting not in schemas:
                yield _said(key, f"is no setting of this rule, which has {', '.join(schemas)}")
            elif not _fits(value, schemas[setting]):
                wanted = schemas[setting].get("type") or f"one of {', '.join(_LEVELS)}"
                yield _said(key, f"is {json.dumps(value)[:120]}, not {wanted}")


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is of the schema's type; the engine looks at the rest."""
    if "type" not in schema:
        return value in schema["enum"]
    return isinstance(value, _TYPES[schema["type"]]) and (schema["type"] == "boolean" or not isinstance(value, bool))


def _said(key: str, what: str) -> str:
    return readable(f"{key} {what}").replace("\n", " ")
