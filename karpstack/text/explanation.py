"""Explain a finding by its code: what is wrong, what would happen, how to fix it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.karpenter.findings import Catalogue

from .codes import Code, reported
from .shown import value, visible

_NEAREST: Final = 5
#: What is printed of an entry: heading, and the keys of a catalogue of findings or of rules, the first that it has.
_PARTS: Final = (
    ("What is wrong", ("what", "description")),
    ("Why", ("rationale",)),
    ("What would happen", ("consequence",)),
    ("Fix", ("fix", "remediation")),
    ("Setting", ("key",)),
    ("See", ("link", "url")),
)


class UnknownCodeError(ValueError):
    """No finding has this code; the text names the nearest codes."""


@dataclass(frozen=True)
class Explanation:
    """What a catalogue says of a code.

    Attributes:
        code: The code.
        about: What the catalogue is about.
        severity: error, warning or note; critical, high, medium or low of a rule.
        parts: Heading -> text. Words in braces are those of the user's own input.
    """

    code: str
    about: str
    severity: str
    parts: Mapping[str, str]


@reported({UnknownCodeError: Code.WRONG})
def explain(code: str, catalogues: Mapping[str, Path], *, form: Literal["text", "json"] = "text") -> int:
    """Print what is known of a code.

    Args:
        code: The code of a finding, or the name of a rule.
        catalogues: What a catalogue is about -> its file; files that do not exist are skipped.
        form: How it is printed.
    """
    known = {about: Catalogue(path).entries for about, path in catalogues.items() if path.is_file()}
    found = [_explanation(code, about, entries[code]) for about, entries in known.items() if code in entries]
    if not found:
        raise UnknownCodeError(_unknown(code, [name for entries in known.values() for name in entries]))
    if form == "json":
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        print("\n\n".join("\n".join(_lines(one)) for one in found))
    return Code.GOOD


def _explanation(code: str, about: str, entry: Mapping[str, Any]) -> Explanation:
    parts = {
        heading: str(next(entry[key] for key in keys if key in entry))
        for heading, keys in _PARTS
        if any(entry.get(key) for key in keys)
    }
    return Explanation(code, about, str(entry.get("severity", "error")), parts)


def _lines(one: Explanation) -> Iterator[str]:
    yield f"{one.code} ({one.severity}, {one.about})"
    for heading, text in one.parts.items():
        yield f"  {heading}: {visible(text)}"
    if "{" in "".join(one.parts.values()):
        yield "  Words in braces are those of your own input."


def _unknown(code: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(code, known, _NEAREST, 0.5) or [name for name in known if code and code in name]
    hint = f"the nearest are {', '.join(near[:_NEAREST])}" if near else "docs/reference/findings lists all codes"
    return f"{value(code)}: no finding has this code; {hint}"
