"""The files of an answer to a what-if: written, replaced and removed only if they begin as ours do.

Standard library only, as `files` is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .files import check_output, page_begins

_TITLE: Final = rb"(What if|A what-if on) "
#: Name -> how each begins.
_BEGINS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "whatif.json": re.compile(rb'\{\s*"schemaVersion": *\d+,\s*"stack":'),
    "whatif.md": re.compile(rb"## [^\n]+\n\n" + _TITLE),
    "whatif.html": page_begins(_TITLE),
}


def check(folder: Path) -> None:
    """See that no file of somebody else's has the name of one of an answer.

    Raises:
        OutputError: One has.
    """
    for name, begins in _BEGINS.items():
        check_output(folder / name, "the answer", "answer of a what-if", begins.match)


def forget(folder: Path) -> None:
    """Remove the files of an earlier answer, which must not be taken for the next one's.

    Raises:
        OutputError: One is somebody else's; then all stay.
    """
    check(folder)
    for name in _BEGINS:
        (folder / name).unlink(missing_ok=True)
