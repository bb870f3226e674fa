"""Cases of rules as tables, a file for each module of rules: `cases/<module>.yaml`.

`resources` has examples by name, and `stacks` lists of them. `cases` has, for each rule by name, each case by name:

- `of` names the example; `set` changes values at paths (`a/b/0`), `drop` takes them away. A resource of its own has
  `type` and `properties` instead. `given` lists the resources of a rule that judges the whole stack. `stack` starts
  that list with one of `stacks`, `without` the names given. `types` makes a case for each type, `{type}` in its name.
- `json`: paths of the properties that the resource has as JSON text; a text stays as it is.
- `comesFrom`: property -> names of the resources from which it comes. `inputs`: what the pack was shown before.
- `says`: a part of each violation. `unknown`: the path that the preview has to name. `settings`: the rule's.

`<unknown>` is a value that the preview does not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from judging import UNKNOWN, Case, Resource
from rules.rule import Rule

FOLDER = Path(__file__).resolve().parent / "cases"
_UNKNOWN = "<unknown>"
# A resource with structures where it has JSON, and the paths of those.
_Example = tuple[Resource, Sequence[str]]


def load(rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases of all tables; `rules` are by name."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(yaml.safe_load(path.read_text()), rules)]


def _cases(table: dict[str, Any], rules: Mapping[str, Rule]) -> list[Case]:
    examples = {name: _example(form, {}) for name, form in table["resources"].items()}
    stacks = table.get("stacks", {})
    return [
        _case(name, rules[rule], row, examples)
        for rule, rows in table["cases"].items()
        for names, form in rows.items()
        for name, row in _each(names, _with_stack(form, stacks))
    ]


def _each(name: str, row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A row for each of its types."""
    types = row.pop("types", None)
    return [(name.format(type=each), {**row, "type": each}) for each in types] if types else [(name, row)]


def _with_stack(row: dict[str, Any], stacks: Mapping[str, list[str]]) -> dict[str, Any]:
    """The row with the resources of its stack in front of its own."""
    if "stack" not in row:
        return row
    without = row.pop("without", ())
    assert set(without) <= set(stacks[row["stack"]]), without
    started = [name for name in stacks[row.pop("stack")] if name not in without]
    return {**row, "given": [*started, *row.get("given", ())]}


def _case(name: str, rule: Rule, row: dict[str, Any], examples: Mapping[str, _Example]) -> Case:
    says = row.pop("says", [])
    case = Case(
        name=name,
        rule=rule,
        violations=(says,) if isinstance(says, str) else tuple(says),
        unknown=row.pop("unknown", None),
        settings=row.pop("settings", {}),
        shown=tuple(_resource(form, examples) for form in row.pop("shown", ())),
        given=[_resource(form, examples) for form in row.pop("given")]
        if "given" in row
        else _resource(_taken(row, _RESOURCE), examples),
    )
    assert not row, f"{case}: not known: {row}"
    return case


_RESOURCE = ("of", "set", "drop", "type", "properties", "json", "name", "comesFrom", "inputs")


def _taken(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: row.pop(key) for key in keys if key in row}


def _resource(form: str | dict[str, Any], examples: Mapping[str, _Example]) -> Resource:
    found, texts = _example(form, examples)
    for steps in map(_steps, texts):
        value: Any = found.properties
        for step in steps:
            value = value[step]
        if not isinstance(value, str):
            found = found.change(*steps, to=json.dumps(value))
    return found


def _example(form: str | dict[str, Any], examples: Mapping[str, _Example]) -> _Example:
    if isinstance(form, str):
        return examples[form]
    assert form.keys() <= set(_RESOURCE), form
    base, texts = examples[form["of"]] if "of" in form else (Resource("", _known(form.get("properties", {}))), ())
    found = Resource(
        form.get("type", base.token),
        base.properties,
        form.get("name", base.name),
        {key: tuple(names) for key, names in form["comesFrom"].items()} if "comesFrom" in form else base.comes_from,
        _known(form["inputs"]) if "inputs" in form else base.inputs,
    )
    for path, value in form.get("set", {}).items():
        found = found.change(*_steps(path), to=_known(value))
    for path in form.get("drop", ()):
        found = found.without(*_steps(path))
    return found, form.get("json", texts)


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split("/")]


def _known(value: Any) -> Any:
    """A value with pulumi-policy's sign for an unknown value in place of ours."""
    if isinstance(value, str):
        return value.replace(_UNKNOWN, UNKNOWN)
    if isinstance(value, dict):
        return {_known(key): _known(inner) for key, inner in value.items()}
    return [_known(inner) for inner in value] if isinstance(value, list) else value
