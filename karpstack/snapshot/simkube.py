"""Reads traces of SimKube, https://github.com/acrlabs/simkube: what `sk-tracer` saw of a cluster's objects in time.

What is read is what is left at the end of a trace. When the pods of its objects came and went is not: their number is
what their controllers say. A trace is msgpack; the same as JSON is read too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgpack

from karpstack.text.json_file import parse
from karpstack.text.shown import value

from .from_api import KINDS
from .left_out import Ledger
from .problems import SnapshotError, broken, finding

_VERSION: Final = 2
#: First bytes of a mapping in msgpack, with which no JSON begins.
_MAPPINGS: Final = (*range(0x80, 0x90), 0xDE, 0xDF)
_READ: Final = ("version", "config", "events")


def is_packed(content: bytes) -> bool:
    """Whether a file is msgpack."""
    return content[:1] != b"" and content[0] in _MAPPINGS


def unpacked(content: bytes, path: Path, *, depth: int, values: int) -> Any:
    """What of a trace in msgpack is read, as JSON has it.

    Args:
        content: The file's bytes.
        path: The file, which is named in errors.
        depth: Levels of lists and mappings at most.
        values: Values at most.

    Raises:
        SnapshotError: It is no such trace.
    """
    try:
        # Owners of pods are keys that are tuples, which only tuples can be.
        data = msgpack.unpackb(
            content,
            strict_map_key=False,
            use_list=False,
            max_array_len=values,
            max_map_len=values,
            object_hook=_counted(values),
            list_hook=_counted(values),
        )
        text = json.dumps({key: data[key] for key in _READ})
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise SnapshotError.of(finding("snapshot-not-simkube", path, error=broken(error))) from error
    return parse(text.encode(), path, depth=depth, values=values)


def _counted(most: int) -> Callable[[Any], Any]:
    """Return a hook that takes collections until they have had more values together; each may be small."""
    total = 0

    def take(collection: Any) -> Any:
        nonlocal total
        total += 1 + len(collection)
        if total > most:
            raise ValueError(f"more than {most:,} values")
        return collection

    return take


def is_simkube(data: Any) -> bool:
    """Whether JSON is such a trace."""
    return isinstance(data, Mapping) and {"version", "config", "events"} <= data.keys()


def objects(data: Mapping[str, Any], path: Path, ledger: Ledger) -> tuple[list[dict[str, Any]], datetime]:
    """The objects at the end of a trace, and when that was.

    Args:
        data: What the JSON, or the msgpack, holds.
        path: The file, which is named in errors.
        ledger: Gets what is left out.

    Raises:
        SnapshotError: It is of another version, or an event is not as SimKube writes it.
    """
    if data["version"] != _VERSION:
        version = value(data["version"])
        raise SnapshotError.of(finding("snapshot-simkube-version", path, "version", version, version=_VERSION))
    there: dict[tuple[str, str, str], dict[str, Any]] = {}
    seconds = 0
    try:
        tracked = data["config"].get("trackedObjects") or {}
        for event in sorted(data["events"], key=lambda event: int(event["ts"])):
            seconds = int(event["ts"])
            for one in event["applied_objs"]:
                there[_key(one)] = one
            for one in event["deleted_objs"]:
                there.pop(_key(one), None)
        found = [made for one in there.values() for made in _known(one, tracked, ledger)]
        ended = datetime.fromtimestamp(seconds, UTC)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, OSError) as error:
        raise SnapshotError.of(finding("snapshot-not-simkube", path, error=broken(error))) from error
    ledger.add("lifecycles of pods", "a snapshot is of one moment: each pod counts as if it still ran")
    return found, ended


def _key(item: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace") or "", metadata["name"]


def _known(item: dict[str, Any], tracked: Mapping[str, Any], ledger: Ledger) -> Iterator[dict[str, Any]]:
    """An object as it is; of a kind of one's own, what its templates make, as the trace's configuration says."""
    if item["kind"] in KINDS:
        yield item
        return
    version, kind, metadata = item["apiVersion"], item["kind"], item["metadata"]
    paths = (tracked.get(f"{version}.{kind}") or {}).get("podSpecTemplatePaths") or ()
    if kind == "CronJob" or not paths:
        ledger.add(f"objects of kind {kind}", "nothing says which pods they have at that moment")
        return
    owner = {"controller": True, "apiVersion": version, "kind": kind, "name": metadata["name"]}
    for number, path in enumerate(paths):
        template: Any = item
        for part in filter(None, path.split("/")):
            template = template[int(part) if isinstance(template, list) else part]
        replicas = item["spec"].get("replicas")
        yield {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{metadata['name']}-{number}",
                "namespace": metadata.get("namespace") or "default",
                "ownerReferences": [owner],
            },
            "spec": {"replicas": 1 if replicas is None else replicas, "template": template},
        }
