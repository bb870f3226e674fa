"""What the real providers were recorded to answer, and how far an attached provider answers the same.

`recorded/<package>.json` has a record for each resource type: what the program gave, what Check filled in, what the
outputs were and the ID. They are facts taken from Pulumi's own recordings, whose place each record names. In a record

- `<vpc>` stands for a value that another resource gave; the test makes it;
- `/.../` is the form of a text, as a regular expression;
- outputs are told by their type: a name (`string`, `number`, `bool`, `object`), a form, `[item]`, or `{name: type}`.
  What was null is left out; what was empty (`""`, 0, false, `[]`, `{}`) is listed in `empty`;
- `differences` says of each place where the stand-in answers something else why it does. One that is no more fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pulumi.runtime.proto import provider_pb2

from karpstack.rehearsal.attachment.resource import AUTOMATIC, Created, Properties
from karpstack.rehearsal.attachment.server import Servicer
from karpstack.rehearsal.attachment.values import decode, encode, reveal
from tests.unit.rehearsal.resource_world import Context

FOLDER = Path(__file__).with_name("recorded")
_TYPES = {"string": str, "bool": bool, "object": dict}
_SEED = bytes.fromhex("0123456789abcdef")


@dataclass(frozen=True)
class Record:
    """What was recorded of one resource type; see the module.

    Attributes:
        recorded: Repository, path in it, and the provider's version.
        name: The logical name that the resource had.
        instead: Inputs to take where the stand-in refuses the recorded ones; each is one of `differences`.
    """

    token: str
    recorded: Mapping[str, str]
    name: str
    given: Properties
    filled: Properties
    id: str
    outputs: Properties
    empty: list[str]
    differences: Mapping[str, str]
    instead: Properties = field(default_factory=dict)


def records(package: str) -> dict[str, Record]:
    """The records of a package by token."""
    read = json.loads((FOLDER / f"{package}.json").read_text())
    return {token: Record(token, **record) for token, record in read.items()}


def changes(package: str) -> list[dict[str, str]]:
    """What the real provider calls a change: type, property, `update` or `replace`, where it says so.

    The key `difference` is why the stand-in calls it the other one.
    """
    read = json.loads((FOLDER / "changes.json").read_text())
    found: list[dict[str, str]] = read[package]
    return found


def unanswered() -> dict[str, dict[str, str]]:
    """Outputs that the SDK promises and the stand-in does not have, by token, each with the reason."""
    found: dict[str, dict[str, str]] = json.loads((FOLDER / "unanswered.json").read_text())
    return found


class Engine:
    """Calls a provider as the engine does."""

    def __init__(self, servicer: Servicer, **configuration: Any) -> None:
        self._servicer = servicer
        servicer.Configure(provider_pb2.ConfigureRequest(args=encode(configuration)), Context())

    def check(self, token: str, name: str, given: Properties) -> tuple[Properties, set[str]]:
        """The checked inputs, and the names of those that are refused."""
        answer = self._servicer.Check(
            provider_pb2.CheckRequest(**_who(token, name), news=encode(given), randomSeed=_SEED), Context()
        )
        return decode(answer.inputs), {failure.property or failure.reason.split(":")[0] for failure in answer.failures}

    def create(self, token: str, name: str, inputs: Properties) -> Created:
        """Create it; the outputs are without secrets' marks."""
        request = provider_pb2.CreateRequest(**_who(token, name), properties=encode(inputs))
        answer = self._servicer.Create(request, Context())
        return Created(answer.id, reveal(decode(answer.properties)))

    def read(self, token: str, name: str, created: Created, inputs: Properties) -> Properties:
        """The outputs that a refresh sees."""
        request = provider_pb2.ReadRequest(
            **_who(token, name), id=created.id, inputs=encode(inputs), properties=encode(created.outputs)
        )
        found: Properties = reveal(decode(self._servicer.Read(request, Context()).properties))
        return found

    def diff(self, token: str, old: Properties, new: Properties) -> Literal["none", "update", "replace"]:
        """What the provider calls a change of checked inputs."""
        request = provider_pb2.DiffRequest(
            **_who(token, "thing"), olds=encode(old), old_inputs=encode(old), news=encode(new)
        )
        answer = self._servicer.Diff(request, Context())
        if answer.changes == provider_pb2.DiffResponse.DIFF_NONE:
            return "none"
        return "replace" if answer.replaces else "update"


