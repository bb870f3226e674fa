"""Cases of rules as tables, a file for each module of rules: `cases/<module>.yaml`.

`resources` has examples by name. `cases` has, for each rule by name, each case by name:

- `of` names the example; `set` changes values at paths (`a/b/0`), `drop` takes them away. A resource of its own has
  `type` and `properties` instead. `given` lists the resources of a rule that judges the whole stack.
- `comesFrom`: property -> names of the resources from which it comes. `inputs`: what the pack was shown before.
- `says`: a part of each violation. `unknown`: the path that the preview has to name. `settings`: the rule's.

`<unknown>` is a value that the preview does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from judging import UNKNOWN, Case, Resource
from rules.rule import Rule

FOLDER = Path(__file__).resolve().parent / "cases"
_UNKNOWN = "<unknown>"


def load(rules: Mapping[str, Rule]) -> list[Case]:
    """Return the cases of all tables; `rules` are by name."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _cases(yaml.safe_load(path.read_text()), rules)]


def _cases(table: dict[str, Any], rules: Mapping[str, Rule]) -> list[Case]:
    examples = {name: _resource(form, {}) for name, form in table["resources"].items()}
    return [
        _case(name, rules[rule], row, examples) for rule, rows in table["cases"].items() for name, row in rows.items()
    ]


def _case(name: str, rule: Rule, row: dict[str, Any], examples: Mapping[str, Resource]) -> Case:
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


_RESOURCE = ("of", "set", "drop", "type", "properties", "name", "comesFrom", "inputs")


def _taken(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: row.pop(key) for key in keys if key in row}


def _resource(form: str | dict[str, Any], examples: Mapping[str, Resource]) -> Resource:
    if isinstance(form, str):
        return examples[form]
    assert form.keys() <= set(_RESOURCE), form
    base = examples[form["of"]] if "of" in form else Resource(form["type"], _known(form.get("properties", {})))
    found = Resource(
        base.token,
        base.properties,
        form.get("name", base.name),
        {key: tuple(names) for key, names in form.get("comesFrom", {}).items()},
        _known(form.get("inputs")),
    )
    for path, value in form.get("set", {}).items():
        found = found.change(*_steps(path), to=_known(value))
    for path in form.get("drop", ()):
        found = found.without(*_steps(path))
    return found


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split("/")]


def _known(value: Any) -> Any:
    """A value with pulumi-policy's sign for an unknown value in place of ours."""
    if isinstance(value, str):
        return value.replace(_UNKNOWN, UNKNOWN)
    if isinstance(value, dict):
        return {_known(key): _known(inner) for key, inner in value.items()}
    return [_known(inner) for inner in value] if isinstance(value, list) else value
