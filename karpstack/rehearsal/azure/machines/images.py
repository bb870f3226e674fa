"""Node images in AKS's community galleries.

Every image definition that this version of Karpenter asks for without a shared gallery, in two releases, so that a
story can watch an image drift: `publish` adds a newer one. Galleries and definitions are Azure's; the numbers of the
releases are made up. FIPS images and Windows are in no community gallery.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

UBUNTU = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2"
AZURE_LINUX = "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b"

_ID = re.compile(r"/CommunityGalleries/([^/]+)/images/([^/]+)/versions/([^/]*)", re.IGNORECASE)
_BETWEEN_RELEASES = timedelta(days=7)
_RELEASES = (("202607.08.0", "2026-07-08T00:00:00Z"), ("202608.12.0", "2026-08-12T00:00:00Z"))


@dataclass(frozen=True)
class Definition:
    """One image definition.

    Attributes:
        gallery: Public name of the gallery.
        name: Name of the definition.
        architecture: `x64` or `Arm64`.
        generation: Hyper-V generation: `V1` or `V2`.
    """

    gallery: str
    name: str
    architecture: str
    generation: str


DEFINITIONS = tuple(
    Definition(gallery, name, architecture, generation)
    for gallery, gen2, gen1, arm in (
        (UBUNTU, "2204gen2containerd", "2204containerd", "2204gen2arm64containerd"),
        (UBUNTU, "2404gen2containerd", "2404containerd", "2404gen2arm64containerd"),
        (AZURE_LINUX, "V2gen2", "V2", "V2gen2arm64"),
        (AZURE_LINUX, "V3gen2", "V3", "V3gen2arm64"),
    )
    for name, architecture, generation in ((gen2, "x64", "V2"), (gen1, "x64", "V1"), (arm, "Arm64", "V2"))
)


class Images:
    """The galleries."""

    def __init__(self) -> None:
        self._releases = list(_RELEASES)

    def publish(self, version: str, date: str) -> None:
        """Publish another release of every image.

        Args:
            version: For example `202609.09.0`.
            date: RFC 3339; the youngest is the one that Karpenter takes.
        """
        self._releases.append((version, date))

    def publish_next(self) -> str:
        """Publish the release that comes a week after the youngest; its version."""
        last = max(datetime.fromisoformat(date) for _, date in self._releases)
        day = last + _BETWEEN_RELEASES
        version = f"{day:%Y%m.%d}.0"
        self.publish(version, f"{day:%Y-%m-%dT%H:%M:%SZ}")
        return version

    def versions(self, gallery: str, name: str, region: str) -> list[dict[str, Any]] | None:
        """The releases of a definition as ARM lists them; None when there is no such definition."""
        if _definition(gallery, name) is None:
            return None
        return [
            {
                "name": version,
                "location": region,
                "type": "Microsoft.Compute/locations/communityGalleries/images/versions",
                "identifier": {"uniqueId": f"/CommunityGalleries/{gallery}/Images/{name}/Versions/{version}"},
                "properties": {"publishedDate": date, "excludeFromLatest": False},
            }
            for version, date in self._releases
        ]

    def find(self, identifier: str) -> Definition | None:
        """The definition behind an image id whose release exists; None otherwise."""
        match = _ID.fullmatch(identifier)
        if not match or match[3] not in {version for version, _ in self._releases}:
            return None
        return _definition(match[1], match[2])


def _definition(gallery: str, name: str) -> Definition | None:
    return next(
        (
            definition
            for definition in DEFINITIONS
            if (definition.gallery.lower(), definition.name.lower()) == (gallery.lower(), name.lower())
        ),
        None,
    )