def replay(engine: Engine, record: Record, value: Callable[[str], Any]) -> set[str]:
    """Lead a resource through Check, Diff, Create and Read, and name all places where the answers differ.

    Args:
        engine: Calls the attached provider.
        record: What the real one answered.
        value: Gives what stands for a `<name>` in the record.
    """
    given, filled = resolved(record.given, value), resolved(record.filled, value)
    checked, refused = engine.check(record.token, record.name, given)
    found: set[str] = set()
    while refused - found:
        found |= refused
        kept = {name: item for name, item in given.items() if name not in found}
        given = {**kept, **{name: resolved(item, value) for name, item in record.instead.items() if name in found}}
        checked, refused = engine.check(record.token, record.name, given)
    assert not refused, f"{record.token} refuses what stands instead, too: {refused}"
    differences = {f"given.{name}" for name in found}

    plain = {name: item for name, item in checked.items() if name != AUTOMATIC}
    for name in sorted((plain.keys() | filled.keys()) - found):
        if name in filled or plain[name] != given.get(name):
            differences |= set(_unequal(f"filled.{name}", filled.get(name, _NOTHING), plain.get(name, _NOTHING)))
    again, _ = engine.check(record.token, record.name, given)
    if engine.diff(record.token, checked, again) != "none":
        differences.add("diff")

    created = engine.create(record.token, record.name, checked)
    if not re.fullmatch(record.id, created.id):
        differences.add("id")
    for name, kind in record.outputs.items():
        differences |= set(_unlike(f"outputs.{name}", kind, created.outputs.get(name, _NOTHING)))
    differences |= {f"empty.{name}" for name in record.empty if created.outputs.get(name)}
    if engine.read(record.token, record.name, created, checked) != created.outputs:
        differences.add("read")
    return differences


def otherwise(engine: Engine, called: list[dict[str, str]]) -> list[dict[str, str]]:
    """The changes that the attached provider does not call what the real one calls them."""
    return [change for change in called if _called(engine, change) != change["kind"]]


def _called(engine: Engine, change: dict[str, str]) -> str:
    old, new = ({change["property"]: {"key": text} if change["property"] == "tags" else text} for text in "ab")
    return engine.diff(change["type"], old, new)


_NOTHING = object()


def _who(token: str, name: str) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:test::project::{token}::{name}", "type": token, "name": name}


def resolved(item: Any, value: Callable[[str], Any]) -> Any:
    """The same with `value(name)` for each `<name>` in it."""
    if isinstance(item, dict):
        return {name: resolved(inner, value) for name, inner in item.items()}
    if isinstance(item, list):
        return [resolved(inner, value) for inner in item]
    reference = re.fullmatch("<(.+)>", item) if isinstance(item, str) else None
    return value(reference[1]) if reference else item


def _is_form(item: Any) -> bool:
    return isinstance(item, str) and len(item) > 2 and item[0] == item[-1] == "/"


def _unequal(path: str, recorded: Any, found: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(found, dict):
        for name in sorted(recorded.keys() | found.keys()):
            yield from _unequal(f"{path}.{name}", recorded.get(name, _NOTHING), found.get(name, _NOTHING))
    elif _is_form(recorded):
        yield from _unlike(path, recorded, found)
    elif recorded != found or isinstance(recorded, bool) != isinstance(found, bool):
        yield path


def _unlike(path: str, kind: Any, found: Any) -> Iterator[str]:
    """The places at which a value is not of the recorded kind."""
    if isinstance(kind, dict):
        if not isinstance(found, dict):
            yield path
            return
        for name, inner in kind.items():
            yield from _unlike(f"{path}.{name}", inner, found.get(name, _NOTHING))
    elif isinstance(kind, list):
        if not isinstance(found, list) or (kind and not found):
            yield path
            return
        if kind:
            yield from (place for item in found for place in _unlike(f"{path}[]", kind[0], item))
    elif kind == "number":
        if not isinstance(found, int | float) or isinstance(found, bool):
            yield path
    elif _is_form(kind):
        if not isinstance(found, str) or not re.fullmatch(kind[1:-1], found):
            yield path
    elif not isinstance(found, _TYPES[kind]):
        yield path
