"""Which version this is."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version() -> str | None:
    """The version of the checkout that this is in; None where the package is alone."""
    if not _PROJECT.is_file():
        return None
    return str(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"])
