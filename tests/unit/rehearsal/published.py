"""Small engines in caches of their own, published and pulled; and archives of strangers."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.engines import EngineSet, artifact, builder, commands, manifest, native_platform
from karpstack.rehearsal.engines.archive import created
from karpstack.rehearsal.engines.reference import VARIABLE, digest_of
from karpstack.rehearsal.engines.registry import INDEX, MANIFEST

PARTS = ("kubernetes", "charts")
FILES = {
    "kubernetes": {"bin/etcd": b"\x7fELF etcd" * 1000, "bin/kubectl": b"#!/bin/sh\n"},
    "charts": {"charts/cilium/Chart.yaml": b"name: cilium\n"},
}
GO = builder.Go("go", "go1.26.1")


class Machines:
    """Machines with caches of their own; each need both parts, and compile by writing a file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self.built: list[str] = []
        self.has_go = True
        monkeypatch.delenv(VARIABLE, raising=False)
        for module in (builder, commands):
            monkeypatch.setattr(module, "required_parts", lambda clouds, earlier=(): list(PARTS))
        self.change("publisher")
        for part, files in FILES.items():
            write(EngineSet.current().part(part), files)

    def change(self, name: str) -> Path:
        """Go to another machine; return its cache."""
        cache = self._folder / name
        cache.mkdir(mode=0o700, exist_ok=True)
        self._monkeypatch.setenv("KARPSTACK_CACHE", str(cache))
        return cache

    def publish(self, place: str) -> None:
        assert commands.publish(place) == 0

    def pull(self, place: str) -> EngineSet:
        """What a new command does that needs the engines."""
        self._monkeypatch.setenv(VARIABLE, place)
        self.built.clear()
        return builder.ensure(find_go=self._find_go, build=self._build)

    def _find_go(self) -> builder.Go:
        if not self.has_go:
            raise builder.BuildError("Go is needed")
        return GO

    def _build(self, part: str, folder: Path, go: builder.Go) -> None:
        (folder / "bin" / "built").touch()
        self.built.append(part)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(tmp_path, monkeypatch)


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """A part as it is built."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
        (root / name).chmod(0o755 if name.startswith("bin/") else 0o644)
    for folder in (root.parent, root.parents[1]):
        folder.chmod(0o700)
    manifest.write(root)


def content_of(engines: EngineSet) -> dict[str, dict[str, bytes]]:
    return {
        part: {
            path.relative_to(engines.part(part)).as_posix(): path.read_bytes()
            for path in engines.part(part).rglob("*")
            if path.is_file() and path.name != manifest.NAME
        }
        for part in PARTS
    }


Entry = tuple[str, bytes] | tarfile.TarInfo


def layer(part: str, files: Mapping[str, bytes], *more: Entry) -> bytes:
    """A layer of a part, and more entries after its own; a name that begins with `/` stands as it is."""
    prefix = f"{part}/{EngineSet.current().keys[part]}/"
    listed = {
        name: {"sha256": digest_of(content).removeprefix("sha256:"), "size": len(content), "mode": "0755"}
        for name, content in files.items()
    }
    return packed(
        (f"{prefix}manifest.json", json.dumps({"files": listed}).encode()),
        *((f"{prefix}{name}", content) for name, content in files.items()),
        *more,
    )


def packed(*entries: Entry) -> bytes:
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb") as compressed, tarfile.open(fileobj=compressed, mode="w") as tar:
        for one in entries:
            if isinstance(one, tarfile.TarInfo):
                compressed.write(one.tobuf())  # what it announces is never read
            else:
                info = tarfile.TarInfo(one[0])
                info.size, info.mode = len(one[1]), 0o755
                tar.addfile(info, io.BytesIO(one[1]))
    return file.getvalue()


def archive(
    path: Path, layers: Mapping[str, bytes], change: Callable[[dict[str, Any], dict[str, Any]], object] | None = None
) -> str:
    """Write an archive, and return its place with the digest.

    Args:
        path: The file.
        layers: Part -> its layer.
        change: Changes the index and the manifest before they are written.
    """
    keys = EngineSet.current().keys
    described = [
        artifact.descriptor(
            artifact.ENGINE,
            digest_of(content),
            len(content),
            annotations={artifact.PART: part, artifact.KEY: keys.get(part, "")},
        )
        for part, content in layers.items()
    ]
    manifest_ = {"schemaVersion": 2, "mediaType": MANIFEST, "layers": described}
    system, architecture = native_platform().split("/")
    pointer: dict[str, Any] = {"mediaType": MANIFEST, "platform": {"os": system, "architecture": architecture}}
    index = {"mediaType": INDEX, "artifactType": artifact.ENGINES, "manifests": [pointer]}
    if change:
        change(index, manifest_)
    with created(path) as store:
        for content in layers.values():
            store.add_blob(digest_of(content), len(content), io.BytesIO(content))
        text = json.dumps(manifest_).encode()
        store.add_manifest(digest_of(text), text, MANIFEST)
        pointer |= {"digest": digest_of(text), "size": len(text)} | pointer
        text = json.dumps(index).encode()
        store.add_manifest("latest", text, INDEX)
    return f"oci-archive:{path}@{digest_of(text)}"


def header(name: str, kind: bytes, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def left(cache: Path) -> Sequence[str]:
    """Files of downloads and of half parts in a cache."""
    return [
        path.name for path in cache.rglob("*") if path.suffix in (".partial", ".download") or ".partial." in path.name
    ]
