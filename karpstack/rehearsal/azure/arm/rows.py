"""The table of types, and what a request is refused for by its row. types.yaml says what each key means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from karpstack.rehearsal.azure.arm.errors import ArmError

_NAME: Final = (
    "InvalidResourceName",
    "Resource name {name} is invalid. The name must match the pattern {pattern} for the type {type}.",
)
_IN_USE: Final = ("ResourceInUse", "The resource {id} is used by {user}.", 409)
#: Code, text and status of a refusal.
Refused = Sequence[Any]


@dataclass(frozen=True)
class Row:
    """One type; see types.yaml."""

    type: str
    versions: Sequence[str]
    name: str
    name_refused: Refused = _NAME
    location: str = ""
    stateless: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    computed: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[str] = ()
    references: Sequence[str] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    in_use: Refused = _IN_USE
    lists_users: bool = False
    linked: Mapping[str, str] = field(default_factory=dict)
    takes: Mapping[str, str] = field(default_factory=dict)
    patched: Sequence[str] = ("tags",)
    hidden: Sequence[str] = ()
    since: Mapping[str, Any] = field(default_factory=dict)
    fixed: Sequence[str] = ()
    fixed_refused: Refused = ()
    known: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    refusals: Sequence[Mapping[str, Any]] = ()
    never: Refused = ()
    pulumi: Mapping[str, Any] = field(default_factory=dict)

    def refuse(self, body: Mapping[str, Any], **words: Any) -> None:
        """Refuse a request, defaults filled in, that the row refuses."""
        for path, known in self.keys.items():
            for key in sorted(set(next(iter(each(body, path)), ())) - set(known)):
                raise ArmError(
                    "UnmarshalError", f'UnmarshalEntity encountered error: json: unknown field "{key}" of {path}.'
                )
        for path, values in self.known.items():
            for value in each(body, path) or [None]:
                if value not in values:
                    raise ArmError(
                        "InvalidParameter",
                        f"The value of parameter {path} is invalid: {value!r}. It must be one of those "
                        f"that the rehearsal knows: {', '.join(map(str, values))}.",
                    )
        for line in self.refusals:
            when, has = line.get("when", {}), line.get("has", {})
            if not _fulfils(body, when):
                continue
            for item in each(body, f"{line['of']}[]") if "of" in line else [body]:
                if _fulfils({"properties": item} if "of" in line else body, has):
                    value = next(iter(each({"properties": item}, [*has][-1]) if has else each(body, [*when][-1])), None)
                    raise refusal(line["refused"], value=value, item=item.get("name"), **words)

    def check_fixed(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Refuse a change of what does not change."""
        for path in self.fixed:
            if [one for one in each(before, path) if one] != [one for one in each(now, path) if one]:
                raise refusal(self.fixed_refused, path=path.removeprefix("."))


def refusal(refused: Refused, **words: Any) -> ArmError:
    """The error that a row's refusal means."""
    code, text, *status = refused
    return ArmError(code, text.format(**words), *status)


def each(body: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path, as types.yaml writes paths; what is null is not there."""
    found: list[Any] = [body if path.startswith(".") else body.get("properties")]
    for step in path.removeprefix(".").split("."):
        key = step.removesuffix("[]")
        found = [one[key] for one in found if isinstance(one, Mapping) and one.get(key) is not None]
        if key != step:
            found = [item for many in found for item in many]
    return found


def latest(resource_type: str) -> str:
    """The newest API version of a type."""
    return ROWS[resource_type].versions[-1]


def _fulfils(body: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_holds(each(body, path) or [None], test) for path, test in conditions.items())


def _holds(values: list[Any], test: Any) -> bool:
    if isinstance(test, list):
        return any(value in test for value in values)
    return all(_tested(values, name, wanted) for name, wanted in test.items())


def _tested(values: list[Any], name: str, wanted: Any) -> bool:
    match name:
        case "not":
            return any(value not in wanted for value in values)
        case "has":
            return any(value in wanted for value in values)
        case "lacks":
            return not any(value in wanted for value in values)
        case "unlike":
            return any(not re.fullmatch(wanted, str(value)) for value in values)
    least, most = wanted
    return any(value is not None and not least <= int(value) <= most for value in values)


def _rows() -> Iterator[Row]:
    table = yaml.load((Path(__file__).parents[1] / "types.yaml").read_bytes(), yaml.CSafeLoader)
    for name, row in table.items():
        found = Row(type=name, **row)
        since = {key: str(version) for key, version in found.since.items()}
        yield replace(found, versions=tuple(str(found.versions).split()), since=since)


#: Each type's row, by the type in Azure's spelling.
ROWS: Final = {row.type: row for row in _rows()}
