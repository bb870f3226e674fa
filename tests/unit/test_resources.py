"""What the program asks the engine for, by the settings: each row of stacks/resources.yaml.

A row is a stack, what is changed in it, and what is then wanted of resources: by name, type, the end of a type, or by
name and end. The keys are paths in the inputs: texts of JSON are read, `=` decodes base64, a list is entered by place
or by the name of an entry, `*` goes through all entries. All resources of that name have the same value there; null
is none. Before a path, `@` wants the values of all these resources, and `^` is an attribute of the registration;
after it, `~` wants this, or these, among others, and `!` none of them. `%` is what is secret, `#` how many there are.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.unit import found
from tests.unit.example_stack import ROOT, written
from tests.unit.programs import made, matching

TABLE = yaml.safe_load((ROOT / "tests" / "unit" / "stacks" / "resources.yaml").read_text(encoding="utf-8"))
OPTIONS = ("preview", "told", "log_groups", "clusters")


def rows() -> list[Any]:
    return [
        pytest.param(stack, row, what, wanted, id=f"{stack} {str(row.get('with', ''))[:40]} {what}"[:100])
        for row in TABLE["rows"]
        for stack in ([row["stack"]] if isinstance(row["stack"], str) else row["stack"])
        for what, wanted in row["has"].items()
    ]


def at(value: Any, steps: list[str]) -> Any:
    """What stands at a path."""
    if not steps or value is None:
        return value
    first, *rest = steps
    if first == "=":
        return base64.b64decode(value).decode()
    if isinstance(value, str):
        value = json.loads(value)
    if first == "*":
        return [at(entry, rest) for entry in (value.values() if isinstance(value, Mapping) else value)]
    if isinstance(value, list):
        named = [one for one in value if isinstance(one, Mapping) and first in (one.get("name"), one.get("key"))]
        value = {first: value[int(first)] if first.isdecimal() else next(iter(named), None)}
    if isinstance(value, Mapping):
        # Labels have dots in their names.
        for end in range(len(steps), 0, -1):
            if ".".join(steps[:end]) in value:
                return at(value[".".join(steps[:end])], steps[end:])
        return None
    return at(getattr(value, first), rest)


def among(value: Any, wanted: Any) -> list[bool]:
    """Whether each of what is wanted is in a value."""
    if isinstance(wanted, Mapping):
        return [value.get(key) == entry for key, entry in wanted.items()]
    return [one in (value or ()) for one in (wanted if isinstance(wanted, list) else [wanted])]


@pytest.mark.parametrize(("stack", "row", "what", "wanted"), rows())
def test_what_the_engine_is_asked_for(stack: str, row: dict[str, Any], what: str, wanted: dict[str, Any]) -> None:
    runs = found.changed(found.EKS_WORKLOADS if "eks" in stack else found.AKS_WORKLOADS, row.get("runs", {}))
    options = {name: written(row[name]) for name in OPTIONS if name in row}
    deployment = made(stack, row.get("with"), runs=runs, **options)
    there = matching(deployment, what)
    for path, value in written(wanted).items():
        if path == "#":
            assert len(there) == value, what
            continue
        steps = path.strip("~!@^").split(".")
        each = [
            sorted(one.secrets) if path == "%" else at(one.request if path[0] == "^" else one.inputs, steps)
            for one in there
        ]
        has = sorted(each) if path[0] == "@" else next(iter(each))
        assert path[0] == "@" or all(one == has for one in each), (path, each)
        if path[-1] in "~!":
            assert {*among(has, value)} == {path[-1] == "~"}, (path, has)
        else:
            wanted_here = sorted(value) if path[0] == "@" else value
            assert (list(has) if isinstance(value, list) else has) == wanted_here, (path, has)


@pytest.mark.parametrize(
    ("stack", "later", "earlier"), [(stack, *one) for stack, those in TABLE["order"].items() for one in those]
)
def test_order(stack: str, later: str, earlier: str) -> None:
    """What needs something comes after it, and is deleted before it."""
    deployment = made(stack, TABLE["order_with"].get(stack))
    assert matching(deployment, later)
    assert matching(deployment, earlier)
    for one in matching(deployment, later):
        for other in matching(deployment, earlier):
            assert deployment.needs(one, other), f"{one.name} may come before {other.name}"
            assert not deployment.needs(other, one)


@pytest.mark.parametrize(("stack", "one", "other"), TABLE["apart"])
def test_what_does_not_wait(stack: str, one: str, other: str) -> None:
    (each,), (later,) = (matching(made(stack), what) for what in (one, other))
    assert not made(stack).needs(each, later)
