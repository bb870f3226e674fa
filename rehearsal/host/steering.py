"""Which characters steer a terminal, or hide what is written: shown or left out wherever text comes from elsewhere."""

from __future__ import annotations

import unicodedata

# Controls (ESC among them), formats (bidi overrides, zero-width characters), surrogates, line and paragraph separators.
_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")


def steers(character: str) -> bool:
    """Whether it is one of them; line breaks and tabs are not."""
    return character not in "\n\t" and unicodedata.category(character) in _CATEGORIES


def visible(text: str) -> str:
    r"""The text with each such character as its escape: `\x1b`, for example."""
    return text if text.isprintable() else "".join(ascii(one)[1:-1] if steers(one) else one for one in text)
