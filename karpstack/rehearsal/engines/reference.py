"""Where engines are published: a repository of a registry, or an OCI archive, which is one file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Names where to pull engines from.
VARIABLE: Final = "KARPSTACK_ENGINES"
_NAME = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_REGISTRY = re.compile(
    rf"oci://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d{{1,5}})?)/({_NAME}(?:/{_NAME})*)(?::([A-Za-z0-9_][\w.-]{{0,127}}))?",
    re.ASCII,
)
_ARCHIVE = re.compile(r"oci-archive:(.+)")
#: A digest, as a registry and an archive name content.
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class PlaceError(ValueError):
    """A reference that cannot be used; the text says why, and what to write instead."""


@dataclass(frozen=True)
class Reference:
    """A place for engines.

    Attributes:
        place: As it was written, without the digest.
        digest: `sha256:...` of the index there; empty if none was named.
        host: The registry, as `registry.example:5000`; empty for an archive.
        repository: In the registry.
        tag: In the repository; `latest` if none was named.
        archive: The file; None for a registry.
    """

    place: str
    digest: str = ""
    host: str = ""
    repository: str = ""
    tag: str = "latest"
    archive: Path | None = None

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.place}@{self.digest}" if self.digest else self.place


def parse(text: str) -> Reference:
    """Return a place for engines.

    Raises:
        PlaceError: It is written in another way.
    """
    place, digest = text, ""
    if "@" in text and DIGEST.fullmatch(text.rpartition("@")[2]):
        place, _, digest = text.rpartition("@")
    if found := _REGISTRY.fullmatch(place):
        return Reference(place, digest, found[1], found[2], found[3] or "latest")
    if found := _ARCHIVE.fullmatch(place):
        return Reference(place, digest, archive=Path(found[1]).expanduser())
    raise PlaceError(
        f"{text!r} names no place for engines; write oci://REGISTRY/REPOSITORY:TAG or oci-archive:FILE.tar, and "
        "@sha256:... after it to pull"
    )


def pinned(text: str) -> Reference:
    """Return a place to pull engines from.

    Raises:
        PlaceError: It is written in another way, or names no digest.
    """
    reference = parse(text)
    if not reference.digest:
        show = f"; `oras resolve {text.removeprefix('oci://')}` prints it too" if reference.host else ""
        raise PlaceError(
            f"{text} names no digest, so other programs could be behind it tomorrow, and nothing was pulled; append "
            f"the @sha256:... that `karpstack engines publish` printed{show}"
        )
    return reference


def digest_of(content: bytes) -> str:
    """Return the digest by which a registry and an archive name content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
