"""The file for `pulumi import`, with the IDs of what is there already.

`pulumi preview --import-file` writes an entry for whatever the program would make; here each gets the ID by which its
provider imports it. What is not there has no entry any more: `pulumi up` makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .finding import InputError

Entry = dict[str, Any]
#: Finds the ID of a type and logical name; None where it is not there.
Identify = Callable[[str, str], str | None]

_KUBERNETES: Final = "kubernetes:"
_PROVIDER: Final = "pulumi:providers:"
_TYPE: Final = re.compile(r"[^:]+:[^:]+:[^:]+")
#: What Pulumi writes in place of an ID.
_PLACEHOLDER: Final = "<PLACEHOLDER>"
#: What a preview writes for text that it does not know yet (sdk/go/common/resource/plugin/rpc.go).
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@dataclass(frozen=True)
class Filled:
    """A file with IDs.

    Attributes:
        content: The file's new content.
        found: How many resources have an ID.
        missing: Type and name of what is not there.
        later: The same of what needs a provider that is not configured before the cluster is in the state.
        made: The same of what is not imported: patches of objects that are there, made again without harm.
    """

    content: dict[str, Any]
    found: int
    missing: tuple[str, ...]
    later: tuple[str, ...]
    made: tuple[str, ...]


def fill(file: Mapping[str, Any], preview: Mapping[str, Any], identify: Callable[[Any], Identify]) -> Filled:
    """Give the entries of a file their IDs; one that somebody has written stays.

    Args:
        file: What `pulumi preview --import-file` wrote.
        preview: What the same preview printed with `--json`.
        identify: Of what the program wants, by type and logical name, makes what finds IDs in the cloud.
    """
    steps = [step["newState"] | {"op": step["op"]} for step in preview["steps"] if step.get("newState")]
    planned = {(one["type"], _name(one["urn"])): _known(one.get("inputs") or {}) for one in steps}
    entries = [*file["resources"], *_imported_by_the_program(steps, file["resources"])]
    closed = {one["name"] for one in entries if _is_closed(one)}
    ask = identify(planned)
    kept, missing, later, made = [], [], [], []
    for entry in entries:
        type_, name = entry["type"], entry.get("logicalName") or entry["name"]
        if entry.get("component") or type_.startswith(_PROVIDER):
            kept += [] if entry["name"] in closed else [entry]
        elif entry.get("provider") in closed:
            later.append(f"{type_} {name}")
        elif type_.startswith(_KUBERNETES) and type_.endswith("Patch"):
            made.append(f"{type_} {name}")
        else:
            wanted, in_cluster = planned.get((type_, name), {}), type_.startswith(_KUBERNETES)
            found = _written(entry) or (_in_kubernetes(wanted) if in_cluster else ask(type_, name))
            kept += [{**entry, "id": found}] if found else []
            missing += [] if found else [f"{type_} {name}"]
    count = sum("id" in entry for entry in kept)
    return Filled({**file, "resources": kept}, count, tuple(missing), tuple(later), tuple(made))


def read(path: Path, what: str) -> dict[str, Any]:
    """A file of Pulumi's.

    Raises:
        UnknowableError: It is not what it should be.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read ({error}); {_WRITE}") from error
    if not isinstance(content, dict) or not isinstance(content.get(what), list):
        raise InputError(f"{path} has no {what}, so it can't be filled; {_WRITE}")
    for number, one in enumerate(content[what]):
        if not isinstance(one, dict) or not _IS[what](one):
            raise InputError(f"{path}: {what}[{number}] is not as Pulumi writes it, so nothing is filled; {_WRITE}")
    return content


def _is_entry(one: Mapping[str, Any]) -> bool:
    """Whether it is of a file for `pulumi import`; other tools have lists of resources too."""
    return (
        _has_texts(one, ("type", "name"), ("id", "logicalName", "parent", "provider", "version"))
        and ("id" in one or one.get("component") is True or one["type"].startswith(_PROVIDER))
        and bool(_TYPE.fullmatch(one["type"]))
        and isinstance(one.get("inputs", {}), dict)
    )


def _is_step(one: Mapping[str, Any]) -> bool:
    state, op = one.get("newState"), one.get("op")
    return isinstance(op, str) and (
        state is None
        or (
            isinstance(state, dict)
            and _has_texts(state, ("type", "urn", *(("parent",) if op == "import" else ())), ())
            and isinstance(state.get("inputs") or {}, dict)
        )
    )


def _has_texts(one: Mapping[str, Any], needed: Iterable[str], others: Iterable[str]) -> bool:
    return all(isinstance(one.get(key), str) for key in needed) and all(
        isinstance(one.get(key, ""), str) for key in others
    )


_IS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {"resources": _is_entry, "steps": _is_step}


_WRITE: Final = "write it with `pulumi preview --json --import-file import.json > preview.json`"


def summary(path: Path, filled: Filled) -> str:
    """What was done, for a terminal."""
    parts = [f"{path}: {filled.found} resources are there and have their IDs."]
    for texts, what in (
        (filled.missing, "not found, or more than one of them; left out, so `pulumi up` would make"),
        (filled.later, "next time, when the cluster is in the state"),
        (filled.made, "not imported; `pulumi up` patches what is there"),
    ):
        if texts:
            parts.append("\n".join([f"{len(texts)} {what}:", *(f"    {text}" for text in sorted(texts))]))
    return "\n".join(parts)


def _imported_by_the_program(steps: Iterable[Mapping[str, Any]], others: Iterable[Entry]) -> Iterator[Entry]:
    """What the program imports by itself, which Pulumi leaves out of the file, and would not take over with changes."""
    versions = {entry["type"].split(":")[0]: entry["version"] for entry in others if "version" in entry}
    for one in steps:
        if one["op"] == "import":
            version = versions.get(one["type"].split(":")[0])
            entry = {"type": one["type"], "name": _name(one["urn"]), "parent": _name(one["parent"])}
            yield {**entry, "version": version} if version else entry


def _written(entry: Mapping[str, Any]) -> str | None:
    """The ID that somebody has written."""
    found = entry.get("id")
    return None if found == _PLACEHOLDER else found


def _is_closed(entry: Mapping[str, Any]) -> bool:
    """Whether it is a Kubernetes provider without a cluster."""
    return entry["type"] == f"{_PROVIDER}kubernetes" and "kubeconfig" not in entry.get("inputs", {})


def _in_kubernetes(wanted: Mapping[str, Any]) -> str | None:
    named = wanted.get("metadata", wanted)
    parts = [named.get("namespace") or "", named.get("name")] if isinstance(named, dict) else [None]
    if not all(isinstance(part, str) and part != _UNKNOWN for part in parts) or not parts[-1]:
        return None
    return "/".join(filter(None, parts))


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _known(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if value != _UNKNOWN}
