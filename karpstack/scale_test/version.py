"""Which version this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str | None:
    """Return the version of the installed package; None where nothing is installed."""
    try:
        return metadata.version("karpstack")
    except metadata.PackageNotFoundError:
        return None
