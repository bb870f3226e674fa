"""Reads what `kubectl get -o json` wrote: lists and single objects, in one file, several, or a folder of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from karpstack.text.shown import cut, value, visible

from .problems import SnapshotError, finding

_SUFFIXES: Final = (".json", ".json.gz")
_OF_YAML: Final = (".yaml", ".yml", ".yaml.gz", ".yml.gz")
_REASON: Final = 300  # characters of a refusal


def files(paths: Iterable[Path]) -> list[Path]:
    """The files that are meant. Those of a folder are in folders below it, too.

    YAML is not read, but also not left out: the caller gets its error.

    Raises:
        SnapshotError: There is none.
    """
    found = []
    for path in paths:
        inside = [path] if not path.is_dir() else sorted(_below(path))
        if not inside:
            raise SnapshotError.of(finding("snapshot-no-files", path, suffixes=" or ".join(_SUFFIXES)))
        found += inside
    return found


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for name in folders:
            linked = Path(place, name)
            if linked.is_symlink() and not _is_read(linked.resolve(), folder.resolve()):
                why, how = "is a link to another or a hidden folder", "give the folder that it leads to, in its place"
                raise SnapshotError.of(finding("snapshot-file-unreadable", linked, why=why, how=how))
        yield from (
            Path(place, name)
            for name in names
            if name.casefold().endswith((*_SUFFIXES, *_OF_YAML)) and not name.startswith(".")
        )


def _is_read(linked: Path, folder: Path) -> bool:
    """Whether a folder is read anyway, because it is below the given one."""
    return linked.is_relative_to(folder) and not any(part.startswith(".") for part in linked.relative_to(folder).parts)


def _raise(error: OSError) -> None:
    raise error


def objects(data: Any, path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, each with its kind.

    Args:
        data: What the JSON holds.
        path: The file, which is named in errors.

    Raises:
        SnapshotError: It is no list and no object of the API.
    """
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise SnapshotError.of(finding("snapshot-no-object", path, "", value(data)))
    if data["kind"] == "Status":
        said = cut(visible(str(data.get("message"))), _REASON)
        raise SnapshotError.of(finding("snapshot-not-whole", path, why=f"the API server refused it: {said}"))
    if "items" not in data:
        yield data
        return
    items = data["items"]
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise SnapshotError.of(finding("snapshot-no-list", path, "items"))
    about = data.get("metadata")
    if isinstance(about, dict) and about.get("continue"):
        raise SnapshotError.of(finding("snapshot-not-whole", path, why="it is one page of several"))
    # The API's own lists, unlike kubectl's, say once what all of their items are.
    common = {"apiVersion": data.get("apiVersion"), "kind": data["kind"].removesuffix("List")}
    for one in items:
        yield {**common, **one} if common["kind"] else one
