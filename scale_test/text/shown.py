"""How pages, terminals and messages show what others wrote: nothing that steers a terminal, and never at length."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence

# Control characters other than tab and newline, marks that turn the direction of text around, and what UTF-8 or XML
# cannot hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VALUE, _KEY, _LINE = 160, 60, 500  # characters at most
LINES = 20  # of a message, at most

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = 100


def visible(text: object) -> str:
    r"""Text with each character that would act instead of being seen as its escape, `\x1b` for example."""
    return _UNSEEN.sub(_escape, str(text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, most: int) -> str:
    """Text of so many characters at most, with dots where its end is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def value(content: object) -> str:
    """A value in a message: as Python writes it, on one line, cut."""
    return cut(_SHORT.repr(content), _VALUE)


def key(location: Iterable[object]) -> str:
    """A place within a document in a message: its keys and indexes, with dots between them."""
    return cut(".".join(cut(repr(str(part))[1:-1], _KEY) for part in location), _VALUE)


def listed(names: Sequence[str], most: int) -> str:
    """Names in a sentence; of many the first ones, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def message(problems: Sequence[str]) -> str:
    """What is wrong, a line each; of many the first ones."""
    lines = [cut(visible(problem), _LINE) for problem in problems[:LINES]]
    return "\n".join([*lines, *(["and more like these"] if len(problems) > LINES else [])])
