"""Publishes the engines of the cache to a registry or into an OCI archive."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from karpstack.rehearsal.engines import EngineSet

from . import artifact, manifest, materials
from .archive import entry
from .builder import BuildError, Go
from .reference import Reference, digest_of
from .registry import INDEX, MANIFEST

_EMPTY: Final = b"{}"
_EMPTY_TYPE: Final = "application/vnd.oci.empty.v1+json"


def publish(place: Reference, parts: Sequence[str], platforms: Sequence[str], go: Go) -> str:
    """Publish parts of the engines, and return the digest of the index.

    Args:
        place: Where to.
        parts: All must have been built here.
        platforms: For example `linux/amd64`.
        go: Reads what programs are made of.

    Raises:
        BuildError: A part is missing, differs from what was built, or was pulled.
        TransferError: The registry does not take it.
        files.OutputError: The archive would replace something else.
    """
    sets = {platform: EngineSet.current(platform) for platform in platforms}
    for platform, engines in sets.items():
        _check(engines, parts, platform)
    about = {artifact.TITLE: "karpstack engines", artifact.VERSION: materials.project_version()}
    with artifact.opened(place, writing=True) as store:
        manifests = [
            _publish_platform(store, engines, parts, platform, go, about) for platform, engines in sets.items()
        ]
        index = _json(
            {
                "schemaVersion": 2,
                "mediaType": INDEX,
                "artifactType": artifact.ENGINES,
                "manifests": manifests,
                "annotations": about,
            }
        )
        store.add_manifest(place.tag, index, INDEX)
    return digest_of(index)


def _check(engines: EngineSet, parts: Sequence[str], platform: str) -> None:
    if missing := [part for part in parts if not engines.complete(part)]:
        own = "; without a Pulumi of your own on PATH, which is used in place of a built one" * ("pulumi" in missing)
        raise BuildError(
            f"{', '.join(missing)} for {platform} cannot be published because they are not built; run: "
            f"karpstack engines build --platform {platform}{own}"
        )
    for part in parts:
        if faults := manifest.faults(engines.part(part)):
            raise BuildError(f"{faults[0]}, so nothing was published; run: karpstack engines build")
        if origin := manifest.origin(engines.part(part)):
            raise BuildError(
                f"{part} was pulled from {origin}, so it was not built here and nothing was published; copy the "
                "artifact with `oras copy`, which keeps its digest"
            )


def _publish_platform(
    store: artifact.Store,
    engines: EngineSet,
    parts: Sequence[str],
    platform: str,
    go: Go,
    about: Mapping[str, str],
) -> dict[str, Any]:
    """Publish the engines of one platform, and return what points at their manifest."""
    layers = []
    for part in parts:
        with tempfile.TemporaryFile() as file:
            _pack(engines.part(part), f"{part}/{engines.keys[part]}/", file)
            size = file.tell()
            file.seek(0)
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            print(f"  {platform} {part}: {size / 1e6:.0f} MB", file=sys.stderr)
            store.add_blob(digest, size, file)
        title = f"{part}-{engines.keys[part]}.tar.gz"
        annotations = {artifact.TITLE: title, artifact.PART: part, artifact.KEY: engines.keys[part]}
        layers.append(artifact.descriptor(artifact.ENGINE, digest, size, annotations=annotations))
    built = materials.programs(engines, parts, go)
    digests = {part: str(layer["digest"]) for part, layer in zip(parts, layers, strict=True)}
    statement = materials.provenance(engines, platform, digests, built)
    layers.append(_document(store, artifact.SBOM, "sbom.cdx.json", materials.sbom(built)))
    layers.append(_document(store, artifact.PROVENANCE, "provenance.json", statement))
    store.add_blob(digest_of(_EMPTY), len(_EMPTY), io.BytesIO(_EMPTY))
    content = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": artifact.ENGINES,
            "config": artifact.descriptor(_EMPTY_TYPE, digest_of(_EMPTY), len(_EMPTY)),
            "layers": layers,
            "annotations": about,
        }
    )
    store.add_manifest(digest_of(content), content, MANIFEST)
    system, architecture = platform.split("/")
    return artifact.descriptor(
        MANIFEST,
        digest_of(content),
        len(content),
        artifactType=artifact.ENGINES,
        platform={"os": system, "architecture": architecture},
    )


def _document(store: artifact.Store, media_type: str, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    content = _json(value)
    store.add_blob(digest_of(content), len(content), io.BytesIO(content))
    return artifact.descriptor(media_type, digest_of(content), len(content), annotations={artifact.TITLE: name})


def _pack(root: Path, prefix: str, file: IO[bytes]) -> None:
    """Write a part as a tar.gz that is the same on every machine and every day."""
    text, names = manifest.portable(root)
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        content = text.encode()
        tar.addfile(entry(prefix + manifest.NAME, len(content), 0o644), io.BytesIO(content))
        for name in names:
            with (root / name).open("rb") as source:
                status = (root / name).stat()
                mode = manifest.portable_mode(status.st_mode)
                tar.addfile(entry(prefix + name, status.st_size, mode), source)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()
