"""Which release of Karpenter is rehearsed for a cluster that has another one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .model import Snapshot
from .problems import SnapshotError, finding


def nearest(version: str | None, built: Sequence[str]) -> str | None:
    """Return the release that is nearest to a version, of equally near ones the first; None if nothing is known."""
    wanted = _number(version)
    return min(built, key=lambda one: abs(_number(one) - wanted)) if wanted and built else None


def check_release(before: Snapshot, after: Snapshot, built: Sequence[str], offered: Sequence[str]) -> None:
    """Refuse a change of the version of Karpenter that would not be rehearsed.

    Args:
        before, after: The clusters.
        built: Releases whose engines are there.
        offered: Releases whose engines can be built.

    Raises:
        SnapshotError: Both versions would be rehearsed with one release.
    """
    old, new = (one.karpenter.version if one.karpenter else None for one in (before, after))
    used = nearest(new, built)
    if old and new and old != new and used and used == nearest(old, built):
        words = {"before": old, "after": new, "used": used, "known": ", ".join(offered)}
        raise SnapshotError.of(finding("snapshot-manifest-release-unseen", "", "Karpenter", **words))


def _number(version: str | None) -> int:
    """Major, minor and patch version as one number; 0 if there is none."""
    found = re.match(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})", version or "", re.ASCII)
    major, minor, patch = map(int, found.groups()) if found else (0, 0, 0)
    return (major * 1000 + minor) * 1000 + patch
