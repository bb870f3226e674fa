"""The shape of published engines: an OCI index, whose digest is what a user pins.

index                    for all platforms
  manifest               of one platform
    layer of each part   tar.gz with <part>/<key>/manifest.json first, and then the files that it lists
    SBOM                 CycloneDX
    provenance           in-toto, SLSA
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from . import archive
from .archive import Archive
from .reference import Reference
from .registry import Registry

#: What the index and the manifests say that they are.
ENGINES: Final = "application/vnd.karpstack.engines.v1"
ENGINE: Final = "application/vnd.karpstack.engine.v1.tar+gzip"
SBOM: Final = "application/vnd.cyclonedx+json"
PROVENANCE: Final = "application/vnd.in-toto+json"
#: Annotations of a layer.
PART: Final = "karpstack.engine.part"
KEY: Final = "karpstack.engine.key"
#: Of a layer's annotations, an index's and a manifest's.
TITLE: Final = "org.opencontainers.image.title"
VERSION: Final = "org.opencontainers.image.version"
Store = Registry | Archive


@contextmanager
def opened(place: Reference, *, writing: bool = False) -> Iterator[Store]:
    """Open a place for engines; an archive that is written appears when it is whole.

    Raises:
        TransferError: It cannot be read.
        files.OutputError: Something else than such an archive is there.
    """
    if not place.archive:
        yield Registry(place.host, place.repository)
        return
    with archive.created(place.archive) if writing else archive.opened(place.archive) as store:
        yield store


def descriptor(media_type: str, digest: str, size: int, **more: Any) -> dict[str, Any]:
    """Return what points at content."""
    return {"mediaType": media_type, "digest": digest, "size": size, **more}
