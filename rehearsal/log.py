"""How the daemon's log is written: what comes from elsewhere steers no terminal, and begins no line of its own."""

from __future__ import annotations

import logging
import unicodedata

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# Controls (ESC among them), formats (bidi overrides, zero-width characters), surrogates, line and paragraph separators.
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Formatter(logging.Formatter):
    """Shows characters that steer a terminal as escapes, and indents all lines of a record but its first."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """The record's text."""
        text = super().format(record)
        if text.isprintable():
            return text
        return "".join(map(_shown, text)).replace("\n", "\n    ")


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _STEERING:
        return character
    return ascii(character)[1:-1]


def configure() -> None:
    """Log to stderr, from level INFO."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
