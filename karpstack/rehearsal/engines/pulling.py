"""Pulls published engines into the cache: each part is verified as a whole before it appears there.

The digest that the user gives is that of the index; it leads to every other digest. Besides, a part must have the key
that this checkout's pins have: it is then made of the same sources as one that would be compiled here.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, Final, Self

from karpstack.rehearsal.engines import EngineSet, native_platform
from karpstack.text import deadlines

from . import artifact, manifest, registry
from .reference import DIGEST, Reference
from .registry import INDEX, MANIFEST, Kind, TransferError

_ATTEMPTS: Final = 3
_CHUNK: Final = 2**20
_MOST_JSON: Final = 2**22  # bytes of an index or a manifest
_MOST: Final = 2**31  # bytes of a part, compressed or not
_MINUTE = 60.0  # seconds in which a part is to grow
_LEAST: Final = 2**20  # by so many bytes


class PullError(Exception):
    """Published engines that are not used; the text says why."""


def pull(place: Reference, engines: EngineSet, parts: Sequence[str]) -> str:
    """Pull parts into the cache, in order, until one cannot be pulled.

    Args:
        place: With the digest of an index.
        engines: The set that this checkout's pins name.
        parts: What is missing in it.

    Returns:
        Why a part was not pulled; empty if all were.
    """
    started, pulled = time.monotonic(), 0
    print(f"Looking for engines in {place}", flush=True)
    try:
        with artifact.opened(place) as store:
            layers = _layers(store, place)
            mismatches = {part: _mismatch(layers, engines, part) for part in parts}
            suitable = {part: layers[part] for part in parts if not mismatches[part]}
            size = sum(layer["size"] for layer in suitable.values())
            if suitable:
                print(
                    f"Pulling {', '.join(suitable)} ({size / 1e6:.0f} MB) from {place} into {engines.root}", flush=True
                )
            for part, layer in suitable.items():
                _pull_part(store, layer, part, engines, str(place))
                pulled += layer["size"]
            why = next(filter(None, mismatches.values()), "")
    except (PullError, TransferError) as error:
        why = str(error)
    except (OSError, HTTPException) as error:  # a full disk, for example
        why = f"{type(error).__name__}: {error}"
    if pulled:
        print(f"Engines pulled in {time.monotonic() - started:.0f} s: {pulled / 1e6:.0f} MB.", flush=True)
    return why


def _mismatch(layers: Mapping[str, Mapping[str, Any]], engines: EngineSet, part: str) -> str:
    """Why a part would not be what this checkout compiles; empty if it would be."""
    if part not in layers:
        return f"it has no {part} for {native_platform()}"
    key = layers[part]["annotations"][artifact.KEY]
    if key != engines.keys[part]:
        return f"its {part} is made of other sources (key {key!r}) than this checkout's (key {engines.keys[part]})"
    return ""


def _layers(store: artifact.Store, place: Reference) -> dict[str, dict[str, Any]]:
    """Return the layer of each part for this platform.

    Raises:
        PullError: What the place has are no engines, or they are for other platforms.
    """
    index = _json(store, place.digest, None)
    try:
        if index.get("mediaType") != INDEX or index.get("artifactType") != artifact.ENGINES:
            raise PullError(f"{place} is something else than engines of karpstack ({index.get('artifactType')!r})")
        found = {f"{one['platform']['os']}/{one['platform']['architecture']}": one for one in index["manifests"]}
        if native_platform() not in found:
            raise PullError(f"{place} has engines for {', '.join(found) or 'nothing'}, and not for {native_platform()}")
        content = _json(store, *_pointed(found[native_platform()], MANIFEST))
        layers = {}
        for layer in content["layers"]:
            if layer["mediaType"] == artifact.ENGINE:
                _pointed(layer, artifact.ENGINE)
                part, _ = (str(layer["annotations"][name]) for name in (artifact.PART, artifact.KEY))
                layers[part] = layer
        return layers
    except (LookupError, TypeError, AttributeError) as error:
        raise PullError(f"{place} is not as engines are published: {error!r}") from error


def _pointed(descriptor: Mapping[str, Any], media_type: str) -> tuple[str, int]:
    """Return the digest and the size of what a descriptor points at."""
    kind, digest, size = descriptor["mediaType"], descriptor["digest"], descriptor["size"]
    if kind != media_type or not isinstance(size, int) or not 0 <= size <= _MOST or not DIGEST.fullmatch(digest):
        raise PullError(f"it points at {digest!r} of {size!r} bytes and type {kind!r}, which is not used")
    return digest, size


def _json(store: artifact.Store, digest: str, size: int | None) -> dict[str, Any]:
    content = io.BytesIO()
    deadlines.within(registry.IN_ALL, partial(_fetch, store, "manifests", digest, size, content))
    try:
        found = json.loads(content.getvalue())
    except (ValueError, RecursionError) as error:
        raise PullError(f"{digest} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise PullError(f"{digest} is no JSON object")
    return found


def _fetch(store: artifact.Store, kind: Kind, digest: str, size: int | None, target: IO[bytes]) -> None:
    """Read content and verify its size and digest; what breaks off is read again.

    Args:
        store: Where from.
        kind: Of the content.
        digest: What it must have.
        size: What it must have; None if unknown.
        target: An empty file; holds the content then.

    Raises:
        PullError: The content is another.
        TransferError: The place does not give it.
    """
    most = _MOST_JSON if size is None else size
    failure = ""
    for _ in range(_ATTEMPTS):
        target.seek(0)
        target.truncate()
        copy = _Copy(store.open(kind, digest), target, most)
        try:
            copy.make(digest)
        except (TimeoutError, ConnectionError, HTTPException, tarfile.TarError) as error:
            failure = f"after {copy.count} bytes: {error!r}"
            continue
        if size is not None and copy.count < size:
            failure = f"after {copy.count} of {size} bytes"
            continue
        if copy.count > most:
            raise PullError(f"{digest} has more than {most} bytes, so it is not used")
        if (found := f"sha256:{copy.computed.hexdigest()}") != digest:
            raise PullError(f"the content of {digest} has another digest, {found}")
        return
    raise TransferError(f"{digest} broke off {failure}, {_ATTEMPTS} times")


class _Copy:
    """A copy of content into a file, with its size and digest. It stops one byte after the largest allowed size.

    A thread reads the source and closes it. Another thread could not: closing waits until the read ends.
    """

    def __init__(self, source: HTTPResponse | io.BufferedReader, target: IO[bytes], most: int) -> None:
        self.count, self.computed = 0, hashlib.sha256()
        self._source, self._target, self._most = source, target, most

    def make(self, digest: str) -> None:
        """Make the copy, and print its progress once a minute.

        Raises:
            TransferError: It grew too little in a minute. The thread runs on.
        """
        reading, before = deadlines.started(self._read), 0
        while not wait([reading], _MINUTE).done:
            count = self.count
            if count - before < _LEAST:
                raise TransferError(f"{digest} is too slow: {count - before} bytes in {_MINUTE:g} s")
            print(f"{count / 1e6:.0f} of {self._most / 1e6:.0f} MB", flush=True)
            before = count
        reading.result()

    def _read(self) -> None:
        with closing(self._source) as source:
            while self.count <= self._most and (chunk := source.read1(min(_CHUNK, self._most + 1 - self.count))):
                self.count += len(chunk)
                self.computed.update(chunk)
                self._target.write(chunk)


def _pull_part(store: artifact.Store, layer: Mapping[str, Any], part: str, engines: EngineSet, origin: str) -> None:
    """Pull one part: download, verify, unpack beside its place, verify again, and only then move it there."""
    root = engines.part(part)
    partial, download = root.with_suffix(".partial"), root.with_suffix(".download")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with download.open("wb+") as file:
            _fetch(store, "blobs", *_pointed(layer, artifact.ENGINE), file)
            file.seek(0)
            (partial / "bin").mkdir(parents=True)
            _unpack(file, f"{part}/{engines.keys[part]}/", partial)
        manifest.seal(partial)
        if faults := manifest.faults(partial):
            raise PullError(f"{part} is not as its manifest says: {faults[0]}")
        manifest.set_origin(partial, origin)
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)
    finally:
        download.unlink(missing_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        manifest.forget(partial)


class _Plain(tarfile.TarInfo):
    """The header of a regular file: others are refused before what they announce is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or header.size < 0:
            raise PullError(f"{header.name!r} in it is no regular file")
        return header


def _unpack(file: IO[bytes], prefix: str, folder: Path) -> None:
    """Unpack a layer: nothing but regular files below a prefix, each once.

    Raises:
        PullError: It holds something else.
    """
    total = 0
    try:
        with (
            gzip.GzipFile(fileobj=file) as compressed,
            tarfile.open(fileobj=compressed, mode="r|", tarinfo=_Plain) as tar,
        ):
            for member in tar:
                name = member.name.removeprefix(prefix)
                total += member.size
                if name == member.name or any(step in ("", ".", "..") for step in name.split("/")):
                    raise PullError(f"{member.name!r} in it is not below {prefix}")
                if total > _MOST:
                    raise PullError(f"it unpacks to more than {_MOST} bytes")
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                with target.open("xb") as output:
                    shutil.copyfileobj(content or io.BytesIO(), output, _CHUNK)
                target.chmod(manifest.portable_mode(member.mode))
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        raise PullError(f"it cannot be unpacked: {error}") from error
