"""Explain a finding by its code: what is wrong, what would happen, how to fix it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.karpenter.findings import Catalogue

from .codes import Code, reported
from .shown import value, visible

_NEAREST: Final = 5
#: What is printed of an entry: heading, and the key of a catalogue of findings or of rules.
_PARTS: Final = (
    ("What is required", "description"),
    ("What is wrong", "what"),
    ("Why", "rationale"),
    ("What would happen", "consequence"),
    ("Fix", "fix"),
    ("Fix", "remediation"),
    ("Setting", "key"),
    ("See", "link"),
    ("See", "url"),
)
#: First words of a sentence whose subject is a list.
_PLURAL: Final = {"admit", "are", "contain", "exclude", "have", "match"}
_FORMAT = re.compile(r"(\{)\{|(\})\}|\{(\w+)[!:][^}]*\}")


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
def explain(
    code: str,
    catalogues: Mapping[str, Path],
    *,
    without_subject: Collection[str] = (),
    form: Literal["text", "json"] = "text",
) -> int:
    """Print what is known of a code.

    Args:
        code: The code of a finding, or the name of a rule.
        catalogues: What a catalogue is about -> its file; files that do not exist are skipped.
        without_subject: The catalogues whose sentences follow the key of a setting, which is their subject.
        form: How it is printed.
    """
    known = {about: Catalogue(path).entries for about, path in catalogues.items() if path.is_file()}
    found = [
        _explanation(code, about, entries[code], about in without_subject)
        for about, entries in known.items()
        if code in entries
    ]
    if not found:
        raise UnknownCodeError(_unknown(code, [name for entries in known.values() for name in entries]))
    if form == "json":
        print(json.dumps([asdict(one) for one in found], indent=2))
    else:
        print("\n\n".join("\n".join(_lines(one)) for one in found))
    return Code.GOOD


def readable(text: str) -> str:
    """Return a text of a catalogue for documents: without formats of Python in the braces."""
    return _FORMAT.sub(lambda found: found[1] or found[2] or f"{{{found[3]}}}", " ".join(text.split()))


def in_general(entry: Mapping[str, Any], key: str) -> str:
    """Return a text of an entry for documents; one that depends on the input has a general form, `general_<key>`."""
    return readable(str(entry.get(f"general_{key}", entry.get(key, ""))))


def with_subject(text: str, subject: str = "") -> str:
    """Return a sentence of a setting with its subject, which a message shows as the key before the sentence."""
    first = text.split(maxsplit=1)[0]
    if not first.isalpha() or not first.islower():
        return text
    return f"{subject or ('The settings' if first in _PLURAL else 'The setting')} {text}"


def _explanation(code: str, about: str, entry: Mapping[str, Any], without_subject: bool) -> Explanation:
    parts = dict[str, str]()
    for heading, key in _PARTS:
        text = in_general(entry, key)
        if text and without_subject and key == "consequence":
            text = with_subject(text, str(entry.get("general_key", "")))
        if text:
            says_what = key == "consequence" and not {"what", "description"} & entry.keys()
            parts["What is wrong" if says_what else heading] = text
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
