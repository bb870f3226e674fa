"""Makes a snapshot of files, whatever they are: kubectl's exports, kubereplay's, SimKube's, or a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from karpstack.text import json_file
from karpstack.text.json_file import FileError

from . import kubectl_files, kubereplay, simkube
from .from_api import Source, snapshot_of
from .left_out import OF_KIND, Ledger
from .missing import differing, missing
from .model import KIND, Snapshot
from .problems import SnapshotError, finding
from .reading import load, unreadable

_MOST: Final = 512 * 2**20  # bytes; 5,000 pods as kubectl writes them have a tenth
_DEPTH: Final = 200
_VALUES: Final = 12_000_000  # what 512 MiB of kubectl's have at most


def convert(paths: Sequence[Path], *, known_only: bool = False) -> Snapshot:
    """The snapshot of what files hold; exports may be several, the others are one file each.

    Args:
        paths: Files, or folders of exports.
        known_only: As of `reading.load`.

    Raises:
        SnapshotError: A file is none of these, or not a whole one; nothing is made of the others then.
    """
    ledger = Ledger()
    items: list[dict[str, Any]] = []
    source: Source = "exports"
    try:
        files = kubectl_files.files(paths)
        taken = max(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in files)
        for path in files:
            data = data_of(path)
            if isinstance(data, dict) and data.get("kind") == KIND:
                _alone(files, path)
                return load(path, known_only=known_only).snapshot
            if kubereplay.is_kubereplay(data):
                _alone(files, path)
                source = "kubereplay"
                items, taken = kubereplay.objects(data, path, ledger)
            elif simkube.is_simkube(data):
                _alone(files, path)
                source = "simkube"
                items, taken = simkube.objects(data, path, ledger)
            else:
                items += kubectl_files.objects(data, path)
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
        raise SnapshotError.of(
            finding("snapshot-file-unreadable", str(error.filename), why=why, how="give a file that can")
        ) from error
    if source == "exports":
        if twice := differing(items):
            raise SnapshotError.of(finding("snapshot-exports-differ", ", ".join(map(str, paths)), value=twice))
        for kind, why in missing(items):
            ledger.add(f"{OF_KIND}{kind}", why)
    return snapshot_of(items, taken.replace(microsecond=0), source, ledger)


def data_of(path: Path) -> Any:
    """Return what a file of JSON, or a trace in msgpack, holds.

    Raises:
        SnapshotError: It is neither, or too large.
    """
    try:
        content = json_file.content(path, most=_MOST)
        if simkube.is_packed(content):
            return simkube.unpacked(content, path, depth=_DEPTH, values=_VALUES)
        return json_file.parse(content, path, depth=_DEPTH, values=_VALUES)
    except FileError as error:
        raise unreadable(error) from error


def _alone(files: Sequence[Path], path: Path) -> None:
    if len(files) > 1:
        raise SnapshotError.of(finding("snapshot-one-of-several", path))
