"""An OCI archive: the image layout of the OCI image specification, as one tar file, for machines without a registry."""

from __future__ import annotations

import io
import json
import secrets
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from karpstack.text.files import OutputError, check_output, open_file
from karpstack.text.shown import visible

from .reference import digest_of
from .registry import Kind, TransferError

_LAYOUT: Final = "oci-layout"
_VERSION: Final = json.dumps({"imageLayoutVersion": "1.0.0"}).encode()


class Archive:
    """An OCI archive that is read, or written by `created`."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._written: set[str] = set()

    def open(self, kind: Kind, digest: str) -> io.BufferedReader:
        """Return a file to read a blob or a manifest from; a layout has both in one folder.

        Raises:
            TransferError: The archive does not have it.
        """
        try:
            member = self._tar.getmember(_path(digest))
            found = self._tar.extractfile(member) if member.isreg() else None  # a link may lead in a circle
        except (KeyError, OSError, tarfile.TarError) as error:
            raise TransferError(f"{digest} is not in {self._tar.name!s}") from error
        if not isinstance(found, io.BufferedReader):
            raise TransferError(f"{digest} is no file in {self._tar.name!s}")
        return found

    def add_blob(self, digest: str, size: int, file: IO[bytes]) -> None:
        """Write a blob, once."""
        if digest not in self._written:
            self._written.add(digest)
            file.seek(0)
            self._add(_path(digest), size, file)

    def add_manifest(self, name: str, content: bytes, media_type: str) -> None:
        """Write a manifest; one whose name is a tag is what the archive holds."""
        digest = digest_of(content)
        self.add_blob(digest, len(content), io.BytesIO(content))
        if name != digest:
            entry = {"mediaType": media_type, "digest": digest, "size": len(content)}
            index = {
                "schemaVersion": 2,
                "manifests": [{**entry, "annotations": {"org.opencontainers.image.ref.name": name}}],
            }
            text = json.dumps(index).encode()
            self._add("index.json", len(text), io.BytesIO(text))

    def _add(self, name: str, size: int, file: IO[bytes]) -> None:
        self._tar.addfile(entry(name, size, 0o644), file)


class _Forward(tarfile.TarInfo):
    """A header; with a negative size, older Pythons would go back and never end (CVE-2025-8194)."""

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.HeaderError(f"{self.name!r} has a negative size")
        found: int = super()._block(count)  # type: ignore[misc]
        return found


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive for reading.

    Raises:
        TransferError: It is no archive, or there is none.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(path))
            tar = stack.enter_context(tarfile.open(path, "r:", file, tarinfo=_Forward))
        except (OSError, tarfile.TarError) as error:
            raise TransferError(f"{path} cannot be read: {getattr(error, 'strerror', '') or error}") from error
        yield Archive(tar)


@contextmanager
def created(path: Path) -> Iterator[Archive]:
    """Write an archive as a whole, or nothing.

    Raises:
        files.OutputError: Something else than an archive of this kind is there, or the archive cannot be written.
    """
    check_output(path, "the archive", "OCI archive", lambda begins: begins.startswith(_LAYOUT.encode() + b"\0"))
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with tarfile.open(partial, "x:", format=tarfile.USTAR_FORMAT) as tar:
            archive = Archive(tar)
            archive._add(_LAYOUT, len(_VERSION), io.BytesIO(_VERSION))
            yield archive
        partial.replace(path)
    except OSError as error:
        why = error.strerror if error.filename in (None, str(partial)) else error
        raise OutputError(
            f"the archive {visible(path)}: cannot be written ({why}), so nothing was published; name a file in a "
            "folder that exists, that you may write, and that has room"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    """Return the header of a file in a tar: the same on every machine and every day."""
    header = tarfile.TarInfo(name)  # with user 0 and time 0
    header.size, header.mode = size, mode
    return header


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
