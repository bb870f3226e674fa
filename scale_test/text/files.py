"""Files that are written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file as a whole: who reads it has the old or the new one, and a link is replaced, not followed."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    with partial.open("x", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
